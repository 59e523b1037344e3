"""Ensembles: their mean in NumPy, and that one of one is its member."""

import keras
import numpy as np
import pytest

from keras_models.models import Ensemble
from tests.keras_models.backends import numpy, outputs, randomize
from tests.keras_models.decoding.fakes import decoded
from tests.keras_models.decoding.test_beam import assert_same
from tests.keras_models.models.test_bodies import V, make, pairs, sources


@pytest.fixture(scope="module")
def members():
    """Three bodies with weights of their own."""
    made = [make("gru"), make("lstm"), make("transformer")]
    for seed, member in enumerate(made):
        randomize(member, seed)
    return made


def test_the_score_of_a_target_is_the_members_mean(members):
    inputs = pairs()
    found = outputs(Ensemble(members), inputs)
    each = np.stack([outputs(member, inputs) for member in members]).astype("float64")
    real = numpy(inputs["target_extended_ids"]) != 0
    wanted = np.log(np.mean(np.exp(each), axis=0))
    np.testing.assert_allclose(found[real], wanted[real], rtol=1e-5, atol=1e-5)


def test_a_step_is_the_members_mean(members):
    inputs = sources(pairs())
    ensemble = Ensemble(members)
    memory, carry = ensemble.encode(inputs, max_length=4)
    actions = keras.ops.convert_to_tensor([2, 2, 2], dtype="int32")
    for index in range(2):
        each = [
            member.step(actions, own, memory, index)[:3]
            for member, own, memory in zip(members, carry, memory["members"])
        ]
        *found, carry = ensemble.step(actions, carry, memory, index)
        probabilities, copies, attention = (
            np.mean([of(numpy(one[place]).astype("float64")) for one in each], axis=0)
            for place, of in enumerate((np.exp, np.exp, np.array))
        )
        np.testing.assert_allclose(np.exp(numpy(found[0])), probabilities, atol=1e-6)
        np.testing.assert_allclose(np.exp(numpy(found[1])), copies, atol=1e-6)
        np.testing.assert_allclose(numpy(found[2]), attention, atol=1e-6)
        np.testing.assert_allclose(np.exp(numpy(found[0])).sum(-1), 1.0, atol=1e-5)
        actions = keras.ops.convert_to_tensor([V, 4, V + 2], dtype="int32")


@pytest.mark.parametrize("beam", [1, 3])
def test_an_ensemble_of_one_is_the_model(members, beam):
    inputs = sources(pairs())
    options = {"max_length": 4, "beam_size": beam, "n_best": beam, "min_length": 1}
    alone = decoded(members[0], inputs, **options)
    assert_same(alone, decoded(Ensemble(members[:1]), inputs, **options))


def test_copies_are_found_where_they_stand(members):
    inputs = sources(pairs())
    options = {"max_length": 4, "beam_size": 2, "n_best": 2, "min_length": 1}
    found = decoded(Ensemble(members), inputs, **options)
    extended = numpy(inputs["source_extended_ids"])
    copies = np.argwhere(found.tokens >= V)
    assert len(copies)
    for row, k, t in copies:
        surface = extended[row, found.tokens[row, k, t] - V]
        assert extended[row, found.copied_from[row, k, t]] == surface


def test_it_is_saved_with_its_members(members, tmp_path):
    ensemble, inputs = Ensemble(members[:2]), pairs()
    ensemble.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert [type(member) for member in loaded.members] == [type(m) for m in members[:2]]
    np.testing.assert_allclose(outputs(loaded, inputs), outputs(ensemble, inputs), atol=1e-6)


@pytest.mark.parametrize(
    "others, words",
    [
        (("gru", "softmax"), "way of copying"),
        (("gru", "pointer_softmax"), "repeated words"),
    ],
)
def test_members_that_do_not_fit_are_named(others, words):
    with pytest.raises(ValueError, match=words):
        Ensemble([make("gru"), make(*others)])
    spans = [make("gru", "span_copy", head_options={"max_span": span}) for span in (2, 3)]
    with pytest.raises(ValueError, match="longest span"):
        Ensemble(spans)


def test_it_needs_members_and_no_shortlist(members):
    with pytest.raises(ValueError, match="at least one"):
        Ensemble([])
    with pytest.raises(ValueError, match="set no shortlist"):
        Ensemble(members).decoding_tables(shortlist=True)
