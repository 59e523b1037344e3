"""TensorFlow's error messages, made readable for people."""

import re

_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
# TensorFlow escapes strings that it prints in C's manner.
_ESCAPED = re.compile(r"\\([0-7]{3}|.)")
# The first thing that a failed `tf.debugging` assertion prints is its message.
_ASSERTED = re.compile(
    r"assertion failed: \[(.*?)\](?= \[|\s*$|\s*\n)", flags=re.DOTALL | re.MULTILINE
)
_NAMES = re.compile(
    r"\[\[\{\{node .*?\}\}\]\]|\{\{(function_)?node .*?\}\}|\[Op:[^\]]*\]( name: ?\S*)?"
)
_NOT_FOR_PEOPLE = re.compile(
    r"Graph execution error:|Detected at node|<stack traces unavailable>|\s*File \"|Node: "
    r"|\d+ root error|\d+ successful operations|\d+ derived errors"
)
_NUMBER_AND_CODE = re.compile(r"^\s*\(\d+\) [A-Z_ ]+: ")


def human_sentence(message: str) -> str:
    """Returns the message of a TensorFlow error for people, without names of nodes, ops or stacks.

    For a failed `tf.debugging` assertion that is the assertion's message.

    Args:
        message: the `message` of a `tf.errors.OpError`.
    """
    asserted = _ASSERTED.search(message)
    if asserted:
        return " ".join(_ESCAPED.sub(_unescaped, asserted[1]).split())
    for line in _NAMES.sub("", message).splitlines():
        # The lines of a Python stack are indented by four; the sentence itself never is.
        if line.strip() and not _NOT_FOR_PEOPLE.match(line) and not line.startswith("    "):
            return _NUMBER_AND_CODE.sub("", line).strip()
    return "The model refused the input."


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 8)) if len(escape[1]) == 3 else _ESCAPES.get(escape[1], escape[1])
