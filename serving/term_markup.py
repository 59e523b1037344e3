"""The markup that carries a glossary's terms inside a text, through raw strings.

Unicode's interlinear annotation characters hold the phrase and its translation:

    Open the ￹homepage￺page d'accueil￻.

A character of the markup that belongs to the text itself is written `￹￺` + character + `￻`. Both
forms begin with the anchor, and neither can be read as the other.
"""

import re
from collections.abc import Iterable

ANCHOR, SEPARATOR, TERMINATOR = "\ufff9", "\ufffa", "\ufffb"
#: The characters of the markup.
MARKS = ANCHOR + SEPARATOR + TERMINATOR
#: A term: groups phrase and translation. A pattern for `re`, `regex` and RE2, as are the others.
TERM = f"{ANCHOR}([^{MARKS}]+){SEPARATOR}([^{MARKS}]+){TERMINATOR}"
#: A character of the text itself.
ESCAPED = f"{ANCHOR}{SEPARATOR}([{MARKS}]){TERMINATOR}"

_JOINER = "\uffed"
_MARK = re.compile(f"[{MARKS}]")
_MARKUP = re.compile(f"{TERM}|{ESCAPED}")
_TERM = re.compile(TERM)


def term(phrase: str, translation: str) -> str:
    """Returns the markup of a term; neither argument contains a character of the markup."""
    return f"{ANCHOR}{phrase}{SEPARATOR}{translation}{TERMINATOR}"


def escape(text: str) -> str:
    """Returns a text that is read as it is, whatever stands around it."""
    return _MARK.sub(rf"{ANCHOR}{SEPARATOR}\g<0>{TERMINATOR}", text)


def plain(text: str) -> str:
    """Returns a text without terms so that none are read in it: almost always the text itself."""
    return escape(text) if _MARKUP.search(text) else text


def read_term(token: str) -> tuple[str, str] | None:
    """Returns phrase and translation of a token that is a term, else None."""
    match = _TERM.fullmatch(token)
    return (match[1], match[2]) if match else None


def has_term(text: str) -> bool:
    """Whether a text has the markup of a term."""
    return _TERM.search(text) is not None


def phrase_of(token: str) -> str:
    """Returns the phrase of a token that is a term, else the token."""
    return _TERM.sub(r"\1", token)


def is_unread(text: str, tokens: Iterable[str], outputs: Iterable[str]) -> bool:
    """Whether a model took the markup of a text for text.

    Args:
        text: as it was sent.
        tokens: the source's tokens that the model returned.
        outputs: the texts that it returned.
    """
    if not has_term(text):
        return False
    marked = {match.group().lower() for match in _TERM.finditer(text)}
    if any(term in output.lower() for output in outputs for term in marked):
        return True
    joined = _TERM.sub("", "".join(tokens).replace(_JOINER, ""))
    # Units may spell a character in bytes.
    spelled = "".join(f"<0x{byte:02X}>" for byte in SEPARATOR.encode())
    read_as_text = joined.count(SEPARATOR) + joined.count(spelled)
    return read_as_text > text.count(escape(SEPARATOR))
