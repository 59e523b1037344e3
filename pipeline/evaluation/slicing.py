"""The slices of the test split that are computed of a source, those named in `COMPUTED`.

A slice by a column of the data needs nothing: the column is a feature of the examples.
`pipeline.evaluation.extractors` makes features of these.
"""

import bisect
import json
import os
from collections.abc import Set

import tensorflow as tf

from pipeline.features import vocabulary_files
from pipeline.metrics import buckets
from pipeline.recipes import sections
from pipeline.recipes.recipe import recipe_from_dict
from pipeline.text.tokenization import Tokenizer

COMPUTED = ("source_length", "unknown_words")


class SourceSlicer:
    """Computes the slices of a source.

    Args:
        tokenizer: a `Tokenizer`.
        vocabulary: set of the tokens that the source vocabulary has.
    """

    def __init__(self, tokenizer: Tokenizer, vocabulary: Set[str] = frozenset()) -> None:
        self.tokenizer = tokenizer
        self._vocabulary = vocabulary

    @classmethod
    def of_model(cls, model_path: str, needs_vocabulary: bool = True) -> "SourceSlicer":
        """Returns that of an exported model, which holds its vocabulary and its recipe.

        A model without a recipe has the default.
        """
        facts = os.path.join(model_path, "assets.extra", "verbatim.json")
        recipe = json.loads(_read(facts)).get("recipe") if tf.io.gfile.exists(facts) else None
        data = recipe_from_dict(recipe).data if recipe else sections.DataConfig()
        vocabulary: list[str] = []
        if needs_vocabulary:
            path = os.path.join(model_path, "assets", vocabulary_files.SOURCE_VOCABULARY_FILE)
            vocabulary = _read(path).split("\n")
        return cls(Tokenizer.of(data, "source"), frozenset(vocabulary))

    def features(self, source: str) -> dict[str, str]:
        """Returns the dict of computed features of a source, a string.

        `source_length` is the range of its number of tokens (`10-19`), and `unknown_words` whether
        the vocabulary lacks one of its words (`yes`, `no`); a placeholder that it lacks counts, for
        it can only be copied.
        """
        source = self.tokenizer.normalize(source)
        length = bisect.bisect_right(buckets.LENGTH_BUCKETS, self.tokenizer.count(source)) - 1
        unknown = any(word not in self._vocabulary for word in self.tokenizer.words(source))
        return {
            "source_length": buckets.bucket_names(buckets.LENGTH_BUCKETS)[length],
            "unknown_words": "yes" if unknown else "no",
        }


def _read(path: str) -> str:
    with tf.io.gfile.GFile(path) as file:
        text: str = file.read()
    return text
