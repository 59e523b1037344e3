"""A network trained on JAX, without TensorFlow, answers the same when the pipeline exports it."""

import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.pipeline.export.tiny_models import BEAM, make_recipe, transform_tiny

pytestmark = pytest.mark.slow

NAMES = ["ada", "bob", "cleo", "dan", "eve", "fay"]
ROWS = [(f"greet {a} and {b} now", f"{b} and {a}") for a, b in itertools.permutations(NAMES, 2)]


def features_of(transform_output, rows):
    """The rows' features as dense arrays, by the Transform graph."""
    import tensorflow as tf

    from pipeline.export import transform_graph
    from pipeline.features import feature_names

    columns = {
        name: tf.constant([[text] for text in texts])
        for name, texts in zip(("source", "target"), zip(*rows))
    }
    made = transform_graph.TransformGraph(transform_output)(columns)
    names = (*feature_names.ID_FEATURES, "source_feed_ids")
    return {name: tf.cast(tf.sparse.to_dense(made[name]), tf.int32).numpy() for name in names}


def test_weights_trained_on_jax_are_served(tmp_path):
    import keras

    from pipeline.export import seq2seq_export
    from pipeline.export.served_model import ServedModel
    from pipeline.features import transform_assets, vocabulary_files
    from pipeline.training.model_building import build_model
    from pipeline.training.model_inputs import ModelInputs

    # A search as wide and as long as that of `jax_training`.
    decoding = {
        "batch_buckets": [4],
        "length_buckets": [16],
        "max_length_factor": 0.1,
        "max_length_offset": 7,
    }
    recipe = make_recipe(
        model={"head": "pointer_generator"}, decoding={**BEAM, **decoding, "min_length": 1}
    )
    words = (["greet", "and", "now"], ["and"])
    transform_output = transform_tiny(tmp_path, recipe, ROWS, *words)
    arrays = features_of(transform_output, ROWS)
    files = (vocabulary_files.SOURCE_VOCABULARY_FILE, vocabulary_files.TARGET_VOCABULARY_FILE)
    source_vocabulary, vocabulary = (
        transform_assets.read_vocabulary(transform_output, name) for name in files
    )
    inputs = ModelInputs(len(source_vocabulary), len(vocabulary))
    config, data, network, answers = (
        str(tmp_path / name)
        for name in ("config.json", "arrays.npz", "network.keras", "answers.npz")
    )
    with open(config, "w", encoding="utf-8") as file:
        json.dump(build_model(recipe, inputs).get_config(), file)
    np.savez(data, **arrays)
    command = [
        sys.executable,
        "-m",
        "tests.end_to_end.jax_training",
        config,
        data,
        network,
        answers,
    ]
    done = subprocess.run(
        command, env={**os.environ, "KERAS_BACKEND": "jax"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    there = np.load(answers)

    model = keras.models.load_model(network, compile=False)
    seq2seq_export.export_model(
        model, transform_output, recipe, str(tmp_path / "served"), ("serving_default", "score")
    )
    served = ServedModel(tmp_path / "served").predict([source for source, _ in ROWS])
    right = 0
    for row, ((source, target), answer) in enumerate(zip(ROWS, served)):
        ids = there["tokens"][row, 0][: there["lengths"][row, 0]]
        said = [
            vocabulary[i] if i < len(vocabulary) else source.split()[i - len(vocabulary)]
            for i in ids
        ]
        assert answer["tokens"] == said
        assert answer["score"] == pytest.approx(float(there["scores"][row, 0]), abs=1e-4)
        right += answer["text"] == target
    # It learned what was to be learned, so what agrees is not noise.
    assert right == len(ROWS), there["losses"]
