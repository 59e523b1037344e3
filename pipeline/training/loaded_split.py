"""A split of transformed pairs, checked before a training."""

import dataclasses
from collections.abc import Sequence

from pipeline.common import progress
from pipeline.features import feature_names
from pipeline.recipes.recipe import Recipe
from pipeline.training import training_data
from pipeline.training.mixture import Mixture
from pipeline.training.sampled_units import SampledUnits
from pipeline.training.stored_pairs import StoredPairs
from pipeline.training.training_data import TrainingBatches
from pipeline.training.transformed_files import TrainingDataError


@dataclasses.dataclass(frozen=True)
class LoadedSplit:
    """The pairs of a split.

    Attributes:
        batches: their batches.
        digest: the same bytes wherever the examples are the same.
        pairs: how many there are.
        too_long: how many of them fit no bucket.
    """

    batches: TrainingBatches
    digest: bytes
    pairs: int
    too_long: int

    @classmethod
    def read(
        cls,
        files: Sequence[str],
        name: str,
        recipe: Recipe,
        seed: int | None = None,
        folder: str | None = None,
        cutting: SampledUnits | None = None,
    ) -> "LoadedSplit":
        """Reads a split; reports pairs that are left out.

        Args:
            files: patterns of files of transformed examples.
            name: what the pairs are called in messages.
            recipe: the `Recipe`.
            seed: of the order of the pairs in an epoch; None keeps their own.
            folder: where the pairs stand while they are trained on: see `StoredPairs.read`.
            cutting: cuts their words anew in each epoch, where that is asked for.

        Raises:
            TrainingDataError: no pair fits the buckets, the head cannot output a pair's target, a
                file is damaged, or the disk is full.
        """
        config = recipe.training
        training_data.check_head(recipe.model.head, files, name)
        features = feature_names.training_features(recipe)
        # The eval split is measured whole, whatever corpora its pairs come from.
        mixture = Mixture.of(recipe) if seed is not None else None
        pairs = StoredPairs.read(
            files,
            features,
            folder,
            with_corpora=mixture is not None,
            with_words=cutting is not None,
        )
        batches = TrainingBatches(
            pairs, config.bucket_lengths, config.batch_tokens, seed, mixture, cutting
        )
        longest = config.bucket_lengths[-1]
        if batches.too_long == len(pairs):
            raise TrainingDataError(
                f"None of the {len(pairs)} {name} pairs has at most {longest} tokens: raise the "
                "last of training.bucket_lengths."
            )
        if batches.too_long:
            progress.say(
                f"{batches.too_long} of {len(pairs)} {name} pairs are longer than {longest} tokens "
                "and were left out (training.bucket_lengths)."
            )
        return cls(batches, pairs.digest, len(pairs), batches.too_long)
