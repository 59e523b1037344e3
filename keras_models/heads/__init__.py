"""Copy mechanisms, one a file:
what turns a decoder's state into a distribution over the extended vocabulary.

`registry` knows those that a recipe can name.
"""

from keras_models.heads.copy_head import CopyHead as CopyHead
from keras_models.heads.copynet import JointCopy as JointCopy
from keras_models.heads.lexicon import LexiconBias as LexiconBias
from keras_models.heads.lexicon import LexiconCopy as LexiconCopy
from keras_models.heads.lexicon import LexiconLinear as LexiconLinear
from keras_models.heads.pointer_generator import PointerGenerator as PointerGenerator
from keras_models.heads.pointer_network import PointerNetwork as PointerNetwork
from keras_models.heads.pointer_sentinel import PointerSentinel as PointerSentinel
from keras_models.heads.pointer_sentinel import PointerSentinelWindow as PointerSentinelWindow
from keras_models.heads.pointer_softmax import PointerSoftmax as PointerSoftmax
from keras_models.heads.softmax import SoftmaxHead as SoftmaxHead
from keras_models.heads.span_copy import SpanCopy as SpanCopy
