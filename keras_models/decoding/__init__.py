"""Decoding as pure functions over a step function, with `keras.ops` only."""

from keras_models.decoding.beam import beam_search as beam_search
from keras_models.decoding.constraints import Protection as Protection
from keras_models.decoding.continuation import continue_text as continue_text
from keras_models.decoding.greedy import greedy_search as greedy_search
from keras_models.decoding.hypotheses import Hypotheses as Hypotheses
from keras_models.decoding.hypotheses import StepOutput as StepOutput
from keras_models.decoding.model import decode as decode
from keras_models.decoding.order import Order as Order
from keras_models.decoding.piece_repeats import PieceRepeats as PieceRepeats
from keras_models.decoding.sampling import draw_uniforms as draw_uniforms
from keras_models.decoding.sampling import sample_search as sample_search
from keras_models.decoding.whole_words import WholeWords as WholeWords
from keras_models.former_paths import restore

restore("keras_models.decoding")
