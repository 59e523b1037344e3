"""Searches whose steps multiply by panels find what they find without them."""

import numpy as np
import pytest

from keras_models.layers import panels
from keras_models.models import Ensemble
from tests.keras_models.backends import numpy, randomize
from tests.keras_models.decoding.fakes import decoded
from tests.keras_models.decoding.test_beam import assert_same
from tests.keras_models.models.test_bodies import make, pairs, sources

OPTIONS = dict(max_length=4, beam_size=2, n_best=2, min_length=2)
BODIES = {
    "gru": lambda: make("gru"),
    "layers": lambda: make("lstm", "softmax", decoder_layers=2),
    "bahdanau": lambda: make("gru", decoder="bahdanau", attention="additive"),
    "transformer": lambda: make("transformer"),
    "tied": lambda: make("transformer", "softmax", tie_embeddings="target"),
    "projected": lambda: make("transformer", embedding_size=6),
    "ensemble": lambda: Ensemble([make("gru"), make("transformer")]),
}


@pytest.fixture(autouse=True)
def smallest(monkeypatch):
    """Panels of kernels however small."""
    monkeypatch.setattr(panels, "SMALLEST", 0)


@pytest.mark.parametrize("name", list(BODIES))
def test_panels_change_nothing_and_each_is_read(name):
    model, inputs = BODIES[name](), sources(pairs())
    for seed, member in enumerate(getattr(model, "members", [model])):
        randomize(member, seed)
    own, tables = model.decoding_tables(), model.decoding_tables(few_rows=True)
    made = sorted(set(tables) - set(own))
    assert len({table.split("_")[1] for table in made}) == len(model.step_kernels())
    expected = decoded(model, inputs, tables=own, **OPTIONS)
    assert_same(expected, decoded(model, inputs, tables=tables, **OPTIONS), tolerance=1e-5)
    for table in made:
        other = decoded(model, inputs, tables={**tables, table: 0 * tables[table]}, **OPTIONS)
        assert np.any(np.abs(other.scores - expected.scores) > 1e-6), table


def test_many_rows_do_without(monkeypatch):
    monkeypatch.setattr(panels, "MOST_ROWS", 5)
    model, inputs = make("gru"), sources(pairs())
    randomize(model, 1)
    tables = {name: 0 * table for name, table in model.decoding_tables(few_rows=True).items()}
    tables["projections"] = model.decoding_tables()["projections"]
    # Three sources with two hypotheses each, to the end.
    options = {**OPTIONS, "compact": False}
    expected = decoded(model, inputs, **options)
    assert_same(expected, decoded(model, inputs, tables=tables, **options), tolerance=1e-5)


def test_a_shortlist_reads_no_panels_of_all_words():
    model, inputs = make("gru"), sources(pairs())
    randomize(model, 1)
    tables = model.decoding_tables(shortlist=True, few_rows=True)
    assert len(model.step_kernels()) == len(model.step_kernels(shortlist=True)) + 1
    words = np.tile(np.arange(6), (len(numpy(inputs["source_ids"])), 1))
    expected = decoded(model, inputs, shortlist=words, **OPTIONS)
    assert_same(
        expected, decoded(model, inputs, shortlist=words, tables=tables, **OPTIONS), tolerance=1e-5
    )
