"""An exported model in this process: many texts, in batches one after the other or side by side."""

import copy
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

from pipeline.common import progress
from tests.pipeline.export.tiny_models import BEAM, export_tiny, make_recipe

pytestmark = pytest.mark.slow

ROWS = [("one %(a)s two", "un %(a)s deux"), ("three four", "trois quatre"), ("five", "cinq")]
WORDS = ["one", "two", "three", "four", "five"]
# More than one batch of four, of different lengths, not in their order.
TEXTS = [
    " ".join(WORDS[number % 3 : 1 + number % 5 + number % 3] + [f"%({number})s"])
    for number in range(22)
]

WITH_ONE_THREAD = """
import json, sys
from pipeline.export.served_model import ServedModel
from serving import processors

processors.prefer_batches_side_by_side()
model = ServedModel(sys.argv[1], at_once=3)
print(json.dumps(model.predict(json.loads(sys.argv[2]))))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    recipe = make_recipe(
        model={"head": "pointer_generator"},
        decoding={
            **BEAM,
            "batch_buckets": [1, 4],
            "length_buckets": [8, 16],
            "min_length": 3,
            "max_length_offset": 3,
        },
    )
    target_words = sorted({word for _, target in ROWS for word in target.split()})
    path = tmp_path_factory.mktemp("served")
    # Those that are asked: the others would only take longer to trace and to load.
    signatures = ("serving_default", "score")
    return export_tiny(path, recipe, ROWS, WORDS, target_words, signatures, train=False)


@pytest.fixture(scope="module")
def alone(folder):
    """The model, answering one batch after the other; a second one would be compiled anew."""
    from pipeline.export.served_model import ServedModel

    return ServedModel(folder)


def beside(model, at_once):
    """The same model, answering several batches at the same time."""
    other = copy.copy(model)
    other._at_once = at_once
    return other


def check_same(first, second, within):
    assert len(first) == len(second) == len(TEXTS)
    for one, other, text in zip(first, second, TEXTS):
        for key in ("text", "tokens", "copied_from", "source_tokens"):
            assert one[key] == other[key]
        assert one["source_tokens"] == text.split()
        assert one["score"] == pytest.approx(other["score"], abs=within)


def test_batches_side_by_side_change_nothing(alone, caplog, monkeypatch):
    expected = alone.predict(TEXTS)
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_STEPS", 0.0)
    with caplog.at_level(progress.STEP, logger="verbatim.progress"):
        answers = beside(alone, 3).predict(TEXTS)
    check_same(expected, answers, 0)
    done = [record.step.done for record in caplog.records if hasattr(record, "step")][1:-1]
    # The two longest texts come first, as the last batch of the sorted ones, and all are counted
    # once.
    assert done == [2, 6, 10, 14, 18, 22]


def test_a_core_a_batch_changes_nothing(folder, alone):
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow"}
    for name in ("TF_NUM_INTRAOP_THREADS", "VERBATIM_THREADS_PER_BATCH"):
        environment.pop(name, None)
    root = pathlib.Path(__file__).parents[3]
    command = [sys.executable, "-c", WITH_ONE_THREAD, str(folder), json.dumps(TEXTS)]
    printed = subprocess.run(
        command, env=environment, cwd=root, check=True, capture_output=True, text=True
    ).stdout
    # A sum of one thread may be of another order.
    check_same(alone.predict(TEXTS), json.loads(printed.splitlines()[-1]), 1e-5)


def test_pairs_are_scored_side_by_side(alone):
    sources, targets = TEXTS * 4, [f"un {number % 7}" for number in range(4 * len(TEXTS))]
    expected, scores = (model.score(sources, targets) for model in (alone, beside(alone, 3)))
    assert len(expected[0]) == len(sources) > 2 * 32
    for one, other in zip(expected, scores):
        assert one.tolist() == other.tolist()


def test_so_many_batches_run_at_the_same_time(alone, monkeypatch):
    model = beside(alone, 2)
    both, running, most = threading.Barrier(2, timeout=60), [], []
    call = model._call

    def meeting(function, **texts):
        running.append(1)
        most.append(len(running))
        both.wait()  # breaks, and so fails, if the other batch waits for this one to end
        outputs = call(function, **texts)
        running.pop()
        return outputs

    monkeypatch.setattr(model, "_call", meeting)
    assert len(model.predict(TEXTS)) == len(TEXTS)  # six batches: three times two
    assert max(most) == 2


def test_a_refused_text_is_named_by_its_place_and_costs_no_other_its_answer(alone):
    from pipeline.export.served_model import TextsRefused

    expected = alone.predict(TEXTS)
    texts = [*TEXTS[:7], " ", *TEXTS[7:], " ".join(["one"] * 40)]
    for at_once in (1, 2):
        with pytest.raises(TextsRefused, match="The source text 7 is empty.*1 more") as caught:
            beside(alone, at_once).predict(texts)
        assert list(caught.value.reasons) == [7, 23]
        assert caught.value.reasons[23].startswith("The source text 23 has 40 tokens;")
        assert caught.value.answers[7] is None and caught.value.answers[23] is None
        check_same([*caught.value.answers[:7], *caught.value.answers[8:23]], expected, 0)


def test_a_refused_pair_is_named_by_its_place(alone):
    from pipeline.export.served_model import ModelError, TextsRefused

    targets = ["un"] * 50
    targets[40] = " ".join(["un"] * 40)
    with pytest.raises(TextsRefused, match="The target text 40 has 40 tokens") as caught:
        alone.score(["one"] * 50, targets)
    expected, counts = alone.score(["one"] * 49, ["un"] * 49)
    given = [answer for answer in caught.value.answers if answer is not None]
    assert len(given) == 49
    # A batch of another size may add in another order.
    assert [score for score, _ in given] == pytest.approx(expected.tolist(), rel=1e-5)
    assert [count for _, count in given] == counts.tolist()
    with pytest.raises(ModelError, match="3 source and 2 target texts"):
        alone.score(["one"] * 3, ["un"] * 2)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one two", "list of source texts; got str"),
        (None, "list of source texts; got NoneType"),
        (["one", None], "source text 1 must be a string; got NoneType"),
        (["one", b"two"], "source text 1 must be a string; got bytes"),
        (["one", "\ud800"], "source text 1 contains half of a surrogate"),
    ],
)
def test_what_is_no_list_of_texts_is_said(alone, texts, message):
    from pipeline.export.served_model import ModelError

    with pytest.raises(ModelError, match=message):
        alone.predict(texts)


def test_nothing_to_translate_comes_back_as_it_is(alone):
    """Numbers, punctuation, protected tokens, and words that the vocabulary lacks; not words."""
    texts = ["1", "?", "3.14 - ½", "%(a)s", "%(a)s : 100 %", "  1  2 ", "…", "😀", "٣"]
    texts += ["привет", "你好 !"]
    for text, answer in zip(texts, alone.predict([*texts, "one"])):
        words = text.split()
        assert answer["text"] == text and answer["score"] == 0
        assert answer["tokens"] == answer["source_tokens"] == words
        assert answer["copied_from"] == list(range(len(words)))
        assert answer["copy_probability"] == [1.0] * len(words)
        assert answer["unknown_not_copied"] == 0


def test_words_that_are_lost_are_counted(alone):
    for answer in alone.predict(["one привет", "one", "one two 7", "привет мир three привет"]):
        unknown = [word for word in answer["source_tokens"] if word not in WORDS]
        lost = [word for word in unknown if word not in answer["tokens"]]
        assert answer["unknown_not_copied"] == len(lost)
