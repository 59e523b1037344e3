"""Compares the words that a model finds with those of a text that has spaces."""

from collections.abc import Mapping, Sequence, Set
from typing import Any, TypedDict, cast

EXAMPLES = 12


class WordScores(TypedDict):
    """Scores of found words.

    Attributes:
        word_f1: the F1 of words that are found whole, the field's measure of segmentation (Sproat
            and Emerson 2003), with `word_precision` and `word_recall`.
        boundary_f1: that of the boundaries between words, without a text's ends.
        mean_length, expected_mean_length: characters of a found word, and of the text's own.
    """

    word_f1: float
    word_precision: float
    word_recall: float
    boundary_f1: float
    mean_length: float
    expected_mean_length: float


class Example(TypedDict):
    """The words found in one text, and its own; None where no text has spaces."""

    found: list[str]
    expected: list[str] | None


class SegmentationScores(WordScores, total=False):
    """Scores of the words that a model found in its sources.

    Those of `WordScores` are missing if no source has a space.

    Attributes:
        left_out: the number of texts whose characters differ from those of the found words: they
            were normalized, or cut.
        examples: of the first texts.
    """

    left_out: int
    examples: list[Example]


def _spans(words: Sequence[str]) -> set[tuple[int, int]]:
    """Returns the (first, behind the last) character places of words, without white space."""
    spans, place = set(), 0
    for word in words:
        spans.add((place, place + len(word)))
        place += len(word)
    return spans


def _f1(common: int, found: int, expected: int) -> float:
    return 2 * common / (found + expected) if found + expected else 0.0


def _add(totals: list[int], found: Set[object], expected: Set[object]) -> None:
    totals[0] += len(found & expected)
    totals[1] += len(found)
    totals[2] += len(expected)


def score(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> WordScores:
    """Compares segmentations of the same texts; the scores are of all texts together.

    Args:
        found, expected: the words of each text; each pair has the same characters.

    Raises:
        ValueError: two segmentations are of different texts.
    """
    # In common, found, expected.
    words = [0, 0, 0]
    bounds = [0, 0, 0]
    characters = 0
    for one, other in zip(found, expected, strict=True):
        if "".join(one) != "".join(other):
            raise ValueError(
                f"The segmentations {' '.join(one)!r} and {' '.join(other)!r} are not of the same "
                "text."
            )
        spans = _spans(one), _spans(other)
        ends = [{last for _, last in group} - {len("".join(one))} for group in spans]
        _add(words, *spans)
        _add(bounds, *ends)
        characters += len("".join(one))
    return {
        "word_f1": _f1(*words),
        "word_precision": words[0] / words[1] if words[1] else 0.0,
        "word_recall": words[0] / words[2] if words[2] else 0.0,
        "boundary_f1": _f1(*bounds),
        "mean_length": characters / words[1] if words[1] else 0.0,
        "expected_mean_length": characters / words[2] if words[2] else 0.0,
    }


def describe(scores: SegmentationScores) -> str:
    """Returns the scores as one line."""
    number = scores.get("left_out", 0)
    left_out = (
        f"; {number} texts left out, whose characters normalization or limits changed"
        if number
        else ""
    )
    return (
        f"F1 of words {100 * scores['word_f1']:.1f} %, of boundaries "
        f"{100 * scores['boundary_f1']:.1f} %; {scores['mean_length']:.2f} characters per word "
        f"(the text's own have {scores['expected_mean_length']:.2f}){left_out}"
    )


def of_answers(sources: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> SegmentationScores:
    """Compares the words that a model found with those of its sources, if these have spaces.

    Args:
        sources: the texts.
        answers: the model's answers, with `source_tokens`.
    """
    # Separated by white space, except for the text inside a placeholder or tag, which is one token.
    found = [answer["source_tokens"] for answer in answers]
    compared = [
        ([word.replace(" ", "") for word in words], source.split())
        for words, source in zip(found, sources, strict=True)
    ]
    compared = [pair for pair in compared if "".join(pair[0]) == "".join(pair[1])]
    has_spaces = any(len(expected) > 1 for _, expected in compared)
    scores = cast(SegmentationScores, score(*zip(*compared)) if has_spaces else {})
    scores["left_out"] = len(answers) - len(compared)
    scores["examples"] = [
        {"found": one, "expected": other if has_spaces else None}
        for one, other in compared[:EXAMPLES]
    ]
    return scores
