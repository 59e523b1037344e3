"""Which words of a network's vocabularies a pre-trained model knows, by which of its ids."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.common import progress
from pipeline.text import preset_tokenizers, tokenization
from pipeline.text.presets import PresetTokens


@dataclasses.dataclass(frozen=True)
class PresetWords:
    """The preset's ids of source and target words.

    Attributes:
        source, target: int32 `[words]`, -1 for words that the preset does not know.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]

    @classmethod
    def read(cls, preset: str, source: Sequence[str], target: Sequence[str]) -> "PresetWords":
        """Returns those of two vocabularies, and reports how many words are known.

        Args:
            preset: `model.preset`.
            source, target: the vocabularies, by id.

        Raises:
            PresetError: the preset cannot be read.
        """
        tokens = PresetTokens.read(preset)
        places = preset_tokenizers.possible_units(tokens.model)
        specials = (tokenization.PAD, tokenization.UNK, tokenization.START, tokenization.END)
        places.update(zip(specials, tokens.specials))
        ids = [
            np.array([places.get(word, -1) for word in words], np.int32)
            for words in (source, target)
        ]
        known = [f"{(side >= 0).sum():,} of {len(side):,}" for side in ids]
        progress.say(
            f"{known[0]} entries of the source vocabulary, and {known[1]} of the target's, start "
            f"with a vector of {preset}."
        )
        return cls(*ids)
