"""The copy mechanisms that a recipe can name."""

from keras_models.heads.joint_copy import JointCopy
from keras_models.heads.lexicon_bias import LexiconBias
from keras_models.heads.lexicon_copy import LexiconCopy
from keras_models.heads.lexicon_linear import LexiconLinear
from keras_models.heads.pointer_generator import PointerGenerator
from keras_models.heads.pointer_network import PointerNetwork
from keras_models.heads.pointer_sentinel import PointerSentinel
from keras_models.heads.pointer_softmax import PointerSoftmax
from keras_models.heads.softmax_head import SoftmaxHead
from keras_models.heads.span_copy import SpanCopy

HEADS = {
    "softmax": SoftmaxHead,
    "pointer_generator": PointerGenerator,
    "pointer_softmax": PointerSoftmax,
    "pointer_sentinel": PointerSentinel,
    "joint_copy": JointCopy,
    "pointer_network": PointerNetwork,
    "span_copy": SpanCopy,
    "lexicon_bias": LexiconBias,
    "lexicon_linear": LexiconLinear,
    "lexicon_copy": LexiconCopy,
}


def make_head(name, vocabulary_size, dtype=None, **options):
    """Returns the head called `name`.

    Args:
        name: a key of `HEADS`.
        vocabulary_size: V.
        dtype: dtype policy.
        **options: the head's own arguments.

    Raises:
        ValueError: no head has that name, or it has no such option.
    """
    if name not in HEADS:
        raise ValueError(f"There is no head named {name!r}; the heads are {', '.join(HEADS)}.")
    return HEADS[name](vocabulary_size, dtype=dtype, name="head", **options)
