import keras
import numpy as np
import pytest

from keras_models.layers import PointerSentinelWindow
from tests.keras_models import sentinel_oracle
from tests.keras_models.backends import (
    TENSORFLOW,
    numpy,
    randomize,
    traced_shapes,
    value_and_gradients,
)
from tests.keras_models.heads.test_pointer_sentinel import HIDDEN, V, sentinel_weights


def make_window(seed=0, window=3, scale=0.5, **kwargs):
    head = PointerSentinelWindow(V, window, **kwargs)
    head.build((None, None, HIDDEN))
    randomize(head, seed, scale)
    return head


def past(rng, batch=2, length=8):
    hidden = rng.normal(size=(batch, length, HIDDEN)).astype("float32")
    return hidden, rng.integers(0, V, size=(batch, length)).astype("int32")


@pytest.mark.parametrize("window", [1, 3, 8, 20])
def test_each_step_sees_the_last_words_and_itself(window):
    rng = np.random.default_rng(window)
    hidden, words = past(rng)
    head = make_window(window=window)
    whole, after = numpy(head(hidden, words))
    for b in range(2):
        for t in range(8):
            first = max(0, t - window + 1)
            p, a, _ = sentinel_oracle.mixture(
                hidden[b, t],
                hidden[b, first : t + 1],
                words[b, first : t + 1],
                V,
                sentinel_weights(head),
            )
            np.testing.assert_allclose(np.exp(whole[b, t]), p, rtol=0, atol=1e-5)
            np.testing.assert_allclose(np.exp(whole[b, t]).sum(), 1, atol=1e-5)
    # The window returned is what the last step saw; what is not there yet is empty.
    seen = min(window, 8)
    np.testing.assert_array_equal(after["words"][:, -seen:], words[:, -seen:])
    assert (after["words"][:, : window - seen] == -1).all()
    np.testing.assert_array_equal(after["states"][:, -seen:], hidden[:, -seen:])


def test_a_word_outside_the_window_is_out_of_reach():
    head = make_window(window=3)
    head.sentinel.assign(np.full(HIDDEN, -1e4))
    head.query.kernel.assign(np.zeros((HIDDEN, HIDDEN)))
    head.query.bias.assign(np.full(HIDDEN, 20.0))  # all of the mass goes to the pointer
    hidden = np.ones((1, 5, HIDDEN), "float32")
    words = np.array([[6, 1, 2, 3, 4]], "int32")
    probabilities = np.exp(numpy(head(hidden, words)[0]))[0]
    np.testing.assert_allclose(
        probabilities[2, 6], 1 / 3, atol=1e-5
    )  # t = 2 sees positions 0, 1, 2
    np.testing.assert_allclose(probabilities[3, 6], 0, atol=1e-7)
    np.testing.assert_allclose(probabilities[4, [2, 3, 4]], 1 / 3, atol=1e-5)


@pytest.mark.parametrize("window", [1, 4, 20] if TENSORFLOW else [4, 20])
def test_chunks_and_steps_equal_the_whole(window):
    hidden, words = past(np.random.default_rng(1), length=11)
    following = np.roll(words, -1, axis=1)
    head = make_window(window=window)
    whole, _ = numpy(head(hidden, words, targets=following))
    carried, parts = None, []
    for begin, end in ((0, 1), (1, 4), (4, 9), (9, 11)):
        part, carried = head(
            hidden[:, begin:end], words[:, begin:end], carried, targets=following[:, begin:end]
        )
        parts.append(numpy(part))
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=0, atol=1e-6)
    # Asked for the last steps alone, the same; and the window may be taken after fewer steps.
    last, early = numpy(head(hidden, words, targets=following[:, -2:], last=2, lengths=5))
    np.testing.assert_allclose(last, whole[:, -2:], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(
        early["words"], numpy(head(hidden[:, :5], words[:, :5])[1]["words"])
    )
    _, rows = numpy(head(hidden, words, lengths=keras.ops.convert_to_tensor([5, 0])))
    np.testing.assert_array_equal(rows["words"][0], early["words"][0])
    np.testing.assert_array_equal(rows["states"][0], early["states"][0])
    assert (rows["words"][1] == -1).all()
    window_now = head.initial_window(2, HIDDEN)
    for t in range(11):
        log_probs, copies, window_now = head.step(
            keras.ops.convert_to_tensor(hidden[:, t]),
            keras.ops.convert_to_tensor(words[:, t]),
            window_now,
        )
        log_probs, copies = numpy(log_probs), numpy(copies)
        np.testing.assert_allclose(
            log_probs[[0, 1], following[:, t]], whole[:, t], rtol=0, atol=1e-6
        )
        assert (np.exp(copies)[numpy(window_now["words"]) < 0] == 0).all()


def test_words_without_an_id_are_copied():
    head = make_window(window=3)
    hidden, words = past(np.random.default_rng(2), length=4)
    words[:, 1] = V + 1
    probabilities = np.exp(numpy(head(hidden, words, size=V + 4)[0]))
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)
    assert (probabilities[:, 0, V:] == 0).all() and (probabilities[:, 1:, V + 1] > 0).all()
    assert (probabilities[..., [V, V + 2, V + 3]] == 0).all()


def test_padding_is_not_pointed_at():
    head = make_window(window=8)
    hidden, words = past(np.random.default_rng(2), length=4)
    words[:, 2:] = -1
    probabilities = np.exp(numpy(head(hidden, words)[0]))
    p, _, _ = sentinel_oracle.mixture(
        hidden[0, 3], hidden[0, :2], words[0, :2], V, sentinel_weights(head)
    )
    np.testing.assert_allclose(probabilities[0, 3], p, rtol=0, atol=1e-5)


def test_the_window_builds_no_wide_tensor_in_training():
    hidden, words = past(np.random.default_rng(0), 2, 13)
    head = make_window(window=9)

    def total(hidden, words):
        return keras.ops.sum(head(hidden, words, targets=words)[0])

    made = traced_shapes(total, head, hidden, words)
    assert (2, 13, 9 + 13) in made and (2, 13, V) in made
    assert not any(size in shape for shape in made for size in (V + 9, V + 13, V + 9 + 13))


def test_window_in_bfloat16_saturated_has_no_nan():
    head = make_window(window=5, scale=30.0, dtype="mixed_bfloat16")
    hidden, words = past(np.random.default_rng(0))
    log_probs, window = head(keras.ops.cast(hidden, "bfloat16"), words)
    assert keras.backend.standardize_dtype(window["states"].dtype) == "bfloat16"
    np.testing.assert_allclose(np.exp(numpy(log_probs)).sum(-1), 1, atol=1e-5)
    value, gradients = value_and_gradients(
        lambda x: keras.ops.mean(keras.ops.maximum(head(x, words, targets=words)[0], -100.0)),
        [hidden],
        head,
    )
    assert np.isfinite(value) and all(np.isfinite(gradient).all() for gradient in gradients)


def test_window_config():
    head = make_window(window=5, name="mine")
    assert PointerSentinelWindow.from_config(head.get_config()).get_config() == head.get_config()
    assert head.get_config()["window"] == 5
    with pytest.raises(ValueError, match="window must be at least 1; got 0"):
        PointerSentinelWindow(V, 0)
