"""Word translation probabilities against loops and against nltk."""

import io
import math

import numpy as np
import pytest

from pipeline.lexicons import alignment_files, translation_lexicon
from pipeline.lexicons import word_alignment as wa
from pipeline.lexicons.links import make_links, pair_keys, split_keys


def corpus(seed=0, pairs=12, words=6, longest=5):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, size=(pairs, 2))
    return tuple(
        [rng.integers(1, words + 1, size=size).tolist() for size in sizes[:, side]]
        for side in range(2)
    )


def slow_pass(sources, targets, t, prior=None):
    """One pass by loops: counts, log-likelihood, and each link's posterior by (pair, i, j)."""
    counts, likelihood, links = {}, 0.0, {}
    for number, (source, target) in enumerate(zip(sources, targets)):
        for i, e in enumerate(target, 1):
            joint = {}
            for j, f in enumerate([0, *source]):
                d = 1 / (len(source) + 1)
                if prior is not None:
                    weight = [
                        math.exp(-prior.tension * abs(i / len(target) - k / len(source)))
                        for k in range(1, len(source) + 1)
                    ]
                    d = (
                        prior.null_probability
                        if j == 0
                        else (1 - prior.null_probability) * weight[j - 1] / sum(weight)
                    )
                joint[j] = d * t(f, e)
            total = sum(joint.values())
            likelihood += math.log(total)
            for j, f in enumerate([0, *source]):
                counts[f, e] = counts.get((f, e), 0.0) + joint[j] / total
                links[number, i, j] = joint[j] / total
    return counts, likelihood, links


def slow_normalized(counts):
    totals = {}
    for (f, _), value in counts.items():
        totals[f] = totals.get(f, 0.0) + value
    return {(f, e): value / totals[f] for (f, e), value in counts.items()}


def as_dict(keys, values):
    return {(int(f), int(e)): float(v) for f, e, v in zip(*split_keys(keys), values)}


@pytest.mark.parametrize("prior", [None, wa.Prior(), wa.Prior(0.3, 0.7)])
def test_passes_equal_the_equations(prior):
    sources, targets = corpus()
    links, table, slow = make_links(sources, targets), None, lambda f, e: 1.0
    for _ in range(4):
        counts = wa.expected_counts(links, table, prior)
        expected, likelihood, _ = slow_pass(sources, targets, slow, prior)
        found = as_dict(counts.keys, counts.values)
        assert set(found) == set(expected)
        assert found == pytest.approx(expected, abs=1e-6)
        assert counts.log_likelihood == pytest.approx(likelihood, abs=1e-5)
        table = wa.normalize(counts)
        probabilities = slow_normalized(expected)
        assert as_dict(*table) == pytest.approx(probabilities, abs=1e-6)
        slow = lambda f, e, of=probabilities: of.get((f, e), 0.0)  # noqa: E731


def test_model_1_is_nltks():
    from nltk.translate import AlignedSent, IBMModel1

    sources, targets = corpus(3, pairs=20)
    # A word that stands twice in a target: nltk divides by its total once for each, so its counts
    # are too small.
    targets = [sorted(set(target)) for target in targets]
    words = [
        AlignedSent([f"e{e}" for e in target], [f"f{f}" for f in source])
        for source, target in zip(sources, targets)
    ]
    theirs = IBMModel1(words, 7).translation_table
    links, table = make_links(sources, targets), None
    for _ in range(7):
        table = wa.normalize(wa.expected_counts(links, table))
    for (f, e), probability in as_dict(*table).items():
        assert probability == pytest.approx(theirs[f"e{e}"][f"f{f}" if f else None], abs=1e-9)


@pytest.mark.parametrize("prior", [wa.Prior(), wa.Prior(0.3, 0.7)])
def test_a_pass_of_the_diagonal_model_is_nltks_model_2_with_that_alignment_table(prior):
    """nltk learns a number for each place; with the diagonal's, its pass is the same."""
    import collections

    from nltk.translate import AlignedSent, IBMModel2

    sources, targets = corpus(4, pairs=20)
    targets = [sorted(set(target)) for target in targets]  # see above
    links = make_links(sources, targets)
    table = wa.normalize(wa.expected_counts(links))
    translations = collections.defaultdict(lambda: collections.defaultdict(float))
    for (f, e), probability in as_dict(*table).items():
        translations[f"e{e}"][f"f{f}" if f else None] = probability
    d = collections.defaultdict(
        lambda: collections.defaultdict(lambda: collections.defaultdict(dict))
    )
    for n, m in {(len(source), len(target)) for source, target in zip(sources, targets)}:
        for i in range(1, m + 1):
            weights = [math.exp(-prior.tension * abs(i / m - j / n)) for j in range(1, n + 1)]
            d[0][i][n][m] = prior.null_probability
            for j, weight in enumerate(weights, 1):
                d[j][i][n][m] = (1 - prior.null_probability) * weight / sum(weights)
    words = [
        AlignedSent([f"e{e}" for e in target], [f"f{f}" for f in source])
        for source, target in zip(sources, targets)
    ]
    theirs = IBMModel2(
        words, 1, {"translation_table": translations, "alignment_table": d}
    ).translation_table
    for (f, e), probability in as_dict(
        *wa.normalize(wa.expected_counts(links, table, prior))
    ).items():
        assert theirs[f"e{e}"][f"f{f}" if f else None] == pytest.approx(probability, abs=1e-6)


def test_the_likelihood_never_falls_and_the_tension_finds_the_diagonal():
    rng = np.random.default_rng(1)
    sources = [rng.integers(1, 30, size=rng.integers(3, 9)).tolist() for _ in range(200)]
    targets = [[100 - word for word in source] for source in sources]
    for start in (None, wa.Prior()):
        links, table, prior, curve = make_links(sources, targets), None, start, []
        for _ in range(6):
            counts = wa.expected_counts(links, table, prior)
            table = wa.normalize(counts)
            prior = wa.update_prior(prior, counts) if prior else None
            curve.append(counts.log_likelihood)
        assert all(after >= before - 1e-6 for before, after in zip(curve[1:], curve[2:]))
        found = as_dict(*table)
        assert all(found[word, 100 - word] > 0.9 for word in range(1, 30))
    assert prior.tension > 8


@pytest.mark.parametrize("prior", [None, wa.Prior()])
@pytest.mark.parametrize("cuts", [(4,), (1, 2, 9), (0, 12)])
def test_shards_make_no_difference(prior, cuts):
    sources, targets = corpus(5)
    whole, table = make_links(sources, targets), None
    bounds = list(zip((0, *cuts), (*cuts, len(sources))))
    shards = [make_links(sources[a:b], targets[a:b]) for a, b in bounds]
    for _ in range(3):
        together = wa.expected_counts(whole, table, prior)
        added = wa.add_counts(wa.expected_counts(shard, table, prior) for shard in shards)
        np.testing.assert_array_equal(added.keys, together.keys)
        np.testing.assert_allclose(added.values, together.values, rtol=1e-12)
        assert added[2:5] == pytest.approx(together[2:5]) and added.sizes == together.sizes
        table = wa.normalize(together)


def test_agreement_multiplies_both_directions():
    sources, targets = corpus(7)
    forward, backward = make_links(sources, targets), make_links(targets, sources)
    t = wa.normalize(wa.expected_counts(forward, None, wa.Prior()))
    s = wa.normalize(wa.expected_counts(backward, None, wa.Prior()))
    weights = wa.agreement_weights(forward, backward, s, wa.Prior())
    counts = wa.expected_counts(forward, t, wa.Prior(), weights)
    _, _, one = slow_pass(sources, targets, lambda f, e: as_dict(*t).get((f, e), 0.0), wa.Prior())
    _, _, other = slow_pass(targets, sources, lambda f, e: as_dict(*s).get((f, e), 0.0), wa.Prior())
    expected = {}
    for (number, i, j), posterior in one.items():
        f = sources[number][j - 1] if j else 0
        e = targets[number][i - 1]
        weight = other[number, j, i] if j else 1.0
        expected[f, e] = expected.get((f, e), 0.0) + posterior * weight
    assert as_dict(counts.keys, counts.values) == pytest.approx(expected, abs=1e-6)


def test_empty_sides_and_nothing_at_all():
    links = make_links([[1], [], [2]], [[3], [4], []])
    assert as_dict(links.keys, links.keys).keys() == {(0, 3), (1, 3)}
    nothing = make_links([], [])
    counts = wa.expected_counts(nothing, None, wa.Prior())
    assert len(wa.normalize(counts).keys) == 0 and counts.log_likelihood == 0
    assert wa.update_prior(wa.Prior(), counts) == wa.Prior()
    assert len(wa.add_counts([]).keys) == 0
    # A table that knows none of the words explains none.
    assert wa.expected_counts(links, wa.Table(np.zeros(0, np.int64), np.zeros(0))).values.sum() == 0
    assert len(wa.normalize(wa.expected_counts(links), with_null=False).keys) == 1


def written_and_read(write, read, *contents):
    file = io.BytesIO()
    write(file, *contents)
    file.seek(0)
    return read(file)


def assert_equal(found, expected):
    """Compares named tuples of arrays, types included."""
    assert type(found) is type(expected)
    for one, other in zip(found, expected):
        if isinstance(other, np.ndarray):
            assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("pairs", [0, 1, 12])
def test_files_hold_what_was_written(pairs):
    links = make_links(*corpus(pairs=pairs))
    assert_equal(
        written_and_read(alignment_files.write_links, alignment_files.read_links, links), links
    )
    counts = wa.expected_counts(links)
    assert_equal(
        written_and_read(alignment_files.write_counts, alignment_files.read_counts, counts), counts
    )
    for prior in (None, wa.Prior(0.1, 3.25)):
        table, read_prior = written_and_read(
            alignment_files.write_model, alignment_files.read_model, wa.normalize(counts), prior
        )
        assert_equal(table, wa.normalize(counts))
        assert read_prior == prior


@pytest.mark.parametrize(
    "top_k, min_probability", [(1, 0.0), (2, 0.15), (3, 0.3), (100, 0.0), (100, 0.9)]
)
def test_what_is_left_out_early_would_be_pruned(top_k, min_probability):
    """With equal probabilities too: pruning chooses among them by code point."""
    rng = np.random.default_rng(5)
    words = {
        source: {f"e{e}": float(rng.integers(1, 4)) for e in range(1, 6 + source)}
        for source in range(1, 20)
    }
    entries = sorted(
        (source, int(e[1:]), value) for source, row in words.items() for e, value in row.items()
    )
    sources, targets, values = map(np.array, zip(*entries))
    table = wa.normalize(wa.Counts(pair_keys(sources, targets), values, 0.0, 0.0, 0.0, {}))
    left = wa.likeliest(table, top_k, min_probability)

    def pruned(table):
        lexicon = {}
        for (source, target), probability in as_dict(*table).items():
            lexicon.setdefault(source, {})[f"e{target}"] = probability
        return translation_lexicon.prune(lexicon, top_k, min_probability)

    assert pruned(left) == pruned(table)
    assert (len(left.keys) < len(table.keys)) == (top_k < 5 or min_probability > 0)
