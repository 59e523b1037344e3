"""What a bucket refuses is one sentence; that a file is not there is no refusal."""

import pytest
import tensorflow as tf

from pipeline.common import object_stores
from pipeline.readers import files


def refusal(kind, text):
    return kind(None, None, text)


@pytest.mark.parametrize(
    "error, shown",
    [
        (
            refusal(
                tf.errors.PermissionDeniedError,
                "Error executing an HTTP request: HTTP response code 401 with body '<html>'\n\tx",
            ),
            "HTTP response code 401)",
        ),
        (refusal(tf.errors.NotFoundError, "The bucket b was not found."), "was not found.)"),
    ],
)
def test_a_bucket_that_cannot_be_written(monkeypatch, error, shown):
    class Refused:
        def __init__(self, *_):
            raise error

    monkeypatch.setattr(tf.io.gfile, "GFile", Refused)
    with pytest.raises(object_stores.StorageError) as caught:
        object_stores.check_writable("gs://b/root/examples")
    sentence = str(caught.value)
    assert sentence.startswith("gs://b/root/examples cannot be written (") and shown in sentence
    assert "key is valid" in sentence and "\n" not in sentence and "html" not in sentence


def test_a_folder_of_this_machine_is_not_written(tmp_path):
    object_stores.check_writable(str(tmp_path / "none"))
    assert not list(tmp_path.iterdir())


def test_reading(monkeypatch):
    remote = files.RemoteFiles()

    class Store:
        def listdir(self, path):
            raise refusal(tf.errors.PermissionDeniedError, "HTTP response code 403")

        def exists(self, path):
            raise refusal(tf.errors.NotFoundError, "no such object")

    monkeypatch.setattr(remote, "_fileio", Store())
    with pytest.raises(object_stores.StorageError, match="gs://b/d cannot be read .HTTP .* 403"):
        remote.names_in("gs://b/d")
    with pytest.raises(tf.errors.NotFoundError):
        remote.exists("gs://b/d")
