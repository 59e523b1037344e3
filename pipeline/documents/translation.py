"""Translates the segments of documents with a model, and says what became of each."""

import concurrent.futures
import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.common import progress
from pipeline.documents.document import Document, with_ends_of

if TYPE_CHECKING:
    from serving.answers import Answer
    from serving.glossary import Glossary
    from serving.model import Model

_BATCH = 32


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of a segment.

    Attributes:
        answers: the model's outputs, the best first; none if it refused the text.
        reason: why there is no translation; empty if there is one.
    """

    answers: Sequence["Answer"] = ()
    reason: str = ""


def answer_texts(
    model: "Model", texts: Sequence[str], n_best: bool, glossary: "Glossary | None" = None
) -> dict[str, Outcome]:
    """Returns the model's answers to texts; each text is asked once.

    Args:
        model: the model.
        texts: the texts; a repeated one costs nothing.
        n_best: whether to return all outputs of the beam.
        glossary: translations of phrases; or None.

    Raises:
        RequestError: the model cannot answer at all.
    """
    # Similar lengths share a batch; the longest begins first, so that no core is left alone with
    # it at the end.
    order = sorted(dict.fromkeys(texts), key=len, reverse=True)
    parts = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
    ask = model.n_best if n_best else model.predict

    def answer(part: Sequence[str]) -> Sequence[Any]:
        return ask(part, glossary=glossary, return_exceptions=True)

    outcomes: dict[str, Outcome] = {}
    with (
        progress.counted("translating", len(order), "texts") as advance,
        concurrent.futures.ThreadPoolExecutor(model.concurrency) as pool,
    ):
        waiting = {pool.submit(answer, part): part for part in parts}
        try:
            for done in concurrent.futures.as_completed(waiting):
                part = waiting[done]
                outcomes.update(zip(part, map(outcome_of, done.result())))
                advance(len(part))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return outcomes


def outcome_of(answer: Any) -> Outcome:
    """Returns the outcome of one answer, or list of answers, or `RequestError`."""
    if isinstance(answer, Exception):
        # One text alone has no place that a user could know.
        return Outcome(reason=getattr(answer, "reason", str(answer)))
    return Outcome(answer if isinstance(answer, list) else [answer])


def choose(
    document: Document, outcomes: Mapping[str, Outcome]
) -> tuple[dict[int, str], list[Outcome]]:
    """Chooses the translation of each segment of a document.

    Args:
        document: the document.
        outcomes: that of each of its texts.

    Returns:
        (place to translation, the outcome of each segment).
    """
    texts: dict[int, str] = {}
    of_segments: list[Outcome] = []
    for place, segment in enumerate(document.segments):
        outcome = outcomes[segment.text]
        if not outcome.reason:
            text = with_ends_of(segment.text, outcome.answers[0].text)
            reason = document.refuse(place, text) if text.strip() else "the model's output is empty"
            outcome = dataclasses.replace(outcome, reason=reason)
            if not reason:
                texts[place] = text
        of_segments.append(outcome)
    return texts, of_segments


def refused_places(document: Document, outcomes: Sequence[Outcome]) -> list[tuple[int, str]]:
    """Returns (line, reason) of each place that stays untranslated, sorted.

    Args:
        document: the document.
        outcomes: that of each of its segments.
    """
    return sorted(
        [
            *document.problems,
            *(
                (segment.line, outcome.reason)
                for segment, outcome in zip(document.segments, outcomes)
                if outcome.reason
            ),
        ]
    )
