"""A tiny model with a Verbatim model's signatures: it shouts, and copies what begins with `%`."""

import pathlib
import shutil
import subprocess

import pytest

from serving import protos

# Before TensorFlow, as in a program that makes a client first: all tests here show that TensorFlow
# is none the worse.
protos.load()

import tensorflow as tf  # noqa: E402

from serving.server import ModelServer  # noqa: E402
from tests.serving.scripted_server import ScriptedServer  # noqa: E402

MAX_TOKENS = 8


class Shouter(tf.Module):
    """Upper-cases words and copies placeholders; the second-best output is lower-cased.

    The signature `count` tells how often it was called, so that a test can see a warm-up.
    """

    def __init__(self, mark):
        super().__init__()
        self.mark = tf.constant(mark)
        self.calls = tf.Variable(0, dtype=tf.int32)

    def _cut(self, source):
        tokens = tf.strings.split(source).to_tensor("")
        fits = tf.debugging.assert_less_equal(
            tf.shape(tokens)[1],
            MAX_TOKENS,
            message='A text has more than 8 tokens; the model\'s limit is "8" – shorten it [now].',
        )
        with tf.control_dependencies([fits]):
            return tf.identity(tokens)

    def _answers(self, tokens, change):
        copied = tf.strings.regex_full_match(tokens, "%.*")
        out = tf.where(copied, tokens, change(tokens))
        position = tf.broadcast_to(tf.range(tf.shape(tokens)[1])[None], tf.shape(tokens))
        ragged = tf.RaggedTensor.from_tensor(out, padding="")
        return {
            "text": tf.strings.join(
                [tf.strings.reduce_join(ragged, axis=1, separator=" "), self.mark]
            ),
            "score": -tf.cast(ragged.row_lengths(), tf.float32),
            "tokens": out,
            "copied_from": tf.where(copied, position, -1),
            "copy_probability": tf.where(copied, 0.984, 0.0),
        }

    def best(self, source):
        tokens = self._cut(source)
        return {**self._answers(tokens, tf.strings.upper), "source_tokens": tokens}

    def n_best(self, source):
        tokens = self._cut(source)
        both = [self._answers(tokens, change) for change in (tf.strings.upper, tf.strings.lower)]
        return {
            **{key: tf.stack([one[key] for one in both], axis=1) for key in both[0]},
            "source_tokens": tokens,
        }

    def score(self, source, target):
        self._cut(source)
        count = tf.cast(tf.strings.split(target).row_lengths(), tf.int32) + 1
        return {"log_probability": -0.5 * tf.cast(count, tf.float32), "token_count": count}

    def count(self, source):
        return {"calls": tf.fill(tf.shape(source), self.calls.assign_add(1))}

    def save(self, path):
        """Writes the SavedModel with its signatures."""
        text = tf.TensorSpec([None], tf.string, name="source")
        one = {name: tf.function(getattr(self, name)) for name in ("best", "n_best", "count")}
        signatures = {name: function.get_concrete_function(text) for name, function in one.items()}
        signatures["serving_default"] = signatures.pop("best")
        target = tf.TensorSpec([None], tf.string, name="target")
        signatures["score"] = tf.function(self.score).get_concrete_function(text, target)
        tf.saved_model.save(self, str(path), signatures=signatures)


@pytest.fixture(scope="session")
def saved_models(tmp_path_factory):
    """Two SavedModels, to be copied: texts of the second end in `*`."""
    folder = tmp_path_factory.mktemp("saved")
    Shouter("").save(folder / "plain")
    Shouter("*").save(folder / "starred")
    return folder


@pytest.fixture
def model_folder(tmp_path, saved_models):
    """`models/shouter` with version 1."""
    folder = tmp_path / "models" / "shouter"
    shutil.copytree(saved_models / "plain", folder / "1")
    return folder


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory, saved_models):
    """A running server with version 7 of the model, for tests that change nothing on disk."""
    folder = pathlib.Path(tmp_path_factory.mktemp("shared")) / "shouter"
    shutil.copytree(saved_models / "plain", folder / "7")
    options = {"poll_seconds": 0.05, "max_batch_size": 16, "max_text_bytes": 100, "rest_port": 0}
    with ModelServer(folder, port=0, **options) as server:
        yield server


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A key and a self-signed certificate for localhost."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
        "-subj /CN=localhost"
    )
    command += " -addext subjectAltName=DNS:localhost"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def scripted_server():
    """A running `ScriptedServer`."""
    with ScriptedServer() as server:
        yield server
