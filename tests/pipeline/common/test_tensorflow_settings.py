"""TensorFlow is quiet, unless a user has said what it shows."""

import os

import pytest

from pipeline.common import tensorflow_settings


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """An environment without settings, and the one before after the test."""
    for name in ("TF_CPP_MIN_LOG_LEVEL", "GRPC_VERBOSITY"):
        monkeypatch.setenv(name, "to be restored")
        monkeypatch.delenv(name)


def test_notes_are_turned_off():
    assert tensorflow_settings.quiet()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3" and os.environ["GRPC_VERBOSITY"] == "NONE"


def test_a_users_own_setting_stands(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    monkeypatch.setenv("GRPC_VERBOSITY", "DEBUG")
    assert not tensorflow_settings.quiet()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0" and os.environ["GRPC_VERBOSITY"] == "DEBUG"
