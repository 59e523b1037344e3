"""A served model that answers with a shortlist of words, or with all where it is not sure."""

import pytest

from tests.pipeline.export.tiny_models import make_recipe, transform_tiny, untrained

pytestmark = pytest.mark.slow

NAMES = [
    "ada",
    "bob",
    "cleo",
    "dan",
    "eve",
    "fay",
    "gus",
    "hal",
    "ida",
    "jon",
    "kim",
    "leo",
    "mia",
    "ned",
    "ola",
    "pia",
]
ROWS = [(f"greet {name} now", f"hail {name.upper()}") for name in NAMES]
LEXICON = {"greet": {"hail": 1.0}, **{name: {name.upper(): 0.75, "salute": 0.25} for name in NAMES}}
# By falling frequency: the last of them are on a list only if the lexicon proposes them.
TARGET_WORDS = ["hail", "now", "salute", *(name.upper() for name in NAMES)]
SOURCES = [
    "greet ada now",
    "greet pia and then zoe now",
    "greet",
    "greet ola now and kim and leo now",
]


def recipe_of(**decoding):
    buckets = {"batch_buckets": [1, 4], "length_buckets": [8, 16]}
    lengths = {"min_length": 3, "max_length_offset": 3}
    return make_recipe(
        model={"head": "pointer_generator"},
        training={"seed": 2},
        decoding={**buckets, **lengths, **decoding},
        lexicon={"kind": "learned"},
    )


def same(first, second):
    assert [answer["tokens"] for answer in first] == [answer["tokens"] for answer in second]
    for one, other in zip(first, second):
        assert one["score"] == pytest.approx(other["score"], abs=1e-5)
        assert one["copied_from"] == other["copied_from"]


def test_a_shortlist_and_what_it_falls_back_on(tmp_path):
    from pipeline.export import seq2seq_export
    from pipeline.export.served_model import ServedModel

    # Three searches of one network.
    words = (["greet", "now"], TARGET_WORDS)
    transform_output = transform_tiny(tmp_path, recipe_of(shortlist_size=8), ROWS, *words, LEXICON)
    network = untrained(recipe_of(), transform_output)

    def serve(name, signatures, **decoding):
        # Each signature is traced in its own time: no more of them than the test asks.
        folder = str(tmp_path / name)
        seq2seq_export.export_model(
            network, transform_output, recipe_of(**decoding), folder, signatures
        )
        return ServedModel(folder)

    everything = serve("all", ("serving_default",))
    short = serve("short", ("serving_default", "serving_default_no_xla"), shortlist_size=8)
    sure = {"shortlist_size": 8, "shortlist_confidence": 1.0}
    unsure = serve("unsure", ("serving_default", "explain"), **sure)

    answers = short.predict(SOURCES)
    for source, answer in zip(SOURCES, answers):
        words = source.split()
        proposed = {"hail", "now", "salute", *words, *(word.upper() for word in words)}
        assert set(answer["tokens"]) <= proposed
    # Each alone, in another bucket, is what it is beside the others; compiled or not.
    same(answers, [short.predict([source])[0] for source in SOURCES])
    same(answers, short.predict(SOURCES, "serving_default_no_xla"))
    # An untrained network says anything: with all words, other things.
    expected = everything.predict(SOURCES)
    assert [answer["tokens"] for answer in expected] != [answer["tokens"] for answer in answers]
    # Never sure enough: all words are asked, and nothing is lost.
    same(expected, unsure.predict(SOURCES))
    same(expected, unsure.predict(SOURCES, "explain"))
