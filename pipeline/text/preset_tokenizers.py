"""The units of a pre-trained model, of whatever kind its tokenizer is."""

from pipeline.text import preset_units, tokenization
from pipeline.text.byte_pairs import BytePairs, BytePairTokenizer
from pipeline.text.preset_units import PresetTokenizer


def make(tokenizer: tokenization.Tokenizer, model: bytes) -> PresetTokenizer:
    """Returns what cuts texts into the units of a model.

    Args:
        tokenizer: says what is protected, and whether texts are lowercased.
        model: what `PresetTokens.cutting_model` returned.
    """
    if BytePairs.are_in(model):
        return BytePairTokenizer(tokenizer, model)
    return PresetTokenizer(tokenizer, model)


def possible_units(model: bytes) -> dict[str, int]:
    """Returns the units of a model, each with the preset's id of it."""
    if BytePairs.are_in(model):
        return BytePairs.from_bytes(model).units()
    return preset_units.possible_units(model)
