"""The texts that a multigram model is learned from."""

import hashlib
import json
from collections.abc import Iterator, Sequence

import apache_beam as beam

from components.example_texts import parse_texts
from components.untyped_in_beam import untyped_in_beam
from pipeline.text.tokenization import Tokenizer

#: How many texts are drawn; `pipeline.text.multigrams.CHARACTERS` limits them further.
TEXTS = 100_000


class DrawnTexts(beam.DoFn):
    """Batches of serialized examples to (digest of a source, its characters as JSON).

    Those of the smallest digests are a random choice, the same one in every run.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    @untyped_in_beam
    def process(self, serialized: Sequence[bytes]) -> Iterator[tuple[str, str]]:
        """Yields the texts of one batch that have characters."""
        texts = self._tokenizer.tokenize(parse_texts(serialized, ("source",))["source"])
        for row in texts.to_list():
            characters = [token.decode("utf-8") for token in row]
            if characters:
                # A string, of which 100,000 take a tenth of the memory that lists take.
                text = json.dumps(characters, ensure_ascii=False)
                yield hashlib.sha256(text.encode()).hexdigest(), text
