"""The Beam step that finds the tokens of examples, which Subwords and Vocabulary count."""

from collections.abc import Iterator, Mapping, Sequence

import apache_beam as beam

from components.example_texts import parse_texts
from components.untyped_in_beam import untyped_in_beam
from pipeline.features import source_features
from pipeline.features.vocabulary_files import units_of
from pipeline.recipes.settings import TextSettings
from pipeline.text import units
from pipeline.text.tokenization import Tokenizer


class CountTokens(beam.DoFn):
    """Batches of serialized examples to (side, token) pairs, (column, tag) pairs, and (side's
    units, unit) pairs.

    Args:
        tokenizers: dict from each text feature to its tokenizer.
        columns: the features that are tags.
        settings, subwords_uri: arguments of `units.tokenizer_of`, if words are cut into units.
    """

    def __init__(
        self,
        tokenizers: Mapping[str, Tokenizer],
        columns: Sequence[str] = (),
        settings: TextSettings | None = None,
        subwords_uri: str | None = None,
    ) -> None:
        super().__init__()
        self._tokenizers = tokenizers
        self._columns = columns
        self._settings = settings
        self._subwords_uri = subwords_uri

    def setup(self) -> None:
        """Loads the models that cut words into units."""
        settings = self._settings
        self._units = (
            {
                side: units.tokenizer_of(settings, self._subwords_uri, side)
                for side in self._tokenizers
                if units.cuts(settings, side)
            }
            if settings
            else {}
        )

    @untyped_in_beam
    def process(self, serialized: Sequence[bytes]) -> Iterator[tuple[str, str]]:
        """Yields the tokens, units and tags of one batch."""
        parsed = parse_texts(serialized, (*self._tokenizers, *self._columns))
        for side, tokenizer in self._tokenizers.items():
            for token in tokenizer.tokenize(parsed[side]).flat_values.numpy():
                yield side, token.decode("utf-8")
        for side, cutter in self._units.items():
            for unit in cutter.tokenize(parsed[side]).flat_values.numpy():
                yield units_of(side), unit.decode("utf-8")
        for column in self._columns:
            for tag in source_features.split_tags(parsed[column]).flat_values.numpy():
                yield column, tag.decode("utf-8")
