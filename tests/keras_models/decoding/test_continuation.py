import keras
import numpy as np
import pytest

from keras_models.decoding import continue_text
from tests.keras_models import sentinel_oracle
from tests.keras_models.backends import compiled, numpy
from tests.keras_models.models.test_language_model import V, make, oracle_weights

# Words 4 to 8 have ids; 9 stands for a word without one, fed as 1.
TEXTS = [[4, 9, 5, 9], [6, 7]]
INPUTS = np.array([[4, 1, 5, 1], [6, 7, 0, 0]])
EXTENDED = np.array([[4, V + 1, 5, V + 1], [6, 7, 0, 0]])
LENGTHS = np.array([4, 2])


def test_greedy_equals_the_oracle_word_by_word():
    model = make(window=3)
    found = numpy(continue_text(model, INPUTS, EXTENDED, LENGTHS, 6))
    weights, config = oracle_weights(model), model.get_config()
    for row, length in enumerate(LENGTHS):
        fed, words = [3, *INPUTS[row, :length]], [3, *EXTENDED[row, :length]]
        for index in range(6):
            p, pointed = sentinel_oracle.language_model(
                fed, words, weights, 3, config["zoneout_hidden"], config["zoneout_cell"], V + 4
            )
            token = int(np.argmax(p[-1]))
            assert found["tokens"][row, index] == token
            assert found["log_probs"][row, index] == pytest.approx(np.log(p[-1][token]), abs=1e-4)
            # Positions of the oracle count the start; the likeliest position that holds the word is
            # the source.
            masses = {t: a for t, a in pointed[-1].items() if words[t] == token}
            share = sum(masses.values()) / p[-1][token]
            assert found["copy_probability"][row, index] == pytest.approx(share, abs=1e-4)
            source = max(masses, key=masses.get) - 1 if share > 0.5 else -1
            assert found["copied_from"][row, index] == source
            fed.append(token if token < V else INPUTS[row, token - V])
            words.append(token)


def test_a_word_without_an_id_can_be_written():
    """A pointer that takes all of the mass repeats the text, such words included."""
    model = make(window=4)
    model.head.sentinel.assign(np.full(5, -1e4))
    model.head.query.kernel.assign(np.zeros((5, 5)))
    model.head.query.bias.assign(np.full(5, 20.0))
    allowed = np.zeros(V, bool)
    allowed[4:] = True
    found = numpy(
        continue_text(model, INPUTS[:1], EXTENDED[:1], LENGTHS[:1], 8, forbidden=~allowed)
    )
    assert set(found["tokens"][0]) <= {4, 5, V + 1} and (found["copied_from"] >= 0).all()
    np.testing.assert_allclose(found["copy_probability"], 1, atol=1e-4)
    # Only what stands in the last four words is in reach.
    text = list(EXTENDED[0])
    for index, (token, position) in enumerate(zip(found["tokens"][0], found["copied_from"][0])):
        assert text[position] == token and index + 4 - position <= 4
        text.append(token)


@pytest.mark.parametrize("head", ["pointer_sentinel", "softmax"])
def test_drawing_depends_on_the_numbers_alone(head):
    model = make(head=head)
    forbidden = np.arange(V) < 3
    uniforms = np.random.default_rng(0).random((2, 5)).astype("float32")

    def draw(numbers):
        return continue_text(
            model, INPUTS, EXTENDED, LENGTHS, 5, forbidden=forbidden, uniforms=numbers, top_k=4
        )

    first, again = (
        numpy(draw(uniforms)),
        numpy(compiled(draw)(keras.ops.convert_to_tensor(uniforms))),
    )
    np.testing.assert_array_equal(first["tokens"], again["tokens"])
    np.testing.assert_allclose(first["log_probs"], again["log_probs"], atol=1e-5)
    other = numpy(draw(1 - uniforms))
    assert (other["tokens"] != first["tokens"]).any()
    assert (first["tokens"] >= 3).all()
    if head == "softmax":
        assert (first["copied_from"] == -1).all() and (first["tokens"] < V).all()
