"""An LSTM encoder-decoder of your own with a copy head, as a functional Keras model.

It shows how `TokenIds` makes ids and labels from lists of tokens, where a head stands in a
functional model, and how the same layers write an output token by token. The last lines check that
names from outside the training texts are copied to the right places.

Run it from the root of the repository, on TensorFlow or with KERAS_BACKEND=jax:

    python examples/lstm.py
"""

import random

import keras
import numpy as np
from keras import layers, ops

from keras_models import losses
from keras_models.heads import PointerGenerator
from keras_models.layers import SourceAttention
from keras_models.token_ids import TokenIds

keras.utils.set_random_seed(0)

# 1. Texts. Names are random, so that they cannot be learned by heart; only the verbs can.
VERBS = {"open": "ouvrir", "delete": "supprimer", "move": "déplacer", "print": "imprimer"}
draw = random.Random(0)


def make_name():
    return "%(" + "".join(draw.choice("bdfglmnprst") + draw.choice("aeiou") for _ in "123") + ")s"


def make_pair(verb, first, second=None):
    """Returns source and target. The second name comes first in the source."""
    if second is None:
        return [verb, first], [VERBS[verb], first]
    return ["in", second, verb, first], [VERBS[verb], first, "dans", second]


pairs = [
    make_pair(draw.choice([*VERBS]), *(make_name() for _ in range(draw.choice([1, 2]))))
    for _ in range(512)
]
sources, targets = zip(*pairs)

# 2. Ids and labels. No name is in a vocabulary, so a name's label is V (the size of the vocabulary)
# plus the name's position in the source.
special = ["[PAD]", "[UNK]", "[START]", "[END]"]
token_ids = TokenIds([*special, "in", *VERBS], [*special, "dans", *VERBS.values()])
features = token_ids.pairs(sources, targets)
V = token_ids.target_vocabulary_size

# 3. The layers. Training and writing use the same ones.
SIZE = 64
embed_source = layers.Embedding(token_ids.source_vocabulary_size, SIZE)
embed_target = layers.Embedding(V, SIZE)
encoder = layers.LSTM(SIZE, return_sequences=True, return_state=True)
decoder = layers.LSTM(SIZE, return_sequences=True, return_state=True)
attend = SourceAttention("additive", units=SIZE)
head = PointerGenerator(V)


def decode(previous, state, states, mask):
    """Returns what the head reads of the target's steps, and the decoder's next state."""
    hidden, *state = decoder(embed_target(previous), initial_state=state)
    context, log_weights = attend(hidden, states, mask=mask)
    return {"hidden": hidden, "context": context, "attention": ops.exp(log_weights)}, state


# 4. The model that is trained. Its outputs are the log-probabilities of the labels.
inputs = {
    name: keras.Input((None,), dtype="int32", name=name)
    for name in ("source_ids", "source_extended_ids", "target_input_ids", "target_extended_ids")
}
mask = ops.not_equal(inputs["source_ids"], 0)
states, *state = encoder(embed_source(inputs["source_ids"]), mask=mask)
steps, _ = decode(inputs["target_input_ids"], state, states, mask)
log_prob = head(
    **steps,
    source_extended_ids=inputs["source_extended_ids"],
    targets=inputs["target_extended_ids"],
)
model = keras.Model(inputs, log_prob)
model.compile(keras.optimizers.Adam(0.01), loss=losses.negative_log_likelihood)
labels = features["target_extended_ids"]
model.fit({name: features[name] for name in inputs}, labels, epochs=6, verbose=2)

# 5. The models that write: one reads the source, the other makes one step. Without targets the head
# returns the distribution over all V words and all source positions.
reader = keras.Model(inputs["source_ids"], [states, mask, *state])
previous = keras.Input((1,), dtype="int32")
state_inputs = [keras.Input((SIZE,)) for _ in range(2)]
states_input, mask_input = keras.Input((None, SIZE)), keras.Input((None,), dtype="bool")
steps, new_state = decode(previous, state_inputs, states_input, mask_input)
log_probs = head(**steps, source_extended_ids=inputs["source_extended_ids"])
stepper = keras.Model(
    [previous, *state_inputs, states_input, mask_input, inputs["source_extended_ids"]],
    [log_probs, *new_state],
)


def write(texts, max_length=8):
    """Returns the likeliest output of each text, token by token."""
    source = token_ids.sources(texts)
    states, mask, *state = map(ops.convert_to_numpy, reader(source["source_ids"]))
    previous, written = np.full((len(texts), 1), token_ids.start_id), []
    for _ in range(max_length):
        step = [previous, *state, states, mask, source["source_extended_ids"]]
        log_probs, *state = map(ops.convert_to_numpy, stepper(step))
        best = log_probs.argmax(axis=-1)
        written.append(best)
        # The decoder has no vector for a copied name: it reads [UNK], as in training.
        previous = np.where(best < V, best, token_ids.unknown_id)
    rows = np.concatenate(written, axis=1)
    return [token_ids.tokens(row, text) for row, text in zip(rows, texts)]


# 6. Names that no training text has.
unseen = [
    make_pair("delete", "%(zebra_title)s"),
    make_pair("move", "%(quxodyne)s", "%(xylofolder)s"),
    make_pair("open", "README.md", "/usr/share/doc"),
]
outputs = write([source for source, _ in unseen])
for (source, target), output in zip(unseen, outputs):
    print(" ".join(source), " -> ", " ".join(output))
    assert output == target, output
