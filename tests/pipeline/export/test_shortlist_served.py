"""A served model that answers with a shortlist of words, or with all where it is not sure."""

import pytest

from tests.pipeline.export.tiny_models import export_tiny, make_recipe

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


def serve(folder, signatures, **decoding):
    from pipeline.export.served_model import ServedModel

    recipe = make_recipe(
        model={"head": "pointer_generator"},
        decoding={
            "batch_buckets": [1, 4],
            "length_buckets": [8, 16],
            "min_length": 3,
            "max_length_offset": 3,
            **decoding,
        },
        lexicon={"kind": "learned"},
    )
    folder.mkdir()
    arguments = (ROWS, ["greet", "now"], TARGET_WORDS, signatures)
    return ServedModel(export_tiny(folder, recipe, *arguments, lexicon=LEXICON, train=False))


def same(first, second):
    assert [answer["tokens"] for answer in first] == [answer["tokens"] for answer in second]
    for one, other in zip(first, second):
        assert one["score"] == pytest.approx(other["score"], abs=1e-5)
        assert one["copied_from"] == other["copied_from"]


def test_a_shortlist_and_what_it_falls_back_on(tmp_path):
    # Each is traced in its own time: no more signatures than the test asks.
    everything = serve(tmp_path / "all", ("serving_default",))
    short = serve(
        tmp_path / "short", ("serving_default", "serving_default_no_xla"), shortlist_size=8
    )
    unsure = serve(
        tmp_path / "unsure",
        ("serving_default", "explain"),
        shortlist_size=8,
        shortlist_confidence=1.0,
    )

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
