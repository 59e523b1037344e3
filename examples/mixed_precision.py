"""A head in mixed precision, compiled by XLA.

Layers compute in bfloat16 and keep their weights in float32. A head adds up probabilities in
float32 whatever the policy is, so each distribution sums to 1, and a loss of log-probabilities
stays exact. `jit_compile=True` compiles the whole training step, and a decoding step as well.

Run it from the root of the repository, on TensorFlow or with KERAS_BACKEND=jax. The policy is an
argument; with float16 Keras scales the loss by itself:

    python examples/mixed_precision.py
    python examples/mixed_precision.py mixed_float16
"""

import random
import sys

import keras
import numpy as np
from keras import layers

from keras_models import losses
from keras_models.heads import PointerGenerator
from keras_models.token_ids import TokenIds

keras.utils.set_random_seed(0)
keras.config.set_dtype_policy(sys.argv[1] if len(sys.argv) > 1 else "mixed_bfloat16")

# Commands to sentences. The names are random; only the verbs can be learned.
VERBS = {"rm": "removes", "cat": "shows", "mv": "moves"}
draw = random.Random(0)


def make_pair(verb, name):
    return [verb, "-v", name], ["it", VERBS[verb], name]


def make_name():
    return "".join(draw.choice("bdfglmnprst") + draw.choice("aeiou") for _ in "123") + ".py"


pairs = [make_pair(draw.choice([*VERBS]), make_name()) for _ in range(256)]
special = ["[PAD]", "[UNK]", "[START]", "[END]"]
token_ids = TokenIds([*special, "-v", *VERBS], [*special, "it", *VERBS.values()])
features = token_ids.pairs(*zip(*pairs))
V = token_ids.target_vocabulary_size

SIZE = 32
inputs = {
    name: keras.Input((None,), dtype="int32", name=name)
    for name in ("source_ids", "source_extended_ids", "target_input_ids", "target_extended_ids")
}
states, last = layers.GRU(SIZE, return_sequences=True, return_state=True)(
    layers.Embedding(token_ids.source_vocabulary_size, SIZE)(inputs["source_ids"])
)
hidden = layers.GRU(SIZE, return_sequences=True)(
    layers.Embedding(V, SIZE)(inputs["target_input_ids"]), initial_state=last
)
context, attention = layers.AdditiveAttention()([hidden, states], return_attention_scores=True)
head = PointerGenerator(V)
arguments = {
    "hidden": hidden,
    "context": context,
    "attention": attention,
    "source_extended_ids": inputs["source_extended_ids"],
}
model = keras.Model(inputs, head(**arguments, targets=inputs["target_extended_ids"]))
model.compile(keras.optimizers.Adam(0.01), loss=losses.negative_log_likelihood, jit_compile=True)
labels = features["target_extended_ids"]
model.fit({name: features[name] for name in inputs}, labels, epochs=15, verbose=2)

print("decoder computes in", hidden.dtype, "and the head in", model.output.dtype)
assert hidden.dtype == keras.config.dtype_policy().compute_dtype != "float32"
assert model.output.dtype == "float32"
assert {weight.dtype for weight in model.trainable_weights} == {"float32"}

# Writing: `predict` compiles the distributions of all steps, too.
names = ["source_ids", "source_extended_ids", "target_input_ids"]
distributions = keras.Model({name: inputs[name] for name in names}, head(**arguments))
distributions.compile(jit_compile=True)
unseen = [make_pair("cat", "zebra_title.toml"), make_pair("mv", "Quxodyne")]
texts = [source for source, _ in unseen]
source = token_ids.sources(texts)
source.pop("source_feed_ids")
previous = np.zeros((len(texts), 5), "int32")
previous[:, 0] = token_ids.start_id
written = np.zeros((len(texts), 4), "int32")
for step in range(4):
    log_probs = distributions.predict({**source, "target_input_ids": previous}, verbose=0)
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=-1), 1, atol=1e-5)
    written[:, step] = best = log_probs[:, step].argmax(axis=-1)
    previous[:, step + 1] = np.where(best < V, best, token_ids.unknown_id)
for row, (text, target) in zip(written, unseen):
    output = token_ids.tokens(row, text)
    print(" ".join(text), " -> ", " ".join(output))
    assert output == target, output
