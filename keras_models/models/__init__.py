"""Bodies: networks that feed a head."""

from keras_models.models.language_model import LanguageModel as LanguageModel
from keras_models.models.seq2seq import RecurrentSeq2Seq as RecurrentSeq2Seq
from keras_models.models.transformer import TransformerSeq2Seq as TransformerSeq2Seq
