"""Trains and measures language models on one long stream of words.

A corpus is one stream of ids. Training cuts it into `batch_size` contiguous rows and walks along
them. `fit` walks in one of two ways, with `stride` s and L, the model's `window`:

- `carry=False`: each update reads L words anew, takes the loss of the last s, and advances s. No
  state in the pointer's window is stale: all are computed again after each update (section 5.1 of
  Merity et al. 2016). Stride 1 is the paper's k_1 = 1, k_2 = L: each loss is backpropagated L
  steps, at L times the work. The LSTMs begin a window with the state that the last window had
  reached there. A row's first update takes the loss of all its words.
- `carry=True`: truncated backpropagation. Each update reads s new words and takes the loss of all
  of them. LSTM states and pointer window are carried over without gradient, as the weights before
  the update made them.

Everything runs on TensorFlow and JAX through Keras' own compiled steps.
"""

from keras_models.language_modeling.halving_schedule import HalvingSchedule as HalvingSchedule
from keras_models.language_modeling.stream_model import StreamModel as StreamModel
from keras_models.language_modeling.stream_model import perplexity as perplexity
from keras_models.language_modeling.stream_model import perplexity_of as perplexity_of
from keras_models.language_modeling.streams import PAD_ID as PAD_ID
from keras_models.language_modeling.streams import START_ID as START_ID
from keras_models.language_modeling.streams import Rows as Rows
from keras_models.language_modeling.streams import rows_of as rows_of
from keras_models.language_modeling.streams import updates_of as updates_of
from keras_models.language_modeling.training import FitOptions as FitOptions
from keras_models.language_modeling.training import fit as fit
