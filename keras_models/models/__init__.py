"""Bodies: networks that feed a head."""

from keras_models.former_paths import restore
from keras_models.models import seq2seq
from keras_models.models.ensemble import Ensemble as Ensemble
from keras_models.models.keras_hub_seq2seq import KerasHubSeq2Seq as KerasHubSeq2Seq
from keras_models.models.language_model import LanguageModel as LanguageModel
from keras_models.models.recurrent_seq2seq import RecurrentSeq2Seq as RecurrentSeq2Seq
from keras_models.models.transformer_seq2seq import TransformerSeq2Seq as TransformerSeq2Seq

restore("keras_models.models")
# Its former place, beside its base.
seq2seq.RecurrentSeq2Seq = RecurrentSeq2Seq
