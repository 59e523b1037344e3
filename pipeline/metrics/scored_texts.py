"""The texts to score: outputs, and their references and sources."""

import dataclasses
from collections.abc import Container, Mapping, Sequence
from typing import TypeAlias

#: The words seen in training on either side, or a mapping from each to how often the target side
#: has it.
TrainingWords: TypeAlias = Container[str] | Mapping[str, int]
#: The result of a model's signature `score` for a reference: log-probability, number of tokens.
Score: TypeAlias = Sequence[float]


@dataclasses.dataclass(frozen=True)
class Segment:
    """One output, with its references and source.

    Attributes:
        hypothesis: the output.
        references: one reference or more; each metric says how it reads several.
        source: the source, for a metric that needs it.
        score: that of the first reference by the model, for a metric that needs it.
    """

    hypothesis: str
    references: tuple[str, ...]
    source: str = ""
    score: Score = (0.0, 0)


@dataclasses.dataclass(frozen=True)
class ScoredTexts:
    """The outputs of one system for N segments, with their references and sources.

    Attributes:
        hypotheses: N outputs.
        references: N strings, or N lists or tuples of strings where segments have several. An empty
            string after a segment's first means no further reference.
        sources: N sources; copies, fidelity and unseen words need them.
        training_words: the words seen in training, for `unseen_copies`; metrics of rare or frequent
            words need a mapping to counts, such as a `collections.Counter`.
        scores: N scores of the first references by the model, for perplexity.
    """

    hypotheses: Sequence[str]
    references: Sequence[str | Sequence[str]]
    sources: Sequence[str] | None = None
    training_words: TrainingWords | None = None
    scores: Sequence[Score] | None = None

    def with_outputs(
        self, hypotheses: Sequence[str], scores: Sequence[Score] | None = None
    ) -> "ScoredTexts":
        """Returns the same segments with the outputs, and the scores, of another system."""
        return dataclasses.replace(self, hypotheses=hypotheses, scores=scores)

    def one_per_source(self) -> "ScoredTexts":
        """Returns one segment for each different source, with the references of all its segments.

        The output is that of the source's first segment: a model gives equal sources equal outputs.
        Scores, which belong to one reference, are left out.

        Raises:
            ValueError: there are no sources.
        """
        if self.sources is None:
            raise ValueError("These texts have no sources.")
        outputs: dict[str, str] = {}
        references: dict[str, list[str]] = {}
        for source, output, own in zip(self.sources, self.hypotheses, self.references, strict=True):
            outputs.setdefault(source, output)
            references.setdefault(source, []).extend(as_tuple(own))
        return dataclasses.replace(
            self,
            hypotheses=list(outputs.values()),
            references=list(references.values()),
            sources=list(outputs),
            scores=None,
        )


def as_tuple(references: str | Sequence[str]) -> tuple[str, ...]:
    """Returns one segment's references.

    An empty text after the first is none, as where files have unequal numbers.
    """
    if isinstance(references, str):
        return (references,)
    return (*references[:1], *(text for text in references[1:] if text))
