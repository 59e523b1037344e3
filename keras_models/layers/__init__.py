"""Parts of networks, one a file;
the copy mechanisms are in `keras_models.heads`, and their names can be imported from here too.
"""

import importlib

from keras_models.layers.activations import NoisyTanh as NoisyTanh
from keras_models.layers.attention import SourceAttention as SourceAttention
from keras_models.layers.composition import CharacterComposition as CharacterComposition
from keras_models.layers.convolutional_encoder import ConvolutionalEncoder as ConvolutionalEncoder
from keras_models.layers.recurrent import FeedbackCell as FeedbackCell
from keras_models.layers.regularized_lstm import VariationalDropout as VariationalDropout
from keras_models.layers.regularized_lstm import ZoneoutLSTM as ZoneoutLSTM
from keras_models.layers.segmentation_policy import SegmentationPolicy as SegmentationPolicy
from keras_models.layers.segmenting_encoder import SegmentingEncoder as SegmentingEncoder
from keras_models.layers.transformer import MultiHeadAttention as MultiHeadAttention
from keras_models.layers.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from keras_models.layers.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from keras_models.layers.vocabulary import VocabularySoftmax as VocabularySoftmax

#: Names of `keras_models.heads`, found there when they are asked for: the heads are made of these
#: layers.
_HEADS = (
    *(
        "CopyHead",
        "JointCopy",
        "LexiconBias",
        "LexiconCopy",
        "LexiconLinear",
        "PointerGenerator",
        "PointerNetwork",
    ),
    *("PointerSentinel", "PointerSentinelWindow", "PointerSoftmax", "SoftmaxHead", "SpanCopy"),
)


def __getattr__(name):
    if name in _HEADS:
        return getattr(importlib.import_module("keras_models.heads"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_HEADS])
