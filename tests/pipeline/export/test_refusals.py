"""A refused text is named by its place, and costs the others nothing; without a model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.export.loaded_model import ModelError, TextRefused
from pipeline.export.refusals import TextsRefused, answer_each, check_texts, raise_refusals
from pipeline.export.served_language_model import ServedLanguageModel


def refusing(bad, name="source text"):
    """What a model does: it names the first bad text by its place in the batch."""

    def answer(rows):
        for place, row in enumerate(rows):
            if row in bad:
                raise TextRefused(f"The {name} {place} has 0 tokens; 0 is not enough.")
        return [row * 10 for row in rows]

    return answer


@given(number=st.integers(1, 40), batch=st.integers(1, 32), data=st.data())
def test_each_bad_text_is_named_by_its_own_place(number, batch, data):
    bad = data.draw(st.sets(st.integers(0, number - 1)))
    rows, answers = range(number), []
    for start in range(0, number, batch):
        answers += answer_each(refusing(bad), rows[start : start + batch])
    if not bad:
        assert raise_refusals(answers) == [row * 10 for row in rows]
        return
    with pytest.raises(TextsRefused) as caught:
        raise_refusals(answers)
    assert caught.value.reasons == {
        row: f"The source text {row} has 0 tokens; 0 is not enough." for row in sorted(bad)
    }
    assert caught.value.answers == [None if row in bad else row * 10 for row in rows]
    assert str(caught.value).startswith(f"The source text {min(bad)} has")
    assert ("refused, too" in str(caught.value)) == (len(bad) > 1)


def test_another_error_is_no_text_of_ones_own():
    def damaged(rows):
        raise ModelError("The model returned a 'score' that is not a number.")

    with pytest.raises(ModelError, match="not a number"):
        answer_each(damaged, range(3))


@pytest.mark.parametrize("method", ["score", "continue_text"])
def test_a_language_model_names_texts_by_their_places(method):
    model = object.__new__(ServedLanguageModel)
    model.facts = {"batch_buckets": [2]}
    model._signature = lambda *names: None

    def call(function, text):
        for place, one in enumerate(text):
            if not one:
                raise TextRefused(f"The text {place} is empty; give at least one word.")
        words = np.array([[one.encode()] for one in text])
        numbers = np.zeros(words.shape, "float32")
        return {
            "text": words[:, 0],
            "tokens": words,
            "text_tokens": words,
            "token_count": np.ones(len(text), "int32"),
            "log_probability": numbers,
            "copied_from": numbers,
            "copy_probability": numbers,
        }

    model._call = call
    texts = ["a", "b", "c", "", "d"]
    with pytest.raises(TextsRefused, match="The text 3 is empty") as caught:
        getattr(model, method)(texts)
    given = caught.value.answers
    assert given[3] is None
    first = [one["text"] if method == "continue_text" else one[0][0] for one in given if one]
    assert first == ["a", "b", "c", "d"]
    with pytest.raises(ModelError, match="list of texts; got str"):
        getattr(model, method)("a b")


def test_a_list_of_strings_is_accepted():
    check_texts("text", [])
    check_texts("text", ("a", "é", "\U0001f600"))
