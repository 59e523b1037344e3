"""Notes of C++ libraries do not reach a user; everything else does."""

import os
import sys

import pytest

from pipeline.common import tensorflow_settings

NOISE = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
E0000 00:00:1764110400.123456    1234 cuda_fft.cc:477] Unable to register cuFFT factory: Attempting
E0000 00:00:1764110400.123456    1234 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting
2026-11-25 22:40:29.2: E xla/cuda_blas.cc:1442] Unable to register cuBLAS factory: Attempting
I0000 00:00:1764110400.123456    1234 cpu_feature_guard.cc:227] This TensorFlow binary is optimized
To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow
2026-11-25 22:40:29.275355: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow
trainer_interface.cc(428) LOG(INFO) Loaded all 10 sentences
normalizer.cc(51) LOG(INFO) precompiled_charsmap is empty. use identity normalization.
"""
MATTERS = """\
F0000 00:00:1764110400.123456    1234 tensor.cc:1] Check failed: a == b
E0000 00:00:1764110400.123456    1234 cuda_platform.cc:52] failed call to cuInit
trainer_interface.cc(428) LOG(ERROR) no sentences
terminate called after throwing an instance of 'std::bad_alloc'
"""


@pytest.fixture
def settings(monkeypatch):
    """The module, with the environment and the importers of a fresh process."""
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    monkeypatch.delenv("GRPC_VERBOSITY", raising=False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    yield tensorflow_settings
    os.environ.pop("GRPC_VERBOSITY", None)


def test_only_known_notes_are_held_back(capfd):
    with tensorflow_settings.without_noise():
        os.write(2, (NOISE + MATTERS).encode())
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == MATTERS


def test_what_was_written_before_an_error_is_passed_on(capfd):
    with pytest.raises(KeyError), tensorflow_settings.without_noise():
        os.write(2, (NOISE + MATTERS).encode())
        raise KeyError
    assert capfd.readouterr().err == MATTERS


def test_tensorflow_is_imported_without_its_notes(settings, monkeypatch, tmp_path, capfd):
    """Whoever imports it; looking for it alone changes nothing."""
    import importlib.util

    (tmp_path / "tensorflow.py").write_text(
        f"import os\nos.write(2, {(NOISE + MATTERS).encode()!r})\nspec = __spec__\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    settings.quiet()
    settings.quiet()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    assert importlib.util.find_spec("tensorflow").origin == str(tmp_path / "tensorflow.py")
    import tensorflow

    assert capfd.readouterr().err == MATTERS
    assert tensorflow.__spec__.loader.name == "tensorflow"
    assert not any(type(one).__module__ == settings.__name__ for one in sys.meta_path)


def test_a_users_own_setting_stands(settings, monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    before = list(sys.meta_path)
    settings.quiet()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0" and sys.meta_path == before
