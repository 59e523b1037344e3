"""The answers of a served model, as plain values."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Token:
    """One token of an answer.

    Attributes:
        text: the token; it may carry the joiner mark of `pipeline/text/tokenization.py` where it
            touches its neighbour.
        copied_from: position of the source token that it was copied from, counted from 0; None if
            generated.
        source_token: that source token; None if generated.
        copy_probability: the share of the token's probability that comes from copying, 0 to 1.
        is_term: whether a glossary gave the token as the translation of the source token.
    """

    text: str
    copied_from: int | None = None
    source_token: str | None = None
    copy_probability: float = 0.0
    is_term: bool = False


@dataclasses.dataclass(frozen=True)
class Answer:
    """One output text.

    Attributes:
        text: the text.
        score: its length-normalised log-probability.
        tokens: its tokens, without padding.
        parts: into how many sentences the model cut a text that is too long for it
            (`decoding.long_texts`), whose outputs are joined here.
        tokens_dropped: how many tokens of such a text it cut off instead.
    """

    text: str
    score: float
    tokens: tuple[Token, ...] = ()
    parts: int = 1
    tokens_dropped: int = 0


@dataclasses.dataclass(frozen=True)
class Explanation(Answer):
    """An output text, and where attention lay while it was written.

    Attributes:
        source_tokens: the source's tokens.
        attention: for each of `tokens`, the weight of each of `source_tokens`. Weights sum to at
            most 1: what a gate took is missing.
    """

    source_tokens: tuple[str, ...] = ()
    attention: tuple[tuple[float, ...], ...] = ()


@dataclasses.dataclass(frozen=True)
class Score:
    """A model's score of a given target.

    Attributes:
        log_probability: the sum over the target's tokens and its end.
        token_count: how many terms that sum has.
    """

    log_probability: float
    token_count: int


@dataclasses.dataclass(frozen=True)
class WordScore:
    """A language model's score of a text.

    Attributes:
        tokens: its words; `[END]` is a line feed.
        log_probabilities: of each, after all before it in the text.
    """

    tokens: tuple[str, ...]
    log_probabilities: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class TensorFacts:
    """One input or output.

    Attributes:
        dtype: its type, such as `string`.
        shape: its sizes, -1 for any; None if not even the rank is fixed.
    """

    dtype: str
    shape: tuple[int, ...] | None


@dataclasses.dataclass(frozen=True)
class Signature:
    """Inputs and outputs of one signature, by name."""

    inputs: dict[str, TensorFacts]
    outputs: dict[str, TensorFacts]


@dataclasses.dataclass(frozen=True)
class Metadata:
    """The name of a served model, the version that answers, and its signatures by name."""

    name: str
    version: int
    signatures: dict[str, Signature]


@dataclasses.dataclass(frozen=True)
class VersionStatus:
    """The state of one version.

    Attributes:
        version: its number.
        state: `START`, `LOADING`, `AVAILABLE`, `UNLOADING` or `END`.
        error: why it could not be loaded; empty if it could.
    """

    version: int
    state: str
    error: str = ""


def token_record(token: Token) -> dict[str, Any]:
    """Returns a token as JSON has it; `is_term` only where it is true."""
    record = dataclasses.asdict(token)
    if not token.is_term:
        del record["is_term"]
    return record


def long_text_record(answer: Answer) -> dict[str, Any]:
    """Returns what became of a text that is too long for the model, as JSON has it."""
    record = {"parts": answer.parts} if answer.parts > 1 else {}
    return {**record, "tokens_dropped": answer.tokens_dropped} if answer.tokens_dropped else record


def answer_record(answer: Answer) -> dict[str, Any]:
    """Returns an answer as JSON has it."""
    record = dataclasses.asdict(answer)
    for name in {"parts", "tokens_dropped"} - set(long_text_record(answer)):
        del record[name]
    return {**record, "tokens": [token_record(token) for token in answer.tokens]}


def format_answer(answer: Answer) -> str:
    """Returns an answer for the terminal: its text, then a line for each token that was copied.

    Source tokens are counted from 0.

    Example:
        >>> from serving.answers import Answer, Token, format_answer
        >>> copied = Token("%(name)s", 1, "%(name)s", copy_probability=0.98)
        >>> print(format_answer(Answer("Ouvrir %(name)s", -0.1, (Token("Ouvrir"), copied))))
        Ouvrir %(name)s
          %(name)s  <- source token 1 '%(name)s' (copy probability 0.98)
    """
    lines = [answer.text]
    if answer.parts > 1:
        lines.append(f"  (translated in {answer.parts} sentences: the text is too long)")
    if answer.tokens_dropped:
        lines.append(f"  (without the last {answer.tokens_dropped} source tokens: too long)")
    for token in answer.tokens:
        if token.copied_from is not None:
            place = f"source token {token.copied_from} '{token.source_token}'"
            how = "glossary" if token.is_term else f"copy probability {token.copy_probability:.2f}"
            lines.append(f"  {token.text}  <- {place} ({how})")
    return "\n".join(lines)
