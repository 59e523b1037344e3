"""Backbones of keras-hub that a body can be made of: described, built again, copied."""

import keras

from keras_models.models.keras_hub_encoders import EncoderLayers
from keras_models.models.keras_hub_layers import (
    BartLayers,
    T5Layers,
    import_keras_hub,
    without_mask_warnings,
)

#: The encoder-decoders that a body can have, by their class names.
ENCODER_DECODERS = {"T5Backbone": T5Layers, "BartBackbone": BartLayers}
#: The encoders that a body can have under a decoder of ours.
ENCODERS = ("BertBackbone", "RobertaBackbone", "DistilBertBackbone")


def describe(backbone):
    """Returns what `rebuild` takes of a backbone, as JSON has it: its kind and its arguments.

    Raises:
        ValueError: a backbone of another kind.
    """
    kind = type(backbone).__name__
    if kind not in (*ENCODER_DECODERS, *ENCODERS):
        raise ValueError(
            f"The body 'keras_hub' needs an encoder-decoder, one of {', '.join(ENCODER_DECODERS)}, "
            f"or an encoder, one of {', '.join(ENCODERS)}; the preset is a {kind}."
        )
    left_out = ("name", "trainable", "dtype")
    config = backbone.get_config()
    return {
        "kind": kind,
        "arguments": {name: value for name, value in config.items() if name not in left_out},
    }


def rebuild(description, dropout, dtype, decoder_layers=1):
    """Returns a backbone of random weights, without its words' vectors, and its `BackboneLayers`.

    Args:
        description: what `describe` returned.
        dropout: share of units dropped; None is the preset's.
        dtype: dtype policy.
        decoder_layers: how many layers of ours decode what an encoder alone reads.
    """
    arguments = {**description["arguments"], "vocabulary_size": 1}
    if dropout is not None:
        arguments["dropout"] = dropout
    kind = description["kind"]
    make = getattr(import_keras_hub().models, kind)
    with without_mask_warnings():
        backbone = make(**arguments, dtype=dtype, name="backbone")
    # Words' vectors are the body's own.
    backbone.token_embedding.trainable = False
    if kind in ENCODERS:
        return backbone, EncoderLayers(backbone, decoder_layers)
    return backbone, ENCODER_DECODERS[kind](backbone)


def copy_weights(backbone, preset):
    """Gives a backbone the weights of another with the same layers, words' vectors aside."""
    for layer in preset.layers:
        if layer is preset.token_embedding or isinstance(layer, keras.layers.InputLayer):
            continue
        own = backbone.get_layer(layer.name)
        if hasattr(layer, "token_embedding"):
            # One layer for words and positions.
            own, layer = own.position_embedding, layer.position_embedding
        own.set_weights(layer.get_weights())
