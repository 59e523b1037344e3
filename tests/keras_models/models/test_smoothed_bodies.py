"""Label smoothing under bodies: in training alone, saved with the model, refused where it cannot
be.
"""

import keras
import numpy as np
import pytest

from keras_models.models import RecurrentSeq2Seq
from tests.keras_models.backends import numpy, randomize
from tests.keras_models.models.test_bodies import SOURCE_V, V, make, pairs


@pytest.mark.parametrize("body", ["gru", "transformer"])
def test_training_alone_is_smoothed(body):
    def run(amount, training):
        model = make(body, label_smoothing=amount)
        randomize(model)
        return numpy(model(pairs(), training=training))

    plain, half, whole = run(0.0, True), run(0.2, True), run(0.4, True)
    np.testing.assert_array_equal(run(0.4, False), run(0.0, False))
    assert (np.abs(whole - plain) > 1e-3).all()
    # (1 - epsilon) log p + epsilon mean: half as far with half the smoothing.
    np.testing.assert_allclose(half - plain, (whole - plain) / 2, atol=1e-5)
    config = make(body, label_smoothing=0.2).get_config()
    assert config["label_smoothing"] == 0.2


def test_what_cannot_be_smoothed_is_refused():
    with pytest.raises(ValueError, match="label_smoothing must be from 0 to below 1; got 1.0"):
        make("gru", label_smoothing=1.0)
    with pytest.raises(ValueError, match="needs a large_vocabulary_drawn above 0"):
        RecurrentSeq2Seq(SOURCE_V, V, large_vocabulary_size=4, label_smoothing=0.1)
    keras.utils.set_random_seed(0)
    # A set as large as the vocabulary is none.
    RecurrentSeq2Seq(SOURCE_V, V, large_vocabulary_size=V, label_smoothing=0.1)
