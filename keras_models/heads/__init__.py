"""Copy mechanisms, one per file.

Each turns a decoder's state into a distribution over the extended vocabulary. `HEADS` lists those
that a recipe can name.
"""

from keras_models.former_paths import restore
from keras_models.heads.copy_head import CopyHead as CopyHead
from keras_models.heads.joint_copy import JointCopy as JointCopy
from keras_models.heads.lexicon_bias import LexiconBias as LexiconBias
from keras_models.heads.lexicon_copy import LexiconCopy as LexiconCopy
from keras_models.heads.lexicon_linear import LexiconLinear as LexiconLinear
from keras_models.heads.pointer_generator import PointerGenerator as PointerGenerator
from keras_models.heads.pointer_network import PointerNetwork as PointerNetwork
from keras_models.heads.pointer_sentinel import PointerSentinel as PointerSentinel
from keras_models.heads.pointer_sentinel_window import (
    PointerSentinelWindow as PointerSentinelWindow,
)
from keras_models.heads.pointer_softmax import PointerSoftmax as PointerSoftmax
from keras_models.heads.softmax_head import SoftmaxHead as SoftmaxHead
from keras_models.heads.span_copy import SpanCopy as SpanCopy

restore("keras_models.layers")

#: The heads that a recipe can name.
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
