"""Words cut into units, in a SavedModel:
what it copies is spelt as the source spells it, whatever the units.
"""

import unicodedata

import pytest

from tests.pipeline.export.tiny_models import export_tiny, make_recipe

pytestmark = pytest.mark.slow

ROWS = [
    ("greet ada and bob", "ada and bob"),
    ("greet international cleo", "international cleo"),
    ("greet (dan)", "dan"),
]
# Known words, known letters in unknown words, characters never seen, marks that follow their
# letter, placeholders, what spells a byte.
SOURCES = [
    "greet ada and bob",
    "national binge",
    "greet 朝食 and ブド\u3099ウ",
    "př\u030cíliš e\u0301te\u0301 كِتَاب 👩\u200d🚀",
    "%(name)s <b>{0}</b> --force",
    "<0xE3> <s> ▁ [PAD] 𓂀",
    "x",
    "\u0301",
    "a\u200d",
    "(d)anti-bob's, ﬁ ① ẞ",
]


def copy_all(model, inputs, max_length, n_best=1, **options):
    """Stands in for a search: every output is the whole source, each unit copied."""
    import tensorflow as tf

    from keras_models.decoding.hypotheses import Hypotheses

    ids = inputs["source_extended_ids"]
    length = tf.reduce_sum(tf.cast(ids > 0, tf.int32), axis=1)
    behind = max_length - tf.shape(ids)[1]
    place = tf.range(tf.shape(ids)[1])[tf.newaxis] + tf.zeros_like(ids)
    tokens, places = (tf.pad(value, [[0, 0], [0, behind]]) for value in (ids, place))
    tokens, places = (tf.repeat(value[:, tf.newaxis], n_best, axis=1) for value in (tokens, places))
    scores = tf.zeros(tf.shape(tokens)[:2])
    lengths = tf.repeat(length[:, tf.newaxis], n_best, axis=1)
    return Hypotheses(tokens, lengths, scores, scores, places, tf.ones(tf.shape(tokens)))


@pytest.mark.parametrize(
    "units, joint, tokenization",
    [
        ("characters", False, "text"),
        ("subwords", False, "whitespace"),
        ("subwords", True, "text"),
    ],
)
def test_copied_units_are_the_surface_string(tmp_path, monkeypatch, units, joint, tokenization):
    from keras_models import decoding
    from pipeline.export.served_model import ServedModel

    monkeypatch.setattr(decoding, "decode", copy_all)
    recipe = make_recipe(
        data={"units": units, "tokenization": tokenization},
        vocabulary={"joint": joint, "pieces": 300},
        training={"bucket_lengths": [96]},
        decoding={"length_buckets": [16, 64], "batch_buckets": [4]},
    )
    folder = export_tiny(
        tmp_path, recipe, ROWS, ["greet", "and"], ["and"], ("serving_default",), train=False
    )
    answers = ServedModel(folder).predict(SOURCES)
    assert [answer["text"] for answer in answers] == SOURCES
    for answer in answers:
        assert answer["tokens"] == answer["source_tokens"]
        assert answer["copied_from"] == list(range(len(answer["tokens"])))


def test_rare_words_are_copied_as_one_token_and_texts_are_composed(tmp_path, monkeypatch):
    from keras_models import decoding
    from pipeline.export.served_model import ServedModel

    monkeypatch.setattr(decoding, "decode", copy_all)
    recipe = make_recipe(
        data={"tokenization": "text", "rare_words": "whole", "unicode_form": "nfc"},
        # Texts that pass through keep their bytes.
        decoding={"length_buckets": [16, 64], "batch_buckets": [4], "pass_through": False},
        training={"bucket_lengths": [96]},
    )
    folder = export_tiny(
        tmp_path, recipe, ROWS, ["greet", "and"], ["and"], ("serving_default",), train=False
    )
    rare = "1,234.56 O'Brien /usr/bin/x C:\\x #tag AT&T C++ .NET 👩\u200d🚀".split()
    # Beside tags a `<` of the text stays apart from the next token.
    plain = [source for source in SOURCES if "<s>" not in source]
    sources = [*plain, f"greet {' '.join(rare)}", "cafe\u0301 {cafe\u0301}"]
    answers = ServedModel(folder).predict(sources)
    composed = [unicodedata.normalize("NFC", source) for source in plain]
    expected = [*composed, sources[-2], "café {cafe\u0301}"]
    assert [answer["text"] for answer in answers] == expected
    assert answers[-2]["source_tokens"] == ["greet", *rare]
    for answer in answers:
        assert answer["copied_from"] == list(range(len(answer["tokens"])))
