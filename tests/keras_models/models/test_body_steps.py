"""Steps of decoding under bodies and heads that no test decodes with: they agree with training."""

import numpy as np
import pytest
from keras import ops

from tests.keras_models.backends import TENSORFLOW, numpy, outputs, randomize, shared_by_config
from tests.keras_models.models.test_bodies import make, pairs, sources

# Pairs, or on JAX sources with padding, that `test_bodies.py` decodes with: a step is what a search
# adds to training.
STEPPED = (
    [
        ("transformer", "pointer_sentinel"),
        ("transformer", "pointer_network"),
        ("no attention", "joint_copy"),
    ]
    if TENSORFLOW
    else [("gru", "pointer_network"), ("gru", "lexicon_copy"), ("transformer", "joint_copy")]
)


@pytest.mark.parametrize("body,head", STEPPED)
def test_steps_say_what_training_says_whatever_the_padding(body, head):
    model = make(body, head)
    randomize(model)

    def run(model, inputs):
        labels = inputs["target_extended_ids"]
        memory, carry = model.encode(sources(inputs), max_length=labels.shape[1])
        tokens, steps = ops.full_like(labels[:, 0], 2), []
        for t in range(labels.shape[1]):
            log_probs, copies, _, carry = model.step(tokens, carry, memory, t)
            steps.append((log_probs, copies))
            tokens = labels[:, t]
        return [ops.stack(parts, axis=1) for parts in zip(*steps)]

    expected = outputs(model, pairs())
    labels = numpy(pairs()["target_extended_ids"])
    for padding in (0, 2):
        inputs = pairs(padding)
        log_probs, copies = numpy(shared_by_config(model, run, inputs, key="steps"))
        found = np.take_along_axis(log_probs, labels[..., None], axis=-1)[..., 0]
        np.testing.assert_allclose(found[labels != 0], expected[labels != 0], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-5)
        masked = np.broadcast_to(numpy(inputs["source_ids"])[:, None] == 0, copies.shape)
        assert masked.any() and (np.exp(copies[masked]) == 0).all()
