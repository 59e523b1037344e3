"""Guided alignment: the teacher against plain loops, and bodies that it teaches."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_models import alignment, losses
from keras_models.models import RecurrentSeq2Seq
from tests.keras_models.backends import numpy
from tests.keras_models.models.test_bodies import LEXICON, make, pairs


def oracle(targets, ids, mask, translations):
    """Teaching of one pair, token by token."""
    taught = np.zeros((len(targets), len(ids)))

    def equal(t, j):
        inside = 0 <= t < len(targets) and 0 <= j < len(ids)
        return inside and mask[j] and targets[t] > 3 and targets[t] == ids[j]

    for t in range(len(targets)):
        lengths = np.zeros(len(ids))
        for j in range(len(ids)):
            if not equal(t, j):
                continue
            before = after = 0
            while equal(t - before - 1, j - before - 1):
                before += 1
            while equal(t + after + 1, j + after + 1):
                after += 1
            lengths[j] = before + after + 1
        weights = (lengths == lengths.max()) * (lengths > 0)
        meant = translations[t] * mask * (targets[t] > 3)
        if lengths.max() < 2 and meant.sum() > 0:
            weights = meant
        if weights.sum() > 0:
            taught[t] = weights / weights.sum()
    return taught


def test_the_teacher_agrees_with_plain_loops():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        targets, ids = rng.integers(0, 8, (3, 6)), rng.integers(0, 8, (3, 7))
        ids[0, 2:6] = targets[0, 1:5]
        mask = np.arange(7) < rng.integers(0, 8, (3, 1))
        lexicon_ids = rng.integers(1, 8, (3, 7, 2))
        lexicon_probabilities = rng.random((3, 7, 2)) * (rng.random((3, 7, 2)) < 0.3)
        translations = numpy(
            alignment.translation_probabilities(
                ops.convert_to_tensor(targets), lexicon_ids, lexicon_probabilities.astype("float32")
            )
        )
        expected = np.zeros((3, 6, 7))
        for b in range(3):
            for t in range(6):
                for j in range(7):
                    same = lexicon_ids[b, j] == targets[b, t]
                    expected[b, t, j] = lexicon_probabilities[b, j][same].sum()
        np.testing.assert_allclose(translations, expected, rtol=1e-5, atol=1e-7)
        for given in (translations, None):
            found = numpy(
                alignment.teacher_alignment(ops.convert_to_tensor(targets), ids, mask, given)
            )
            for b in range(3):
                said = np.zeros((6, 7)) if given is None else given[b]
                wanted = oracle(targets[b], ids[b], mask[b], said)
                np.testing.assert_allclose(found[b], wanted, rtol=1e-5, atol=1e-6)
            seen |= set(found.sum(-1).round(4).ravel())
    assert seen == {0.0, 1.0}


def test_runs_of_pieces_go_before_words_and_words_before_single_pieces():
    # A copied word of pieces 9 8, of which 8 stands in another word, too; 5 means 6.
    ids, mask = np.array([[8, 4, 9, 8, 6]]), np.ones((1, 5), "bool")
    targets = np.array([[9, 8, 5, 4, 3]])
    translations = np.zeros((1, 5, 5), "float32")
    translations[0, 1, 4] = translations[0, 2, 4] = translations[0, 3, 0] = 0.5
    found = numpy(
        alignment.teacher_alignment(ops.convert_to_tensor(targets), ids, mask, translations)
    )
    np.testing.assert_array_equal(found[0].argmax(-1)[:4], [2, 3, 4, 0])
    np.testing.assert_array_equal(found[0].sum(-1), [1, 1, 1, 1, 0])


CASES = [("gru", "pointer_generator"), ("transformer", "pointer_generator")]
CASES += [("gru", "joint_copy"), ("transformer", "pointer_sentinel"), ("gru", "pointer_network")]
CASES += [("transformer", "span_copy"), ("transformer", "lexicon_copy"), ("lstm", "softmax")]


@pytest.mark.parametrize("body,head", CASES)
def test_the_loss_of_a_body_is_the_cross_entropy(body, head):
    inputs = pairs()
    options = {"guided_alignment_weight": 2.0, "coverage_loss_weight": 0.0}
    if head == "softmax":
        # A lexicon for the teacher alone.
        inputs["source_lexicon_rows"] = inputs["source_ids"] % 4
        options["lexicon_shape"] = (4, 2)
        model = RecurrentSeq2Seq(9, 8, head=head, embedding_size=6, hidden_size=8, **options)
        model.set_lexicon(*LEXICON)
    else:
        model = make(body, head, **options)
    states = []
    copy_log_weights = model.head.copy_log_weights
    model.head.copy_log_weights = lambda *arguments: (
        states.append(copy_log_weights(*arguments)) or states[-1]
    )
    model(inputs, training=True)
    (loss,) = model.losses
    (log_weights,) = numpy(states)
    values = {name: numpy(value) for name, value in inputs.items()}
    mask, real = values["source_ids"] != 0, values["target_extended_ids"] != 0
    some = mask.any(axis=-1)
    np.testing.assert_allclose(np.exp(log_weights).sum(-1)[some], 1, rtol=1e-5)
    assert (np.exp(log_weights) * ~mask[:, None] == 0).all()
    total = 0.0
    for b in range(len(mask)):
        translations = np.zeros(log_weights[b].shape)
        if "source_lexicon_rows" in values and (head == "softmax" or head == "lexicon_copy"):
            for j, row in enumerate(values["source_lexicon_rows"][b]):
                for word, probability in zip(LEXICON[0][row], LEXICON[1][row]):
                    translations[:, j] += probability * (values["target_extended_ids"][b] == word)
        arguments = values["target_extended_ids"][b], values["source_extended_ids"][b], mask[b]
        taught = oracle(*arguments, translations)
        total -= (taught * np.where(taught > 0, log_weights[b], 0)).sum()
    np.testing.assert_allclose(float(loss), 2 * total / real.sum(), rtol=1e-4)
    assert total > 0
    # None of it at inference.
    model(inputs)
    assert not model.losses


def test_a_transformer_learns_where_copies_come_from():
    """Known words, which its softmax can say, too: nothing else asks the attention to point."""
    rng = np.random.default_rng(0)
    words = np.stack([rng.permutation(np.arange(4, 8)) for _ in range(24)])
    inputs = {
        "source_ids": words,
        "source_extended_ids": words,
        "target_input_ids": np.concatenate([np.full((24, 1), 2), words], axis=1),
        "target_extended_ids": np.concatenate([words, np.full((24, 1), 3)], axis=1),
    }

    def pointed(weight):
        model = make("transformer", guided_alignment_weight=weight)
        model.compile(keras.optimizers.Adam(0.02), loss=losses.negative_log_likelihood)
        model.fit(inputs, inputs["target_extended_ids"], epochs=100, verbose=0)
        states = []
        score = model.head.target_log_prob
        model.head.target_log_prob = lambda state, memory, *arguments, **keywords: (
            states.append((state, memory)) or score(state, memory, *arguments, **keywords)
        )
        model(inputs)
        found = np.exp(numpy(model.head.copy_log_weights(*states[0])))[:, :4]
        return float(np.mean(found[:, range(4), range(4)]))

    taught, alone = pointed(1.0), pointed(0.0)
    assert taught > 0.95 and taught > alone


def test_what_cannot_be_taught():
    with pytest.raises(ValueError, match="guided_alignment_weight needs an attention"):
        RecurrentSeq2Seq(9, 8, head="softmax", attention="none", guided_alignment_weight=1.0)
