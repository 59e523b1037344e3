"""Copy mechanisms and their parts, one a file."""

from keras_models.layers.attention import SourceAttention as SourceAttention
from keras_models.layers.copy_head import CopyHead as CopyHead
from keras_models.layers.pointer_generator import PointerGenerator as PointerGenerator
from keras_models.layers.pointer_sentinel import PointerSentinel as PointerSentinel
from keras_models.layers.pointer_sentinel import PointerSentinelWindow as PointerSentinelWindow
from keras_models.layers.recurrent import FeedbackCell as FeedbackCell
from keras_models.layers.regularized_lstm import VariationalDropout as VariationalDropout
from keras_models.layers.regularized_lstm import ZoneoutLSTM as ZoneoutLSTM
from keras_models.layers.softmax import SoftmaxHead as SoftmaxHead
