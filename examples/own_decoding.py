"""Greedy and beam search around a step function of your own.

`keras_models.decoding` knows no model. It asks a step function for the distribution of the next
token, and keeps the function's state (its carry) from step to step. The step function here is a GRU
with attention. The searches tell from which source position each token was copied.

Run it from the root of the repository, on TensorFlow or with KERAS_BACKEND=jax:

    python examples/own_decoding.py
"""

import random

import keras
import numpy as np
from keras import layers, ops

from keras_models import losses
from keras_models.decoding import StepOutput, beam_search, greedy_search
from keras_models.heads import JointCopy
from keras_models.layers import SourceAttention
from keras_models.layers.numerics import repeat_rows
from keras_models.token_ids import TokenIds

keras.utils.set_random_seed(0)

# Statements and their converses. The order of the words decides which city comes first.
RELATIONS = {"north": "south", "south": "north", "east": "west", "west": "east"}
draw = random.Random(0)


def make_name():
    return "".join(draw.choice("bdfglmnprst") + draw.choice("aeiou") for _ in "123").title()


def make_pair(relation, first, second):
    source = [first, "is", relation, "of", second]
    return source, [second, "is", RELATIONS[relation], "of", first]


pairs = [make_pair(draw.choice([*RELATIONS]), make_name(), make_name()) for _ in range(384)]
special = ["[PAD]", "[UNK]", "[START]", "[END]"]
words = [*special, "is", "of", *RELATIONS]
token_ids = TokenIds(words, words)
features = token_ids.pairs(*zip(*pairs))
V = token_ids.target_vocabulary_size

# The layers, and a model to train them. The decoder is a cell: it can make one step.
SIZE = 64
embed_source, embed_target = layers.Embedding(V, SIZE), layers.Embedding(V, SIZE)
encoder = layers.GRU(SIZE, return_sequences=True, return_state=True)
cell = layers.GRUCell(SIZE)
decoder = layers.RNN(cell, return_sequences=True)
attention = SourceAttention("additive", units=SIZE)
head = JointCopy(V)

inputs = {
    name: keras.Input((None,), dtype="int32", name=name)
    for name in ("source_ids", "source_extended_ids", "target_input_ids", "target_extended_ids")
}
mask = ops.not_equal(inputs["source_ids"], 0)
states, last = encoder(embed_source(inputs["source_ids"]), mask=mask)
decoder_state = decoder(embed_target(inputs["target_input_ids"]), initial_state=last)
context, _ = attention(decoder_state, states, mask=mask)
log_prob = head(
    hidden=decoder_state + context,
    decoder_state=decoder_state,
    memory_states=states,
    source_extended_ids=inputs["source_extended_ids"],
    mask=mask,
    targets=inputs["target_extended_ids"],
)
model = keras.Model(inputs, log_prob)
model.compile(keras.optimizers.Adam(0.01), loss=losses.negative_log_likelihood)
labels = features["target_extended_ids"]
model.fit({name: features[name] for name in inputs}, labels, epochs=12, verbose=2)

# What the search needs of the sources: the head's memory, and the first carry.
texts = ["Zanzibar is north of Quxodyne".split(), "Ubar is west of Atlantis".split()]
source = token_ids.sources(texts)
states, last = encoder(embed_source(source["source_ids"]), mask=source["source_ids"] != 0)
memory = {
    "states": states,
    "extended_ids": ops.convert_to_tensor(source["source_extended_ids"]),
    "mask": ops.convert_to_tensor(source["source_ids"] != 0),
    # What the head computes from the source alone.
    **head.prepare(states),
}


def step_function(memory):
    """Returns the step function of a search whose rows have this memory, one row each."""

    def step(actions, carry, index):
        """Reads the last actions, extended ids `[rows]`, and returns what may come next."""
        previous = ops.where(actions < V, actions, token_ids.unknown_id)
        decoder_state, _ = cell(embed_target(previous), [carry["state"]])
        context, log_weights = attention(decoder_state, memory["states"], mask=memory["mask"])
        state = {"hidden": decoder_state + context, "decoder_state": decoder_state}
        log_probs, copy_log_probs = head.step_log_probs(state, memory)
        return StepOutput(log_probs, copy_log_probs, ops.exp(log_weights), {"state": decoder_state})

    return step


search = {
    "carry": {"state": last},
    "extended_ids": memory["extended_ids"],
    "source_mask": memory["mask"],
    "extended_size": V + memory["extended_ids"].shape[1],
    "max_length": 8,
    "merges": head.merges,
}
greedy = greedy_search(step_function(memory), **search)
# Each source has `beam_size` running hypotheses, side by side.
best = beam_search(step_function(repeat_rows(memory, 4)), beam_size=4, n_best=2, **search)

expected = ["Quxodyne is south of Zanzibar", "Atlantis is east of Ubar"]
for row, text in enumerate(texts):
    output = token_ids.tokens(ops.convert_to_numpy(greedy.tokens)[row, 0], text)
    assert " ".join(output) == expected[row], output
    print(" ".join(text), " -> ", " ".join(output))
    for rank in range(2):
        tokens, places, score = (
            ops.convert_to_numpy(x)[row, rank] for x in (best.tokens, best.copied_from, best.scores)
        )
        hypothesis = token_ids.tokens(tokens, text)
        print(f"  {score:8.3f}  {' '.join(hypothesis)}  copied from {places[: len(hypothesis)]}")
    # The best of the beam is what greedy search found, and both names were copied.
    assert np.array_equal(best.tokens[row, 0], greedy.tokens[row, 0])
    assert ops.convert_to_numpy(best.copied_from)[row, 0, [0, 4]].tolist() == [4, 0]
