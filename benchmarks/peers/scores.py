"""The quality of outputs that are words separated by spaces, as the corpus is."""

from collections.abc import Sequence

from benchmarks.peers import corpus


def of_words(
    metrics: Sequence[str], outputs: Sequence[str], references: Sequence[str]
) -> dict[str, float | None]:
    """Returns the metrics by name."""
    from pipeline.metrics import scoring
    from pipeline.metrics.scored_texts import ScoredTexts
    from pipeline.metrics.scoring_options import ScoringOptions

    options = ScoringOptions(
        language=corpus.LANGUAGES[1], tokenization="whitespace", bootstrap_samples=0
    )
    results = scoring.score(metrics, ScoredTexts(outputs, references), options)
    return {name: result.value for name, result in results.items()}
