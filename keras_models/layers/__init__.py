"""Copy mechanisms and their parts, one a file."""

from keras_models.layers.activations import NoisyTanh as NoisyTanh
from keras_models.layers.attention import SourceAttention as SourceAttention
from keras_models.layers.composition import CharacterComposition as CharacterComposition
from keras_models.layers.convolutional_encoder import ConvolutionalEncoder as ConvolutionalEncoder
from keras_models.layers.copy_head import CopyHead as CopyHead
from keras_models.layers.copynet import JointCopy as JointCopy
from keras_models.layers.lexicon import LexiconBias as LexiconBias
from keras_models.layers.lexicon import LexiconCopy as LexiconCopy
from keras_models.layers.lexicon import LexiconLinear as LexiconLinear
from keras_models.layers.pointer_generator import PointerGenerator as PointerGenerator
from keras_models.layers.pointer_network import PointerNetwork as PointerNetwork
from keras_models.layers.pointer_sentinel import PointerSentinel as PointerSentinel
from keras_models.layers.pointer_sentinel import PointerSentinelWindow as PointerSentinelWindow
from keras_models.layers.pointer_softmax import PointerSoftmax as PointerSoftmax
from keras_models.layers.recurrent import FeedbackCell as FeedbackCell
from keras_models.layers.regularized_lstm import VariationalDropout as VariationalDropout
from keras_models.layers.regularized_lstm import ZoneoutLSTM as ZoneoutLSTM
from keras_models.layers.segmentation_policy import SegmentationPolicy as SegmentationPolicy
from keras_models.layers.segmenting_encoder import SegmentingEncoder as SegmentingEncoder
from keras_models.layers.softmax import SoftmaxHead as SoftmaxHead
from keras_models.layers.span_copy import SpanCopy as SpanCopy
from keras_models.layers.transformer import MultiHeadAttention as MultiHeadAttention
from keras_models.layers.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from keras_models.layers.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from keras_models.layers.vocabulary import VocabularySoftmax as VocabularySoftmax
