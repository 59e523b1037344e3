"""The tokenizer of a pre-trained model of keras-hub."""

import dataclasses
from typing import Any

from pipeline.common.errors import VerbatimError
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.text import preset_units
from pipeline.text.byte_pairs import BytePairs


class PresetError(VerbatimError, ValueError):
    """A pre-trained model cannot be used; one sentence."""


@dataclasses.dataclass(frozen=True)
class PresetTokens:
    """What a pre-trained model reads.

    Attributes:
        model: its sentencepiece model, or its byte pairs, as bytes.
        specials: its ids of padding, unknown pieces, the token that its decoder reads first, and
            the end; -1 for what it does not have.
    """

    model: bytes
    specials: tuple[int, int, int, int]

    @classmethod
    def read(cls, preset: str) -> "PresetTokens":
        """Reads the tokenizer of a preset.

        Args:
            preset: `model.preset`, a name or a folder.

        Raises:
            PresetError: it cannot be read, or is of a kind that cannot be used.
        """
        from keras_models.models.keras_hub_backbones import ENCODER_DECODERS, ENCODERS

        tokenizer = load(preset, lambda hub: hub.tokenizers.Tokenizer)
        network = tokenizer.backbone_cls.__name__
        if network not in (*ENCODER_DECODERS, *ENCODERS):
            raise PresetError(
                f"The preset {preset} of model.preset is a {network}, which has no encoder that "
                "can be used: name a T5, a BART or a RoBERTa."
            )
        if model := getattr(tokenizer, "proto", None):
            import sentencepiece

            unknown = sentencepiece.SentencePieceProcessor(model_proto=model).unk_id()
            # A T5 decoder begins with padding.
            start = tokenizer.pad_token_id
        elif merges := getattr(tokenizer, "merges", None):
            model = BytePairs(tokenizer.vocabulary, merges).to_bytes()
            unknown = tokenizer.vocabulary.get("<unk>", -1)
            start = tokenizer.start_token_id
        else:
            raise PresetError(
                f"The preset {preset} of model.preset has a {type(tokenizer).__name__}, which "
                "cuts texts into WordPieces, from which a text cannot be restored: name a T5, a "
                "BART or a RoBERTa."
            )
        return cls(model, (tokenizer.pad_token_id, unknown, start, tokenizer.end_token_id))

    def cutting_model(self) -> bytes:
        """Returns the model that `preset_tokenizers.make` takes."""
        if BytePairs.are_in(self.model):
            return self.model
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
