"""The corpus and the bodies of the benchmark of copied words."""

import numpy as np
import pytest

from benchmarks.copied_words import BODIES, Task, join, made_corpus, trained


def test_no_name_of_the_test_was_seen():
    train, test, names = made_corpus(200, 40)
    seen = {word for pair in train for side in pair for word in side}
    assert len(names) == 40 and not names & seen
    for source, target in test:
        assert len(set(source) & names) == 1
        assert set(source) & names == set(target) & names


def test_units_spell_the_words():
    task = Task(200, 40)
    assert [join(tokens) for tokens in task.sources] == [source for source, _ in task.test]
    inputs = task.inputs()
    assert inputs["source_continues"].any()
    assert not inputs["source_continues"][:, 0].any()
    # All units are in the vocabulary: nothing but the search decides about whole words.
    assert (inputs["source_ids"][inputs["source_continues"]] > 3).all()


@pytest.mark.parametrize("body", BODIES)
def test_a_body_is_trained(body):
    model = trained(Task(40, 4), body, "span_copy", guided=0.0, seed=1, epochs=1)
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
