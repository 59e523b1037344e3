"""The heads a recipe can name."""

from keras_models.layers.pointer_generator import PointerGenerator
from keras_models.layers.pointer_sentinel import PointerSentinel
from keras_models.layers.softmax import SoftmaxHead

HEADS = {"softmax": SoftmaxHead, "pointer_generator": PointerGenerator, "pointer_sentinel": PointerSentinel}


def make_head(name, vocabulary_size, dtype=None):
    """Returns the head called `name`.

    Raises:
        ValueError: no head has that name.
    """
    if name not in HEADS:
        raise ValueError(f"There is no head named {name!r}; the heads are {', '.join(HEADS)}.")
    return HEADS[name](vocabulary_size, dtype=dtype, name="head")
