"""Which layers of a network a training leaves alone, and which learn more slowly."""

from collections.abc import Iterable

import keras

from keras_models.models.seq2seq import Seq2Seq


def freeze(model: Seq2Seq, parts: Iterable[str]) -> None:
    """Leaves parts of a network as they are, whatever it is trained on.

    Args:
        model: the network.
        parts: names of `Seq2Seq.stacks`.
    """
    stacks = model.stacks()
    for part in parts:
        for layers in stacks[part]:
            for layer in layers:
                layer.trainable = False


def shares(model: Seq2Seq, decay: float) -> dict[str, float]:
    """Returns the share of the learning rate that each weight has, by its path.

    What reads the last layers of encoder and decoder has 1, these have `decay`, the layers before
    them `decay`^2, and so on; embeddings have the smallest share of all.

    Args:
        model: the network.
        decay: from 0 to 1.
    """
    stacks = model.stacks()
    embeddings = stacks.pop("embeddings", [])
    depths = [
        (layer, len(stack) - number)
        for stack in stacks.values()
        for number, layers in enumerate(stack)
        for layer in layers
    ]
    below = 1 + max((depth for _, depth in depths), default=0)
    depths += [(layer, below) for layers in embeddings for layer in layers]
    return {weight.path: decay**depth for layer, depth in depths for weight in _weights_of(layer)}


def _weights_of(layer: keras.Layer) -> list[keras.Variable]:
    weights: list[keras.Variable] = layer.trainable_weights
    return weights
