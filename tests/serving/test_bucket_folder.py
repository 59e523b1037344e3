"""Models at an address: TensorFlow's file system in memory stands for a bucket."""

import os
import shutil

import pytest
import tensorflow as tf

from serving.bucket_folder import BucketFolder
from serving.errors import ServeError
from serving.model_config import VersionPolicy
from serving.model_versions import ModelVersions
from serving.registry import configs_of_folders


@pytest.fixture
def address(request, monkeypatch):
    """An empty folder of a bucket, which is looked at in each poll."""
    monkeypatch.setattr(BucketFolder.__init__, "__defaults__", (0.0,))
    folder = f"ram://bucket/{request.node.name}/shouter"
    tf.io.gfile.makedirs(folder)
    return folder


def put(address, version, folder):
    """Copies a version's folder into the bucket."""
    for place, _, names in os.walk(folder):
        target = f"{address}/{version}/{os.path.relpath(place, folder)}".removesuffix("/.")
        tf.io.gfile.makedirs(target)
        for name in names:
            tf.io.gfile.copy(os.path.join(place, name), f"{target}/{name}", overwrite=True)


def numbers(model):
    """Returns the versions that have been copied."""
    return sorted(path.name for path in model.base.iterdir() if path.name.isdecimal())


def test_the_latest_version_is_copied_and_newer_ones_replace_it(address, saved_models):
    put(address, 1, saved_models / "plain")
    put(address, 2, saved_models / "starred")
    with tf.io.gfile.GFile(f"{address}/model_card_2.md", "w") as file:
        file.write("# A card")
    (config,) = configs_of_folders(address)
    model = ModelVersions(config.name, config.base_path, config.policy)
    assert config.name == "shouter"
    model.load_first()
    assert model.version == 2 and numbers(model) == ["2"]
    assert (model.base / "model_card_2.md").read_text() == "# A card"
    put(address, 10, saved_models / "starred")
    model.poll()
    # It may still be written.
    assert model.version == 2
    for _ in range(3):
        model.poll()
    assert model.version == 10
    model.poll()
    assert numbers(model) == ["10"]
    folder = model.base
    model.unload()
    assert not folder.exists()


def test_a_version_that_grows_waits(address, saved_models):
    put(address, 1, saved_models / "plain")
    model = ModelVersions("shouter", address)
    model.load_first()
    put(address, 2, saved_models / "starred")
    for count in range(3):
        with tf.io.gfile.GFile(f"{address}/2/more", "w") as file:
            file.write("x" * count)
        model.poll()
    assert numbers(model) == ["1"]


def test_a_bad_version_gives_way_to_the_one_before(address, saved_models, tmp_path):
    put(address, 1, saved_models / "plain")
    bad = tmp_path / "bad"
    shutil.copytree(saved_models / "starred", bad)
    (bad / "saved_model.pb").write_bytes(b"no model")
    put(address, 2, bad)
    model = ModelVersions("shouter", address)
    model.load_first()
    assert model.version == 1


def test_one_version_alone(address, saved_models):
    for version in (1, 2):
        put(address, version, saved_models / "plain")
    (config,) = configs_of_folders(f"{address}/1/")
    assert (config.name, config.policy) == ("shouter", VersionPolicy(None, frozenset([1])))
    model = ModelVersions(config.name, config.base_path, config.policy)
    model.load_first()
    assert numbers(model) == ["1"]


def test_what_cannot_be_read_is_one_sentence(address):
    with pytest.raises(ServeError, match="has no version: it must hold folders named by numbers"):
        ModelVersions("shouter", address)
    with pytest.raises(ServeError, match=r"absent cannot be read \(.*\): check the address, and"):
        ModelVersions("shouter", "ram://bucket/absent")


def test_a_bucket_that_is_lost_later_changes_nothing(address, saved_models, caplog, monkeypatch):
    put(address, 1, saved_models / "plain")
    model = ModelVersions("shouter", address)
    model.load_first()

    def listdir(path):
        raise tf.errors.PermissionDeniedError(None, None, "the key has expired")

    monkeypatch.setattr(tf.io.gfile, "listdir", listdir)
    model.poll()
    model.poll()
    assert model.version == 1 and numbers(model) == ["1"]
    assert caplog.text.count("the key has expired") == 1


def test_what_the_bucket_no_longer_has_is_deleted_unless_it_is_all(address, saved_models):
    for version in (1, 2):
        put(address, version, saved_models / "plain")
    model = ModelVersions("shouter", address, VersionPolicy(latest=2))
    model.load_first()
    assert numbers(model) == ["1", "2"]
    tf.io.gfile.rmtree(f"{address}/2")
    model.poll()
    assert numbers(model) == ["1"] and model.version == 1
    tf.io.gfile.rmtree(f"{address}/1")
    model.poll()
    assert numbers(model) == ["1"] and model.version == 1
