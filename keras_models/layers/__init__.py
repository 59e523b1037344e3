"""Parts of networks, one per file.

The names of `keras_models.heads`, the copy mechanisms, can be imported from here too.
"""

import importlib

from keras_models.layers.activations import NoisyTanh as NoisyTanh
from keras_models.layers.character_composition import CharacterComposition as CharacterComposition
from keras_models.layers.convolutional_encoder import ConvolutionalEncoder as ConvolutionalEncoder
from keras_models.layers.dropout import Dropout as Dropout
from keras_models.layers.recurrent import FeedbackCell as FeedbackCell
from keras_models.layers.regularized_lstm import VariationalDropout as VariationalDropout
from keras_models.layers.regularized_lstm import ZoneoutLSTM as ZoneoutLSTM
from keras_models.layers.segmentation_policy import SegmentationPolicy as SegmentationPolicy
from keras_models.layers.segmenting_encoder import SegmentingEncoder as SegmentingEncoder
from keras_models.layers.source_attention import SourceAttention as SourceAttention
from keras_models.layers.transformer import MultiHeadAttention as MultiHeadAttention
from keras_models.layers.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from keras_models.layers.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from keras_models.layers.vocabulary import VocabularySoftmax as VocabularySoftmax

# The heads are made of these layers, so their names are found when they are asked for. Loading
# them here registers them: Keras then finds them by name in a file that it loads.
_heads = importlib.import_module("keras_models.heads")


def __getattr__(name):
    if name[:1].isupper() and hasattr(_heads, name):
        return getattr(_heads, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *(name for name in dir(_heads) if name[:1].isupper())})
