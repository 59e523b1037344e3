"""How many terms of a glossary were translated as it says."""

import collections
import functools

from pipeline.metrics.base import Row, ScoringError, Share
from pipeline.metrics.scored_texts import Segment
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.text import terms
from serving.errors import RequestError
from serving.glossary import Glossary, count_in
from serving.glossary_files import read_glossary


@functools.lru_cache(maxsize=8)
def _glossary(path: str) -> Glossary:
    try:
        return read_glossary(path)
    except RequestError as error:
        raise ScoringError(str(error)) from None


class TermFidelity(Share):
    """Share of the glossary's terms in the sources whose translation the output holds.

        sum over segments and translations of min(count in output, count of its terms in source)
        / sum of counts of terms in source

    Terms are found as in a request with that glossary; those in placeholders, tags, URLs and
    options do not count. Case does not matter in the output.
    """

    counted = ("terms", "translated")
    needs_sources = True
    always_defined = False

    def __init__(self, options: ScoringOptions) -> None:
        if not options.glossary:
            raise ScoringError(
                "The metric 'term_fidelity' needs a glossary: name it with decoding.glossary, or "
                "--glossary."
            )
        self._glossary = _glossary(options.glossary)
        self._tokenizer = options.tokenizer

    def statistics(self, segment: Segment) -> Row:
        marked = self._glossary.mark(segment.source)
        asked = collections.Counter(
            translation.lower()
            for translation in terms.translations(self._tokenizer.tokens(marked))
        )
        held = {translation: count_in(segment.hypothesis, translation) for translation in asked}
        return [
            sum(min(number, held[translation]) for translation, number in asked.items()),
            sum(asked.values()),
        ]

    def own_signature(self) -> str:
        return f"case:lower|terms:{len(self._glossary.terms)}, whole words, clipped"
