"""Commands whose libraries write notes to standard error: none of them reaches the user."""

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture
def verbatim():
    """Function of arguments: runs the command in a process of its own."""
    chosen = ("TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS", "GRPC_VERBOSITY", "PYTHONWARNINGS")
    environment = {name: value for name, value in os.environ.items() if name not in chosen}

    def call(*arguments):
        command = [sys.executable, "-m", "pipeline.commands.main", *map(str, arguments)]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )

    return call


def test_evaluating_what_xla_compiles_is_quiet(verbatim, texts):
    import tensorflow as tf

    def answer(source):
        tokens = tf.expand_dims(source, 1)
        return {
            "text": source,
            "tokens": tokens,
            "source_tokens": tokens,
            "score": _compiled(tf.ones_like(source, tf.float32)),
            "copied_from": tf.zeros_like(tokens, tf.int32),
            "copy_probability": tf.zeros_like(tokens, tf.float32),
        }

    _compiled = tf.function(lambda numbers: tf.cumsum(numbers * 2), jit_compile=True)
    module = tf.Module()
    function = tf.function(answer).get_concrete_function(
        tf.TensorSpec([None], tf.string, name="source")
    )
    module.compiled = _compiled
    tf.saved_model.save(module, str(texts / "m" / "1"), signatures={"serving_default": function})
    done = verbatim(
        "evaluate", "--model", texts / "m", "--data", texts / "pairs.tsv", "--metrics", "chrf"
    )
    assert "chrF" in done.stdout and done.stderr == ""


def test_what_loads_tfx_is_quiet(verbatim, tmp_path):
    done = verbatim("compile", "localization_en_fr", "--output", tmp_path / "pipeline.yaml")
    assert done.stdout == f"Wrote {tmp_path / 'pipeline.yaml'}\n" and done.stderr == ""
