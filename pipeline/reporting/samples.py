"""Texts with the systems' outputs, as the report shows them, and the origin of each word."""

import dataclasses
from collections.abc import Callable, Sequence

from pipeline.evaluation.perplexity_of_text import GainedSentence
from pipeline.export.served_model import Answer
from pipeline.reporting.facts import Sample
from pipeline.text import white_space
from pipeline.text.tokenization import JOINER, Tokenizer

MAX_SAMPLES = 20
# A word that one language model holds for so much likelier than the other is marked.
TOLD_APART = 2.0


@dataclasses.dataclass(frozen=True)
class Piece:
    """A word of an output.

    Attributes:
        text: the word, without joiner.
        space: what stands before it.
        index: the number of its token.
    """

    text: str
    space: str
    index: int


@dataclasses.dataclass(frozen=True)
class ShownPiece:
    """A word of an output, and what it says when one points at it; "" for an ordinary word."""

    text: str
    space: str
    title: str


@dataclasses.dataclass(frozen=True)
class ShownOutput:
    """A system's output for a text.

    Attributes:
        name: the system's.
        pieces: its words.
        exact: whether it is the reference.
        broken: whether its placeholders are not the source's.
    """

    name: str
    pieces: list[ShownPiece]
    exact: bool
    broken: bool


@dataclasses.dataclass(frozen=True)
class ShownSample:
    """A text with every system's output; `gain` is None where no gain was measured."""

    gain: float | None
    source: str
    reference: str
    outputs: list[ShownOutput]


@dataclasses.dataclass(frozen=True)
class ScoredPiece:
    """A word that two language models scored.

    Attributes:
        text: the word.
        title: both probabilities, where they are far apart, else "".
        ahead: whether the first model's is far above the second's.
    """

    text: str
    title: str
    ahead: bool


@dataclasses.dataclass(frozen=True)
class ShownSentence:
    """A sentence that two language models scored, and by how much the first one did better."""

    gain: float
    pieces: list[ScoredPiece]


def differing_first(samples: Sequence[Sample]) -> list[Sample]:
    """Returns samples in order, those on which the systems differ before all others."""
    return sorted(
        samples,
        key=lambda sample: len({output["text"] for output in sample["outputs"].values()}) <= 1,
    )


def shown_samples(
    samples: Sequence[Sample], most: int = MAX_SAMPLES, tokenizer: Tokenizer | None = None
) -> list[ShownSample]:
    """Returns the first samples as they are shown.

    Args:
        samples: texts with every system's output.
        most: how many are shown.
        tokenizer: finds the placeholders that an output must keep.
    """
    find = (tokenizer or Tokenizer()).placeholders
    return [
        ShownSample(
            sample.get("gain"),
            sample["source"],
            sample["reference"],
            [
                _shown_output(name, output, sample["source"], sample["reference"], find)
                for name, output in sample["outputs"].items()
            ],
        )
        for sample in samples[:most]
    ]


def _shown_output(
    name: str, output: Answer, source: str, reference: str, find: Callable[[str], list[str]]
) -> ShownOutput:
    tokens = strip_padding(output.get("tokens") or [])
    if tokens:
        pieces = [
            ShownPiece(piece.text, piece.space, _origin(output, piece.index))
            for piece in _pieces(tokens)
        ]
    else:
        pieces = [ShownPiece(output["text"], "", "")]
    in_source, in_output = sorted(find(source)), sorted(find(output["text"]))
    return ShownOutput(
        name,
        pieces,
        exact=output["text"].strip() == reference.strip(),
        broken=in_source != in_output,
    )


def _origin(output: Answer, index: int) -> str:
    """Returns where a token was copied from; "" where it was not copied."""
    copied_from = output.get("copied_from") or []
    probabilities = output.get("copy_probability") or []
    source_tokens = strip_padding(output.get("source_tokens") or [])
    if index >= len(copied_from) or copied_from[index] < 0:
        return ""
    origin = copied_from[index]
    title = f"copied from source token {origin + 1}"
    if origin < len(source_tokens):
        title += f", “{source_tokens[origin]}”"
    if index < len(probabilities) and probabilities[index] is not None:
        title += f", probability {probabilities[index]:.2f}"
    return title


def shown_sentence(sentence: GainedSentence) -> ShownSentence:
    """Returns a sentence, with what two language models gave the words that tell them apart."""
    pieces = []
    for word, (own, other) in zip(sentence["words"], sentence["probabilities"], strict=True):
        ahead = own >= TOLD_APART * other
        title = ""
        if ahead or other >= TOLD_APART * own:
            title = f"“{word.strip() or 'line end'}”: probability {own:.2g} against {other:.2g}"
        pieces.append(ScoredPiece(word.strip() or "¶", title, ahead))
    return ShownSentence(sentence["gain"], pieces)


def strip_padding(tokens: Sequence[str]) -> list[str]:
    """Returns tokens without the empty ones at the end."""
    stripped = list(tokens)
    while stripped and not stripped[-1]:
        stripped.pop()
    return stripped


def join_tokens(tokens: Sequence[str]) -> str:
    """Returns tokens as the text that they are cut from, with pictures of its white space."""
    return "".join(piece.space + piece.text for piece in _pieces(tokens))


def _pieces(tokens: Sequence[str]) -> list[Piece]:
    """Returns for each token its text without joiner, and the space that goes before it."""
    pieces = []
    # Nothing goes before the first token.
    touching = True
    for index, token in enumerate(tokens):
        is_space = white_space.is_white_space(token)
        space = "" if touching or is_space or token.startswith(JOINER) else " "
        touching = is_space or token.endswith(JOINER)
        pieces.append(Piece(token.replace(JOINER, ""), space, index))
    return [piece for piece in pieces if piece.text]
