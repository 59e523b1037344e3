"""White space as tokens: all white space except a single blank between two words is a token.

A line break is a token with the blanks around it, and so are a tab, two blanks or more, and a blank
at either end of a text. Such a token touches its neighbours, which carry no joiner for it. It is
written with Unicode's pictures of control characters, so that a vocabulary holds it on one line:

    "Name:\\n  %s\\n"  ->  Name ￭: ␊␠␠ %s ␊

Other spaces (no-break, thin, ideographic) are characters of punctuation.
"""

from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    import tensorflow as tf

# The pictures of white space in a token.
_PICTURES = {" ": "␠", "\t": "␉", "\n": "␊", "\v": "␋", "\f": "␌", "\r": "␍"}
_PICTURE = f"[{''.join(_PICTURES.values())}]"
# Replacements of pictures in a text itself: Unicode's symbols for a blank and a new line.
_IN_TEXT = (("[␠␉]", "␣"), ("[␊␋␌␍]", "␤"))

#: White space that is a token; valid for RE2 and, `\z` aside, for `regex`.
PATTERN = r" *(?:\r\n|[\t-\r]) *| {2,}|\A | \z"
_RUN = r"[\t-\r ]+"


def is_white_space(token: str) -> bool:
    """Whether a token, as in a vocabulary, is white space."""
    return regex.fullmatch(f"{_PICTURE}+", token) is not None


def replace_pictures(text: str) -> str:
    """Returns a text without the characters that stand for white space in tokens."""
    for pattern, replacement in _IN_TEXT:
        text = regex.sub(pattern, replacement, text)
    return text


def replace_pictures_in_graph(texts: "tf.Tensor") -> "tf.Tensor":
    """Returns what `replace_pictures` does, of string tensors."""
    import tensorflow as tf

    for pattern, replacement in _IN_TEXT:
        texts = tf.strings.regex_replace(texts, pattern, replacement)
    return texts


def to_token(run: str) -> str:
    """Returns white space as a token."""
    return "".join(_PICTURES[character] for character in run)


def to_text(token: str) -> str:
    """Returns the text of a token, with white space for its picture."""
    if not is_white_space(token):
        return token
    characters = {picture: character for character, picture in _PICTURES.items()}
    return "".join(characters[picture] for picture in token)


def to_texts(joined: str) -> str:
    """Returns joined tokens with white space for its pictures, and no blanks around it."""
    text = regex.sub(f" ?({_PICTURE}) ?", r"\1", joined)
    return text.translate({ord(picture): character for character, picture in _PICTURES.items()})


def is_run_in_graph(pieces: "tf.Tensor") -> "tf.Tensor":
    """Returns which pieces of texts are only white space."""
    import tensorflow as tf

    return tf.strings.regex_full_match(pieces, _RUN)


def is_white_space_in_graph(tokens: "tf.Tensor") -> "tf.Tensor":
    """Returns what `is_white_space` does, of string tensors."""
    import tensorflow as tf

    return tf.strings.regex_full_match(tokens, f"{_PICTURE}+")


def to_tokens_in_graph(runs: "tf.Tensor") -> "tf.Tensor":
    """Returns what `to_token` does, of string tensors."""
    import tensorflow as tf

    for character, picture in _PICTURES.items():
        runs = tf.strings.regex_replace(runs, character, picture)
    return runs


def to_texts_in_graph(joined: "tf.Tensor") -> "tf.Tensor":
    """Returns joined tokens with white space for its pictures, and no blanks around it."""
    import tensorflow as tf

    texts = tf.strings.regex_replace(joined, f" ?({_PICTURE}) ?", r"\1")
    for character, picture in _PICTURES.items():
        texts = tf.strings.regex_replace(texts, picture, character)
    return texts


def split_outer(texts: "tf.Tensor") -> tuple["tf.Tensor", "tf.Tensor", "tf.Tensor"]:
    """Returns the white space before texts, the texts without it, and that behind them.

    A text of only white space is the space before an empty text.
    """
    import tensorflow as tf

    # White space as in Python's `strip`.
    space = r"[\t-\r\x1c-\x1f\x85\p{Z}]"
    before = tf.strings.regex_replace(texts, rf"(?s)\A({space}*).*\z", r"\1")
    text = tf.strings.regex_replace(texts, rf"\A{space}+|{space}+\z", "")
    behind = tf.strings.regex_replace(texts, rf"(?s)\A.*?({space}*)\z", r"\1")
    return before, text, tf.where(tf.equal(text, ""), "", behind)
