"""TensorFlow's optimizer of graphs is off for a block, and then as it was."""

import pytest
import tensorflow as tf

from pipeline.common import graph_optimizer


def is_off():
    return tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False)


@pytest.fixture(autouse=True)
def as_it_was():
    before = is_off()
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": before})


@pytest.mark.parametrize("before", [True, False])
def test_it_is_off_for_a_block_and_then_as_before(before):
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": before})
    with pytest.raises(KeyError):
        with graph_optimizer.turned_off():
            assert is_off()
            raise KeyError
    assert is_off() is before


def test_other_options_stay():
    tf.config.optimizer.set_experimental_options({"debug_stripper": True})
    with graph_optimizer.turned_off():
        assert tf.config.optimizer.get_experimental_options()["debug_stripper"]
    assert tf.config.optimizer.get_experimental_options()["debug_stripper"]
    tf.config.optimizer.set_experimental_options({"debug_stripper": False})


def test_it_can_be_turned_off_for_good():
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    graph_optimizer.turn_off()
    assert is_off()
