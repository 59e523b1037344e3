import numpy as np
import pytest

from keras_models.decoding import StepOutput, beam_search, decode
from tests.keras_models.backends import TENSORFLOW, compiled, numpy, outputs
from tests.keras_models.decoding.fakes import decoded, small_inputs, small_model, tensors
from tests.keras_models.decoding.test_beam import assert_same

V = 8
OPTIONS = dict(max_length=5, coverage_beta=0.2, return_attention=True)


def search(model, inputs, **options):
    return decoded(model, inputs, **{**OPTIONS, **options})


HEADS = [
    ("pointer_generator", 1, {}),
    ("pointer_generator", 3, {}),
    ("softmax", 3, {}),
    ("joint_copy", 3, {"selective_read": True}),
    ("pointer_network", 3, {"attention": "none"}),
    ("pointer_softmax", 3, {"head_options": {"switch_bias": -2.0}}),
    ("span_copy", 3, {"head_options": {"max_span": 1}}),
]


@pytest.mark.parametrize("head,beam,options", HEADS)
def test_log_probabilities_are_those_of_training(head, beam, options):
    """An output fed back as labels has its log-probability: copies, feeding and carries agree."""
    model, inputs = small_model(head=head, **options), small_inputs()
    found = search(model, inputs, beam_size=beam, n_best=beam, min_length=1)
    copied = 0
    labels, feeds = np.zeros((2, 3, beam, 6), "int32")
    for b, k in np.ndindex(3, beam):
        length = found.lengths[b, k]
        tokens = found.tokens[b, k, :length]
        labels[b, k, : length + 1] = [*tokens, 3]
        fed = [int(inputs["source_feed_ids"][b, t - V]) if t >= V else int(t) for t in tokens]
        feeds[b, k, : length + 1] = [2, *fed]
        copied += (tokens >= V).sum()
    # The hypotheses of a source side by side.
    pairs = {name: np.repeat(value, beam, axis=0) for name, value in inputs.items()}
    pairs |= {
        "target_input_ids": feeds.reshape(-1, 6),
        "target_extended_ids": labels.reshape(-1, 6),
    }
    log_prob = outputs(model, tensors(pairs)).reshape(labels.shape)
    np.testing.assert_allclose(
        np.where(labels, log_prob, 0).sum(-1), found.log_probs, rtol=1e-5, atol=1e-5
    )
    # The example copies unknown words where it can, and where it cannot nothing claims to be
    # copied.
    assert (copied > 0) == (head != "softmax")
    assert head != "softmax" or (
        (found.copied_from == -1).all() and (found.copy_probability == 0).all()
    )


def test_copies_come_from_where_the_word_stands():
    inputs = small_inputs(batch=4)
    found = search(small_model(), inputs, beam_size=3, n_best=3)
    seen = 0
    for b, k, t in np.argwhere(found.copied_from >= 0):
        assert t < found.lengths[b, k]
        assert inputs["source_extended_ids"][b, found.copied_from[b, k, t]] == found.tokens[b, k, t]
        seen += 1
    assert seen > 0
    # A word that only the source has is copied for certain.
    outside = found.tokens >= V
    assert outside.any()
    np.testing.assert_allclose(found.copy_probability[outside], 1, atol=1e-5)


def test_a_beam_of_one_is_greedy_search():
    model, inputs = small_model(), tensors(small_inputs())
    memory, carry = model.encode(inputs)

    def step(tokens, carry, index):
        return StepOutput(*model.step(tokens, carry, memory))

    size = V + inputs["source_ids"].shape[1]
    beam = beam_search(
        step, carry, memory["extended_ids"], memory["mask"], size, beam_size=1, **OPTIONS
    )
    assert_same(numpy(beam), search(model, small_inputs()))


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_tables_of_the_weights_change_nothing(cell):
    model, inputs = small_model(cell=cell), small_inputs()
    tables = model.decoding_tables()
    assert set(tables) == {"projections"}
    expected = search(model, inputs, beam_size=3, n_best=3)
    assert_same(
        expected, search(model, inputs, beam_size=3, n_best=3, tables=tables), tolerance=1e-5
    )
    # They are what the steps use: with those of another model the answers are others.
    other = search(
        model,
        inputs,
        beam_size=3,
        n_best=3,
        tables=small_model(seed=1, cell=cell).decoding_tables(),
    )
    assert (other.tokens != expected.tokens).any()


def test_a_search_that_goes_on_with_all_sources_finds_the_same():
    model, inputs = small_model(), small_inputs(batch=4)
    expected = search(model, inputs, beam_size=3, n_best=3)
    found = search(model, inputs, beam_size=3, n_best=3, compact=False)
    assert_same(expected, found, tolerance=1e-5)


@pytest.mark.skipif(not TENSORFLOW, reason="reads TensorFlow's graph")
def test_a_search_that_goes_on_with_all_sources_has_a_loop_less():
    import tensorflow as tf

    model, inputs = small_model(), tensors(small_inputs(batch=4))

    def loops(**options):
        traced = tf.function(
            lambda arrays: decode(model, arrays, max_length=5, beam_size=3, **options),
            autograph=False,
        )
        operations = traced.get_concrete_function(inputs).graph.get_operations()
        return sum("While" in operation.type for operation in operations)

    assert loops(compact=False) == loops() - 1


RULES = {"no_repeat_ngram": 2}
# Head, beam, options of the model and rules of the search.
COMPILED = [
    ("pointer_generator", 1, {}, {}),
    ("pointer_generator", 3, {"cell": "lstm"}, {}),
    ("joint_copy", 1, {"selective_read": True}, RULES),
    ("pointer_softmax", 1, {}, {}),
    ("span_copy", 3, {"head_options": {"max_span": 3}}, RULES),
    ("span_copy", 1, {"head_options": {"copying_context": "start"}}, {}),
]


@pytest.mark.skipif(TENSORFLOW, reason="The next test compiles the same for all sizes")
@pytest.mark.parametrize("head,beam,options,rules", COMPILED)
def test_compiled_equals_uncompiled(head, beam, options, rules):
    model, inputs = small_model(head=head, **options), tensors(small_inputs())
    options = dict(OPTIONS, beam_size=beam, n_best=beam, **rules)
    fast = numpy(compiled(lambda arrays: decode(model, arrays, **options))(inputs))
    assert_same(numpy(decode(model, inputs, **options)), fast, tolerance=2e-6)


@pytest.mark.skipif(not TENSORFLOW, reason="JAX compiles for known sizes only")
@pytest.mark.parametrize(
    "head,beam,options,rules,xla",
    [(*case, True) for case in COMPILED]
    + [
        ("pointer_network", 1, {}, {}, True),
        ("pointer_sentinel", 1, {}, {}, True),
        ("pointer_generator", 1, {}, {}, False),
    ],
)
def test_one_trace_with_symbolic_sizes_serves_all_sizes(head, beam, options, rules, xla):
    """As an exported model does."""
    import tensorflow as tf

    model = small_model(head=head, **options)
    options = dict(OPTIONS, beam_size=beam, n_best=beam, **rules)
    names = list(small_inputs())
    served = tf.function(
        lambda *arrays: decode(model, dict(zip(names, arrays)), **options),
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * len(names),
        jit_compile=xla,
        autograph=False,
    )
    for batch, source_length in ((3, 5), (1, 2)):
        inputs = small_inputs(batch=batch, source_length=source_length)
        fast = numpy(served(*map(tf.constant, inputs.values())))
        assert_same(
            search(model, inputs, beam_size=beam, n_best=beam, **rules), fast, tolerance=2e-6
        )
    assert served.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("beam", [1, 3])
def test_a_padded_source_changes_nothing(beam):
    model = small_model()
    short = search(model, small_inputs(), beam_size=beam, n_best=beam)
    long = search(model, small_inputs(padding=4), beam_size=beam, n_best=beam)
    assert_same(short, long._replace(attention=long.attention[..., :5]), tolerance=1e-5)
    assert (long.attention[..., 5:] == 0).all()


@pytest.mark.parametrize("beam", [1, 3])
def test_rows_are_independent(beam):
    model, inputs = small_model(), small_inputs()
    together = search(model, inputs, beam_size=beam, n_best=beam)
    for row in range(3):
        alone = search(
            model, {k: v[row : row + 1] for k, v in inputs.items()}, beam_size=beam, n_best=beam
        )
        assert_same(
            type(alone)(*(value[row : row + 1] for value in together)), alone, tolerance=1e-5
        )


def test_a_beam_wider_than_the_extended_vocabulary():
    inputs = small_inputs()
    found = search(small_model(), inputs, beam_size=20, n_best=20)
    narrow = search(small_model(), inputs, beam_size=3)
    assert (found.scores[:, 0] >= narrow.scores[:, 0] - 1e-5).all()
    for b in range(3):
        # Finished hypotheses first, all different, of real tokens.
        count = (found.scores[b] > -1e8).sum()
        assert count == 20
        assert len({tuple(tokens) for tokens in found.tokens[b]}) == 20
        possible = {0, *range(4, V), *inputs["source_extended_ids"][b]} - {1, 2, 3}
        assert set(found.tokens[b].ravel()) <= possible


@pytest.mark.parametrize("beam", [1, 3, 20])
def test_an_empty_source_decodes(beam):
    inputs = {name: np.zeros_like(value) for name, value in small_inputs().items()}
    found = search(small_model(), inputs, beam_size=beam)
    assert all(np.isfinite(value).all() for value in found)
    assert (found.copied_from == -1).all() and (found.scores[:, 0] > -1e8).all()
    assert (found.tokens < V).all()


@pytest.mark.parametrize("beam", [1, 3])
def test_mixed_precision(beam):
    found = search(small_model(dtype="mixed_bfloat16"), small_inputs(), beam_size=beam)
    assert (
        found.scores.dtype == np.float32
        and np.isfinite(found.scores).all()
        and (found.scores > -1e8).all()
    )
