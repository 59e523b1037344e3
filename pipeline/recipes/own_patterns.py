"""A recipe's own patterns of placeholders, in a form that RE2 and `regex` read alike."""

import regex

# These mean ASCII to RE2 and Unicode to `regex`.
_ASCII = {"d": "0-9", "w": "A-Za-z0-9_", "s": r"\t\n\f\r "}
_PART = regex.compile(r"\\(?P<escaped>.)|\[\^?\]?|\]", regex.DOTALL)


class PatternError(ValueError):
    """A pattern that cannot be used; its message is the end of a sentence that says why."""


def portable_pattern(pattern: str) -> str:
    """Returns a pattern in which `\\d`, `\\w` and `\\s` are spelled out, with the meaning that they
    have in RE2."""
    in_brackets = False

    def spell_out(match: "regex.Match[str]") -> str:
        nonlocal in_brackets
        part = match.group()
        escaped = match.group("escaped")
        if escaped is None:
            in_brackets = part != "]"
        elif escaped in _ASCII:
            return _ASCII[escaped] if in_brackets else f"[{_ASCII[escaped]}]"
        elif escaped.lower() in _ASCII:
            if in_brackets:
                raise PatternError(rf"'\{escaped}' cannot stand in brackets")
            return f"[^{_ASCII[escaped.lower()]}]"
        return part

    return _PART.sub(spell_out, pattern)


def check_pattern(pattern: str) -> None:
    """Checks a pattern of a recipe.

    Raises:
        PatternError: it is not valid for both RE2 and `regex`, has a group that captures, or
            matches the empty text.
    """
    import pyarrow as pa
    import pyarrow.compute as compute

    portable = portable_pattern(pattern)
    if "[:" in pattern:
        raise PatternError("classes such as '[:alpha:]' cannot be used: write [A-Za-z]")
    try:
        compiled = regex.compile(portable)
    except regex.error as error:
        raise PatternError(f"it is not a regular expression ({error})") from None
    if compiled.groups:
        raise PatternError("its groups must not capture: write (?:...) instead of (...)")
    try:
        # Arrow's expressions are RE2's, as TensorFlow's are.
        compute.match_substring_regex(pa.array([""]), f"(?:{portable})")
    except pa.ArrowInvalid as error:
        raise PatternError(f"RE2 does not support it ({error})") from None
    if compiled.fullmatch("") is not None:
        raise PatternError("it matches the empty text")
