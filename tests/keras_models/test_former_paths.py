"""Modules that have moved: their former paths can be imported, and files that name them load."""

import importlib
import json
import subprocess
import sys
import zipfile

import keras
import numpy as np
import pytest

import keras_models.models
from keras_models.former_paths import FORMER_PATHS
from keras_models.layers import LexiconCopy, PointerGenerator
from keras_models.models import RecurrentSeq2Seq
from tests.keras_models.backends import numpy
from tests.keras_models.decoding.fakes import small_inputs, tensors


@pytest.mark.parametrize("path", FORMER_PATHS)
def test_a_former_path_has_the_names_of_the_new_ones(path):
    former = importlib.import_module(path)
    for module in FORMER_PATHS[path]:
        for name, value in vars(importlib.import_module(module)).items():
            assert getattr(value, "__module__", "") != module or getattr(former, name) is value
    parent, _, name = path.rpartition(".")
    assert getattr(importlib.import_module(parent), name) is former


def test_a_class_that_left_a_path_that_is_used_again():
    assert keras_models.models.seq2seq.RecurrentSeq2Seq is RecurrentSeq2Seq


def test_layers_have_the_heads_names():
    assert {"PointerGenerator", "SpanCopy", "SourceAttention"} <= set(dir(keras_models.layers))
    with pytest.raises(AttributeError, match="no attribute 'NoHead'"):
        _ = keras_models.layers.NoHead


# Where the classes of the test's models stood when version 0.1 began.
FORMER_MODULES = {
    "keras_models.heads.pointer_generator": "keras_models.layers.pointer_generator",
    "keras_models.heads.lexicon_copy": "keras_models.layers.lexicon",
    "keras_models.models.recurrent_seq2seq": "keras_models.models.seq2seq",
}


def with_former_modules(path):
    """Rewrites a saved model so that its config names the former modules; returns how many."""
    count = 0

    def rewritten(value):
        nonlocal count
        if isinstance(value, dict):
            return {key: rewritten(part) for key, part in value.items()}
        if isinstance(value, list):
            return [rewritten(part) for part in value]
        count += isinstance(value, str) and value in FORMER_MODULES
        return FORMER_MODULES.get(value, value) if isinstance(value, str) else value

    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents["config.json"] = json.dumps(rewritten(json.loads(contents["config.json"])))
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return count


def heads_in_a_model():
    """Both kinds of heads in a model of one's own."""
    shapes = [(3, 4), (3, 6), (3, 5), (5, 2), (5, 2), (5,)]
    types = ["float32"] * 3 + ["int32", "float32", "int32"]
    inputs = [keras.Input(shape, dtype=dtype) for shape, dtype in zip(shapes, types)]
    hidden, context, attention, ids, probabilities, extended = inputs
    pointer = PointerGenerator(7)(hidden, context, attention, extended)
    lexicon = LexiconCopy(7)(hidden, attention, ids, probabilities, extended, context=context)
    return keras.Model(inputs, pointer + lexicon)


def test_files_that_name_former_modules_load(tmp_path):
    """Also where nothing but `keras_models.layers`, or `keras_models.models`, was imported."""
    body = RecurrentSeq2Seq(9, 8, embedding_size=4, hidden_size=6)
    inputs = small_inputs()
    inputs |= {"target_input_ids": inputs["source_feed_ids"][:, :2]}
    inputs |= {"target_extended_ids": inputs["source_extended_ids"][:, :2]}
    expected = numpy(body(tensors(inputs)))
    for name, model, modules in (("heads", heads_in_a_model(), 2), ("body", body, 1)):
        model.save(tmp_path / f"{name}.keras")
        assert with_former_modules(tmp_path / f"{name}.keras") == modules
    loaded = keras.saving.load_model(tmp_path / "body.keras")
    np.testing.assert_array_equal(numpy(loaded(tensors(inputs))), expected)
    code = (
        "import sys, keras, keras_models.layers\n"
        "keras.saving.load_model(sys.argv[1])\n"
        "assert 'keras_models.models' not in sys.modules\n"
        "import keras_models.models\n"
        "print(type(keras.saving.load_model(sys.argv[2])).__module__)\n"
    )
    paths = [str(tmp_path / f"{name}.keras") for name in ("heads", "body")]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True)
    assert done.stdout == "keras_models.models.recurrent_seq2seq\n", done.stderr
