# %% [markdown]
# # A copy head on a T5 of keras-hub
#
# This example puts a copy head of `keras_models` on the hidden states of a T5 from
# [keras-hub](https://keras.io/keras_hub/). It cuts the texts with T5's own tokenizer, and writes
# outputs with the beam search of `keras_models.decoding`. The T5 is small and has random weights,
# so nothing is downloaded. The example needs keras-hub, and sentencepiece to make the tokenizer.
# Run it from the root of the repository, on TensorFlow or with `KERAS_BACKEND=jax`:
#
#     python examples/keras_hub_t5.py
#
# To fine-tune a preset, see also `keras_models.models.KerasHubSeq2Seq`: it takes a preset's weights
# and decodes without running the whole network for each token.

# %%
import functools
import io
import random
import re

import keras
import keras_hub
import sentencepiece
from keras import ops

from keras_models import losses
from keras_models.decoding import StepOutput, beam_search
from keras_models.heads import JointCopy
from keras_models.layers.numerics import repeat_rows
from keras_models.token_ids import TokenIds

keras.utils.set_random_seed(0)

# %% [markdown]
# ## Texts
#
# Each text has a placeholder, which a program replaces when it shows the text, so a translation
# must keep it. The names of placeholders are random, so a model cannot learn them: it has to copy.

# %%
VERBS = {"Delete": "Supprimer", "Open": "Ouvrir", "Close": "Fermer", "Print": "Imprimer"}
NOUNS = {"page": "la page", "file": "le fichier"}
draw = random.Random(0)


def make_pair(verb, noun, name):
    return f"{verb} {noun} %({name})s now", f"{VERBS[verb]} {NOUNS[noun]} %({name})s maintenant"


def make_name():
    return "".join(draw.choice("bdfglmnprst") + draw.choice("aeiou") for _ in "123")


pairs = [make_pair(draw.choice([*VERBS]), draw.choice([*NOUNS]), make_name()) for _ in range(384)]
print(*pairs[0], sep="\n")

# %% [markdown]
# ## T5's tokenizer
#
# `keras_hub.tokenizers.T5Tokenizer.from_preset(...)` loads the tokenizer of a preset. The tokenizer
# here learns its pieces from the texts. With `dtype="string"` it returns the pieces themselves. A
# placeholder stays whole: it is one token, which is in no vocabulary.

# %%
trained = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=(re.sub(r"%\(\w+\)s", "", text) for pair in pairs for text in pair),
    model_writer=trained,
    vocab_size=70,
    model_type="bpe",
    pad_id=0,
    eos_id=1,
    unk_id=2,
    bos_id=-1,
    pad_piece="<pad>",
    eos_piece="</s>",
    minloglevel=2,
    num_threads=1,
)
tokenizer = keras_hub.tokenizers.T5Tokenizer(proto=trained.getvalue(), dtype="string")


@functools.cache
def cut_words(text):
    return [str(piece) for piece in tokenizer(text)] if text.strip() else []


def cut(text):
    """Returns the tokens of a text: T5's pieces, and placeholders as they are."""
    parts = re.split(r"(%\(\w+\)s)", text)
    return [
        token
        for place, part in enumerate(parts)
        for token in ([part] if place % 2 else cut_words(part))
    ]


def join(tokens):
    """Returns the text of tokens: the inverse of `cut`."""
    return "".join(f"▁{token}" if token[0] == "%" else token for token in tokens)[1:].replace(
        "▁", " "
    )


print(cut(pairs[0][0]))
assert join(cut(pairs[0][0])) == pairs[0][0]

# %% [markdown]
# ## Ids and labels
#
# `TokenIds` takes T5's vocabulary and its special ids: 0 is padding and also what the decoder reads
# first, 1 is the end, 2 is the unknown piece. The label of a word in the vocabulary is its id. The
# label of a placeholder is the vocabulary's size V plus the placeholder's position in the source.

# %%
vocabulary = tokenizer.get_vocabulary()
V = len(vocabulary)
token_ids = TokenIds(
    vocabulary, vocabulary, start_id=0, end_id=1, unknown_id=2, special_ids=(0, 1, 2)
)
features = token_ids.pairs(
    [cut(source) for source, _ in pairs], [cut(target) for _, target in pairs]
)
print("source", features["source_ids"][0])
print("labels", features["target_extended_ids"][0])

# %% [markdown]
# ## T5 and the head
#
# The backbone returns the hidden states of its encoder and its decoder. These are all that
# `JointCopy` reads: it gives each word of the vocabulary and each position of the source a score,
# and takes one softmax over all of them.

# %%
backbone = keras_hub.models.T5Backbone(
    vocabulary_size=V,
    num_layers=1,
    num_heads=4,
    hidden_dim=64,
    intermediate_dim=128,
    dropout=0.0,
)
head = JointCopy(V)

inputs = {
    name: keras.Input((None,), dtype="int32", name=name)
    for name in ("source_ids", "source_extended_ids", "target_input_ids", "target_extended_ids")
}
mask = ops.not_equal(inputs["source_ids"], 0)
states = backbone(
    {
        "encoder_token_ids": inputs["source_ids"],
        "encoder_padding_mask": ops.cast(mask, "int32"),
        "decoder_token_ids": inputs["target_input_ids"],
        "decoder_padding_mask": ops.ones_like(inputs["target_input_ids"]),
    }
)
hidden, memory_states = states["decoder_sequence_output"], states["encoder_sequence_output"]
log_prob = head(
    hidden=hidden,
    memory_states=memory_states,
    source_extended_ids=inputs["source_extended_ids"],
    mask=mask,
    targets=inputs["target_extended_ids"],
)
model = keras.Model(inputs, log_prob)
model.compile(keras.optimizers.Adam(0.002), loss=losses.negative_log_likelihood)
labels = features["target_extended_ids"]
history = model.fit(
    {name: features[name] for name in inputs}, labels, epochs=20, batch_size=16, verbose=0
)
print("loss", *(round(history.history["loss"][epoch], 3) for epoch in (0, -1)))

# %% [markdown]
# ## Beam search
#
# The search calls a step function with the last action of each running hypothesis. The function
# below keeps the output so far in its carry, and runs T5 over it.

# %%
MAX_LENGTH, BEAM = 12, 4
run_t5 = keras.Model([inputs["source_ids"], inputs["target_input_ids"]], [hidden, memory_states])


def write(texts):
    """Returns the best output of each text, and where its tokens were copied from."""
    tokens = [cut(text) for text in texts]
    source = {name: ops.convert_to_tensor(ids) for name, ids in token_ids.sources(tokens).items()}
    written = ops.zeros((len(texts), MAX_LENGTH + 1), dtype="int32")
    memory = {
        "source_ids": source["source_ids"],
        "extended_ids": source["source_extended_ids"],
        "mask": ops.not_equal(source["source_ids"], 0),
        **head.prepare(run_t5([source["source_ids"], written])[1]),
    }
    # One row for each running hypothesis.
    rows = repeat_rows(memory, BEAM)

    def step(actions, carry, index):
        # T5 has no vector for a copied placeholder: it reads the unknown piece, as in training.
        read = ops.where(actions < V, actions, token_ids.unknown_id)
        here = ops.equal(ops.arange(MAX_LENGTH + 1), index)
        written = ops.where(here, ops.expand_dims(read, 1), carry["written"])
        hidden = ops.take(run_t5([rows["source_ids"], written])[0], index, axis=1)
        state = {"hidden": hidden, "decoder_state": hidden}
        log_probs, copy_log_probs = head.step_log_probs(state, rows)
        attention = ops.exp(head.copy_log_weights(expand(state), rows))[:, 0]
        return StepOutput(log_probs, copy_log_probs, attention, {"written": written})

    def expand(state):
        return {name: ops.expand_dims(value, 1) for name, value in state.items()}

    found = beam_search(
        step,
        {"written": written},
        memory["extended_ids"],
        memory["mask"],
        extended_size=V + memory["mask"].shape[1],
        max_length=MAX_LENGTH,
        beam_size=BEAM,
        merges=head.merges,
        start_id=token_ids.start_id,
        end_id=token_ids.end_id,
        unknown_id=token_ids.unknown_id,
    )
    best, copied_from = (ops.convert_to_numpy(x)[:, 0] for x in (found.tokens, found.copied_from))
    outputs = [token_ids.tokens(row, text) for row, text in zip(best, tokens)]
    return [join(output) for output in outputs], copied_from


# %% [markdown]
# ## Placeholders that no training text has

# %%
unseen = [
    make_pair("Delete", "page", "zebra_title"),
    make_pair("Print", "file", "Quxodyne2000"),
]
outputs, copied_from = write([source for source, _ in unseen])
for (source, target), output, places in zip(unseen, outputs, copied_from):
    print(f"{source}  ->  {output}")
    copied = [cut(source)[place] for place in places if place >= 0]
    print("  copied:", copied)
    assert output == target, output
    assert any(token.startswith("%(") for token in copied)
