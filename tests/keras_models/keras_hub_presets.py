"""Tiny encoder-decoders of keras-hub, of random weights."""

import keras
import numpy as np
import pytest

from keras_models.models.keras_hub_layers import without_mask_warnings

keras_hub = pytest.importorskip("keras_hub", exc_type=ImportError)

VOCABULARY = 14
SIZES = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "dropout": 0.0,
}


# Those that learn a vector of each position.
PLACED = {
    "bart": "BartBackbone",
    "bert": "BertBackbone",
    "roberta": "RobertaBackbone",
    "distil_bert": "DistilBertBackbone",
}


def sentencepiece_model(texts, size):
    """Returns a sentencepiece model with the special pieces of T5, learned from texts."""
    import io

    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=size,
        hard_vocab_limit=False,
        bos_id=-1,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        pad_piece="<pad>",
        eos_piece="</s>",
        minloglevel=2,
        num_threads=1,
    )
    return model.getvalue()


def save_t5(folder, texts, size=60, kind="t5_tied", **options):
    """Saves a preset by keras-hub itself: a T5 of random weights, with a tokenizer of texts."""
    tokenizer = keras_hub.tokenizers.T5Tokenizer(proto=sentencepiece_model(texts, size))
    made = backbone(kind, **{"vocabulary_size": tokenizer.vocabulary_size(), **options})
    made.save_to_preset(str(folder))
    tokenizer.save_to_preset(str(folder))
    return str(folder)


def byte_pairs(texts, merges, specials=("<s>", "<pad>", "</s>", "<unk>", "<mask>")):
    """Returns the vocabulary and the merges of byte pairs, learned from texts word by word."""
    import collections

    import regex
    from keras_hub.src.tokenizers.byte_pair_tokenizer import bytes_to_unicode

    characters = dict(zip(*bytes_to_unicode()))
    found = regex.findall(r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+", "\n".join(texts))
    words = {
        tuple(characters[bytes([byte])] for byte in word.encode()): count
        for word, count in collections.Counter(found).items()
    }
    learned = []
    while len(learned) < merges:
        counts = collections.Counter()
        for word, count in words.items():
            counts.update(dict.fromkeys(zip(word, word[1:]), count))
        if not counts:
            break
        one, two = min(counts, key=lambda pair: (-counts[pair], pair))
        learned.append(f"{one} {two}")
        changed = {}
        for word, count in words.items():
            pieces, place = [], 0
            while place < len(word):
                is_pair = word[place : place + 2] == (one, two)
                pieces.append(one + two if is_pair else word[place])
                place += 1 + is_pair
            changed[tuple(pieces)] = count
        words = changed
    pieces = [*characters.values(), *(merge.replace(" ", "") for merge in learned)]
    return {piece: number for number, piece in enumerate([*specials, *pieces])}, learned


def save_bart(folder, texts, merges=80, **options):
    """Saves a preset by keras-hub itself: a BART of random weights, with a tokenizer of texts."""
    return _save_byte_pairs(
        "bart", keras_hub.tokenizers.BartTokenizer, folder, texts, merges, options
    )


def save_roberta(folder, texts, merges=80, **options):
    """Saves a preset by keras-hub itself: a RoBERTa, as `save_bart` does."""
    kind = keras_hub.tokenizers.RobertaTokenizer
    return _save_byte_pairs("roberta", kind, folder, texts, merges, options)


def _save_byte_pairs(kind, tokenizer_class, folder, texts, merges, options):
    vocabulary, learned = byte_pairs(texts, merges)
    tokenizer = tokenizer_class(vocabulary=vocabulary, merges=learned)
    made = backbone(kind, **{"vocabulary_size": len(vocabulary), **options})
    made.save_to_preset(str(folder))
    tokenizer.save_to_preset(str(folder))
    return str(folder)


def backbone(kind, seed=0, scale=0.5, **options):
    """Returns a backbone: `t5` (gated, an own softmax), `t5_tied`, or one of `PLACED`."""
    if kind in PLACED:
        make = getattr(keras_hub.models, PLACED[kind])
        made = make(**{**SIZES, "max_sequence_length": 16, **options})
    else:
        kinds = {
            "t5": {"use_gated_activation": True, "tie_embedding_weights": False},
            "t5_tied": {"use_gated_activation": False, "key_value_dim": 3},
        }
        with without_mask_warnings():
            made = keras_hub.models.T5Backbone(**{**SIZES, **kinds[kind], **options})
    rng = np.random.default_rng(seed)
    for weight in made.weights:
        weight.assign(rng.normal(scale=scale, size=weight.shape).astype("float32"))
    keras.utils.set_random_seed(seed)
    return made
