"""TFX Trainer's entry: what it cannot do is refused, not ignored."""

import types

import pytest

from pipeline.entry_points import run_fn


def test_a_base_model_is_refused():
    arguments = types.SimpleNamespace(base_model="/models/1/Format-Serving", hyperparameters=None)
    with pytest.raises(run_fn.BaseModelError, match="leave base_model out"):
        run_fn.run_fn(arguments)
