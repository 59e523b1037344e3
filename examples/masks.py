"""What a mask does to a copy distribution.

Texts of a batch are padded to one length. A head must never copy from the padding, and an answer
must not depend on the other texts of the batch. The embedding of this model has `mask_zero=True`:
Keras passes the mask from layer to layer, and a head that reads `memory_states` uses it. If a layer
drops Keras' mask, give the head `mask=` yourself. The last part shows what happens without a mask.

Run it from the root of the repository, on TensorFlow or with KERAS_BACKEND=jax:

    python examples/masks.py
"""

import random

import keras
import numpy as np
from keras import layers, ops

from keras_models import losses
from keras_models.heads import PointerSentinel
from keras_models.token_ids import TokenIds

keras.utils.set_random_seed(0)

# Lists of one to six words. The model has to find the name among them.
draw = random.Random(0)
FILLERS = ["a", "the", "very", "old", "big", "new"]


def make_text(name, before, after):
    words = [draw.choice(FILLERS) for _ in range(before + after)]
    return [*words[:before], name, *words[before:]]


def make_name():
    return "".join(draw.choice("bdfglmnprst") + draw.choice("aeiou") for _ in "123").title()


names = [make_name() for _ in range(256)]
texts = [make_text(name, draw.randint(0, 3), draw.randint(0, 2)) for name in names]
special = ["[PAD]", "[UNK]", "[START]", "[END]"]
token_ids = TokenIds([*special, *FILLERS], [*special, "name:"])
features = token_ids.pairs(texts, [["name:", name] for name in names])
V = token_ids.target_vocabulary_size
print("padded sources:", features["source_ids"][:3].tolist(), sep="\n")

# The encoder skips padding because of `mask_zero`, and its states carry the mask to the head.
SIZE = 32
inputs = {
    name: keras.Input((None,), dtype="int32", name=name)
    for name in ("source_ids", "source_extended_ids", "target_input_ids", "target_extended_ids")
}
embed_source = layers.Embedding(token_ids.source_vocabulary_size, SIZE, mask_zero=True)
states, last = layers.GRU(SIZE, return_sequences=True, return_state=True)(
    embed_source(inputs["source_ids"])
)
hidden = layers.GRU(SIZE, return_sequences=True)(
    layers.Embedding(V, SIZE)(inputs["target_input_ids"]), initial_state=last
)
head = PointerSentinel(V)
arguments = {
    "hidden": hidden,
    "memory_states": states,
    "source_extended_ids": inputs["source_extended_ids"],
}
model = keras.Model(inputs, head(**arguments, targets=inputs["target_extended_ids"]))
model.compile(keras.optimizers.Adam(0.01), loss=losses.negative_log_likelihood)
labels = features["target_extended_ids"]
model.fit({name: features[name] for name in inputs}, labels, epochs=10, verbose=2)

# The whole distribution of each step: for a text alone, and for the same text beside a longer one.
distributions = keras.Model(
    [inputs[name] for name in ("source_ids", "source_extended_ids", "target_input_ids")],
    head(**arguments),
)
short, long = ["the", "Zanzibar"], ["a", "very", "old", "big", "Quxodyne", "new", "the"]


def probabilities(texts):
    """Returns the probabilities of the step after `name:`, `[texts, V + source_length]`."""
    source = token_ids.sources(texts)
    previous = np.tile([[token_ids.start_id, V - 1]], (len(texts), 1))
    found = distributions([source["source_ids"], source["source_extended_ids"], previous])
    return np.exp(ops.convert_to_numpy(found)[:, 1])


alone, beside = probabilities([short])[0], probabilities([short, long])
for text, row in zip([short, long], beside):
    # The likeliest outcome is the name, a word that no training text has.
    output = token_ids.tokens([row.argmax()], text)
    print(" ".join(text), " -> ", *output)
    assert output == [text[-1 if text is short else 4]]
np.testing.assert_allclose(beside[0, : V + 2], alone, rtol=1e-4)
# Padding has the extended id 0, [PAD]. Five positions of padding have added nothing to it.
print(f"p([PAD]) alone {alone[0]:.1e}, beside the longer text {beside[0, 0]:.1e}")

# The same step without a mask, because plain arrays carry none. The GRU repeats its last state at
# padding, so the padding looks like the name, and gets most of the name's copy probability.
source = token_ids.sources([short, long])
previous = np.tile([[token_ids.start_id, V - 1]], (2, 1))
read = keras.Model([inputs["source_ids"], inputs["target_input_ids"]], [hidden, states])
found = [ops.convert_to_numpy(x) for x in read([source["source_ids"], previous])]
memory = {"states": found[1], "extended_ids": source["source_extended_ids"]}
mask = source["source_ids"] != 0
copied = {}
for name, options in {"without a mask": {}, "with the mask": {"mask": mask}}.items():
    _, copy_log_probs = head.step_log_probs({"hidden": found[0][:, 1]}, {**memory, **options})
    copied[name] = np.exp(ops.convert_to_numpy(copy_log_probs))[0]
    print(f"{name:15} positions of '{' '.join(short)}' are copied with {copied[name].round(3)}")
assert copied["without a mask"][2:].sum() > 0.5
assert (copied["with the mask"][2:] == 0).all() and copied["with the mask"][1] > 0.9
