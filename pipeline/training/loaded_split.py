"""A split of transformed pairs in memory, checked before a training."""

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from pipeline.common import progress
from pipeline.features import feature_names
from pipeline.recipes.recipe import Recipe
from pipeline.training import training_data


@dataclasses.dataclass(frozen=True)
class LoadedSplit:
    """The pairs of a split.

    Attributes:
        examples: what `training_data.read_examples` returns.
        digest: the same bytes wherever the examples are the same.
        pairs: how many there are.
        too_long: how many of them fit no bucket.
    """

    examples: tf.data.Dataset
    digest: bytes
    pairs: int
    too_long: int

    @classmethod
    def read(cls, files: Sequence[str], name: str, recipe: Recipe) -> "LoadedSplit":
        """Reads a split; reports pairs that are left out.

        Args:
            files: patterns of files of transformed examples.
            name: what the pairs are called in messages.
            recipe: the `Recipe`.

        Raises:
            ValueError: no pair fits the buckets, or the head cannot output a pair's target.
        """
        config = recipe.training
        training_data.check_head(recipe.model.head, files, name)
        examples, digest = training_data.read_examples_and_digest(
            files, feature_names.training_features(recipe)
        )
        longest = config.bucket_lengths[-1]
        too_long, pairs = training_data.count_too_long(examples, config.bucket_lengths)
        if too_long == pairs:
            raise ValueError(
                f"None of the {pairs} {name} pairs has at most {longest} tokens: raise the last of "
                "training.bucket_lengths."
            )
        if too_long:
            progress.say(
                f"{too_long} of {pairs} {name} pairs are longer than {longest} tokens and were "
                "left out (training.bucket_lengths)."
            )
        return cls(examples, digest, pairs, too_long)
