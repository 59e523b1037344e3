"""A Transformer of your own with a copy head, as a subclassed Keras model.

It shows the call that is the same for every head, with all arguments by name. To use another head,
change one word, which is an argument of the command line here:

    python examples/transformer.py
    python examples/transformer.py joint_copy

Run it from the root of the repository, on TensorFlow or with KERAS_BACKEND=jax. The last lines
check that a name from outside the training texts is copied. With `softmax`, which cannot copy, this
check fails.
"""

import random
import sys

import keras
import numpy as np
from keras import layers, ops

from keras_models import losses
from keras_models.heads import HEADS
from keras_models.token_ids import TokenIds

keras.utils.set_random_seed(0)


class Copier(keras.Model):
    """One layer of encoder, one of decoder, and a head.

    Args:
        source_size, target_size: numbers of ids.
        head: a head of `target_size` words.
        size: size of all vectors.
    """

    def __init__(self, source_size, target_size, head, size=64):
        super().__init__()
        self.embed_source = layers.Embedding(source_size, size)
        self.embed_target = layers.Embedding(target_size, size)
        self.embed_position = layers.Embedding(16, size)
        self.encoder = layers.MultiHeadAttention(4, size // 4)
        self.decoder = layers.MultiHeadAttention(4, size // 4)
        self.attend = layers.MultiHeadAttention(2, size // 2)
        self.encoder_norms = [layers.LayerNormalization() for _ in range(2)]
        self.decoder_norms = [layers.LayerNormalization() for _ in range(3)]
        self.encoder_dense = [layers.Dense(2 * size, activation="relu"), layers.Dense(size)]
        self.decoder_dense = [layers.Dense(2 * size, activation="relu"), layers.Dense(size)]
        self.head = head

    def embed(self, words, ids):
        return words(ids) + self.embed_position(ops.arange(ops.shape(ids)[1]))

    def call(self, inputs, training=False):
        """Returns log-probabilities: of the labels if `inputs` has them, else of every outcome."""
        mask = ops.not_equal(inputs["source_ids"], 0)
        attends = ops.expand_dims(mask, 1)

        x = self.embed(self.embed_source, inputs["source_ids"])
        x = self.encoder_norms[0](x + self.encoder(x, x, attention_mask=attends))
        memory = self.encoder_norms[1](x + self.encoder_dense[1](self.encoder_dense[0](x)))

        embedded = y = self.embed(self.embed_target, inputs["target_input_ids"])
        y = self.decoder_norms[0](y + self.decoder(y, y, use_causal_mask=True))
        context, attention = self.attend(
            y, memory, attention_mask=attends, return_attention_scores=True
        )
        y = self.decoder_norms[1](y + context)
        hidden = self.decoder_norms[2](y + self.decoder_dense[1](self.decoder_dense[0](y)))

        return self.head(
            hidden=hidden,
            context=context,
            attention=ops.mean(attention, axis=1),
            inputs=embedded,
            memory_states=memory,
            source_extended_ids=inputs["source_extended_ids"],
            mask=mask,
            targets=inputs.get("target_extended_ids"),
        )


# Texts to learn from. The names are random; only words can be learned.
COLOURS = {"red": "rouge", "green": "vert", "blue": "bleu", "white": "blanc"}
draw = random.Random(0)


def make_pair(colour, name):
    return ["the", colour, "file", name, "is", "new"], ["le", "fichier", COLOURS[colour], name]


def make_name():
    return "".join(draw.choice("bdfglmnprst") + draw.choice("aeiou") for _ in "123") + ".txt"


pairs = [make_pair(draw.choice([*COLOURS]), make_name()) for _ in range(192)]
special = ["[PAD]", "[UNK]", "[START]", "[END]"]
token_ids = TokenIds(
    [*special, "the", "file", "is", "new", *COLOURS],
    [*special, "le", "fichier", *COLOURS.values()],
)
features = token_ids.pairs(*zip(*pairs))
V = token_ids.target_vocabulary_size

# `SpanCopy` with spans of one token has the outcomes of the other heads.
name = sys.argv[1] if len(sys.argv) > 1 else "pointer_generator"
head = HEADS[name](V, **({"max_span": 1} if name == "span_copy" else {}))

model = Copier(token_ids.source_vocabulary_size, V, head)
model.compile(keras.optimizers.Adam(0.003), loss=losses.negative_log_likelihood)
model.fit(features, features["target_extended_ids"], epochs=6, verbose=2)

# A name that no training text has, and a name of several words.
unseen = [make_pair("blue", "zebra_title.png"), make_pair("white", "Ágnes Őry")]
texts = [source for source, _ in unseen]
source = token_ids.sources(texts)
previous = np.zeros((len(texts), 8), "int32")
previous[:, 0] = token_ids.start_id
written = np.zeros((len(texts), 7), "int32")
for step in range(7):
    # The decoder reads its own output so far. It does not see later positions.
    log_probs = ops.convert_to_numpy(model({**source, "target_input_ids": previous}))
    written[:, step] = best = log_probs[:, step].argmax(axis=-1)
    previous[:, step + 1] = np.where(best < V, best, token_ids.unknown_id)
for row, (text, target) in zip(written, unseen):
    output = token_ids.tokens(row, text)
    print(" ".join(text), " -> ", " ".join(output))
    assert output == target, output
