"""A SavedModel that the Evaluator leaves for the Reporter."""

import gc
import weakref

import pytest

from pipeline.export import shared_model

tf = pytest.importorskip("tensorflow")


def save(directory, number):
    class Model(tf.Module):
        @tf.function(input_signature=[])
        def serve(self):
            return {"number": self.number}

    model = Model()
    model.number = tf.Variable(number)
    tf.saved_model.save(model, str(directory), signatures=model.serve)
    return str(directory)


def number_of(model):
    return int(model.signatures["serving_default"]()["number"])


def test_a_model_that_was_left_is_handed_out_once(tmp_path):
    folder = save(tmp_path / "model", 3)
    left = shared_model.load_and_leave(folder)
    assert shared_model.load_and_leave(folder) is left
    assert shared_model.load(tmp_path / "model") is left
    anew = shared_model.load(folder)
    assert anew is not left
    assert number_of(left) == number_of(anew) == 3


def test_another_model_is_loaded(tmp_path):
    folder = save(tmp_path / "model", 3)
    left = shared_model.load_and_leave(folder)
    other = shared_model.load(save(tmp_path / "other", 4))
    assert number_of(other) == 4
    # The same folder with other weights.
    save(folder, 5)
    assert number_of(shared_model.load(folder)) == 5
    assert number_of(left) == 3


def test_only_one_model_is_left(tmp_path):
    first = shared_model.load_and_leave(save(tmp_path / "first", 1))
    gone = weakref.ref(first)
    second = shared_model.load_and_leave(save(tmp_path / "second", 2))
    del first
    gc.collect()
    assert gone() is None
    assert shared_model.load(tmp_path / "second") is second
