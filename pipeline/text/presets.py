"""The tokenizer of a pre-trained model of keras-hub."""

import dataclasses
from typing import Any

from pipeline.common.errors import VerbatimError
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.text import preset_units


class PresetError(VerbatimError, ValueError):
    """A pre-trained model cannot be used; one sentence."""


@dataclasses.dataclass(frozen=True)
class PresetTokens:
    """What a pre-trained model reads.

    Attributes:
        model: its sentencepiece model, as bytes.
        specials: its ids of padding, unknown pieces, the token that its decoder reads first, and
            the end.
    """

    model: bytes
    specials: tuple[int, int, int, int]

    @classmethod
    def read(cls, preset: str) -> "PresetTokens":
        """Reads the tokenizer of a preset.

        Args:
            preset: `model.preset`, a name or a folder.

        Raises:
            PresetError: it cannot be read, or is none of sentencepiece.
        """
        import sentencepiece

        tokenizer = load(preset, lambda hub: hub.tokenizers.Tokenizer)
        model: bytes | None = getattr(tokenizer, "proto", None)
        if model is None:
            raise PresetError(
                f"The preset {preset} of model.preset has a {type(tokenizer).__name__}, which is "
                "none of sentencepiece: name a T5."
            )
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        # A T5 decoder begins with padding.
        pad, end = tokenizer.pad_token_id, tokenizer.end_token_id
        return cls(model, (pad, processor.unk_id(), pad, end))

    def cutting_model(self) -> bytes:
        """Returns the model that `preset_units.PresetTokenizer` takes."""
        return preset_units.without_normalisation(self.model)


def load(preset: str, kind: Any) -> Any:
    """Loads a part of a preset.

    Args:
        preset: `model.preset`, a name or a folder.
        kind: function of the module `keras_hub` that returns the class of the part.

    Raises:
        PresetError: keras-hub is not installed, or the preset cannot be loaded.
    """
    from keras_models.models.keras_hub_layers import import_keras_hub, without_mask_warnings

    try:
        hub = import_keras_hub()
    except ImportError as error:
        raise PresetError(str(error)) from None
    try:
        with without_mask_warnings():
            return kind(hub).from_preset(preset)
    # keras-hub raises whatever its download or its files raise.
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise PresetError(
            f"The preset {preset} of model.preset cannot be loaded ({reason}): name a preset of "
            "keras-hub, or the folder of one."
        ) from error


def check(recipe: RecipeKeys) -> None:
    """Reads the tokenizer of a recipe's preset, so that errors are known before anything runs.

    Raises:
        PresetError: see `PresetTokens.read`.
    """
    if recipe.model.preset:
        PresetTokens.read(recipe.model.preset)
