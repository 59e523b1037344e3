"""Decoding with a shortlist is decoding with a model for which all other words are impossible."""

import numpy as np
import pytest
from keras import ops

from keras_models.decoding import decode
from keras_models.decoding.sampling import draw_uniforms
from keras_models.layers.numerics import LOG_ZERO
from keras_models.layers.shortlist import choose_words
from tests.keras_models.backends import TENSORFLOW, compiled, numpy, randomize
from tests.keras_models.decoding.fakes import decoded, small_inputs, small_model, tensors
from tests.keras_models.decoding.test_beam import assert_same
from tests.keras_models.models.test_bodies import LEXICON, PAIRS, make, pairs, sources

OPTIONS = dict(max_length=4, return_attention=True)
# Of 8 words. The lexicon of the bodies' tests proposes three, the sources hold two: all of them
# fit.
SIZE = 7


def row_of(inputs, row):
    return {name: value[row : row + 1] for name, value in inputs.items()}


def words_of(model, inputs, size):
    """By the lexicon of the model's head, where it has one."""
    memory, _ = model.encode(inputs)
    lexicon = {
        name: memory[name] for name in ("lexicon_ids", "lexicon_probabilities") if name in memory
    }
    return choose_words(memory["extended_ids"], model.target_vocabulary_size, size, **lexicon)


def decoded_with_words_alone(model, inputs, words, **options):
    """The whole vocabulary, of which all but these words have no probability."""
    bias = numpy(model.head.vocabulary.bias.value)
    impossible = np.full_like(bias, LOG_ZERO)
    impossible[words] = bias[words]
    model.head.vocabulary.bias.assign(impossible)
    found = decoded(model, inputs, **OPTIONS, **options)
    model.head.vocabulary.bias.assign(bias)
    return found


def check(model, inputs, size=SIZE, rows=(0,), **options):
    """Compares rows with the whole model, alone: so rows do not depend on each other either."""
    words = words_of(model, inputs, size)
    found = decoded(model, inputs, shortlist=words, **OPTIONS, **options)
    words = numpy(words)
    for row in rows:
        alone = decoded_with_words_alone(model, row_of(inputs, row), words[row], **options)
        one = type(found)(*(None if value is None else value[row : row + 1] for value in found))
        assert_same(alone, one, tolerance=1e-5)
    assert words.shape[1] < model.target_vocabulary_size
    return found


# Every head, and every body once.
BODIES = [("lstm", "pointer_softmax"), ("transformer", "joint_copy"), ("no attention", "softmax")]
CHOSEN = [
    pair for pair in PAIRS if pair in BODIES or pair[0] == "gru" and pair[1] != "pointer_network"
]


@pytest.mark.parametrize("body,head", CHOSEN)
def test_every_head_under_every_body(body, head):
    model, inputs = make(body, head), sources(pairs())
    randomize(model, 3, 1.0)
    if model.head.needs_lexicon:
        model.set_lexicon(*LEXICON)
    # Another row in each test.
    check(model, inputs, rows=[CHOSEN.index((body, head)) % 3], beam_size=2, n_best=2)


def test_the_softmax_weights_of_a_table_change_nothing():
    """Lists are gathered from the words' columns in the tables of the weights."""
    model, inputs = small_model(), tensors(small_inputs())
    words = words_of(model, inputs, 7)

    def search(**options):
        return decoded(model, inputs, beam_size=2, n_best=2, shortlist=words, **options, **OPTIONS)

    tables, expected = model.decoding_tables(shortlist=True), search()
    assert set(tables) == {"columns", "projections"}
    assert_same(expected, search(tables=tables), tolerance=1e-5)
    other = search(tables=small_model(seed=1).decoding_tables(shortlist=True))
    assert (other.tokens != expected.tokens).any()


def test_a_list_of_all_words_changes_nothing():
    model, inputs = small_model(), tensors(small_inputs())
    expected = decoded(model, inputs, beam_size=3, n_best=3, **OPTIONS)
    words = words_of(model, inputs, 8)
    assert_same(expected, decoded(model, inputs, beam_size=3, n_best=3, shortlist=words, **OPTIONS))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam_size": 3, "n_best": 3, "no_repeat_ngram": 2, "coverage_beta": 0.2},
        {"beam_size": 3, "n_best": 2, "replace_unknown": True},
    ],
)
def test_the_rules_of_a_search_hold(options):
    found = check(small_model(seed=2), tensors(small_inputs()), rows=range(3), **options)
    assert (found.lengths > 0).any()


def test_a_copied_word_can_be_read_again():
    check(
        small_model(head="joint_copy", selective_read=True),
        tensors(small_inputs()),
        beam_size=3,
        n_best=3,
    )


def test_spans():
    check(
        small_model(head="span_copy", head_options={"max_span": 3}),
        tensors(small_inputs()),
        beam_size=3,
        n_best=3,
    )


def test_tokens_that_must_be_kept_are_kept():
    model, inputs = small_model(), small_inputs()
    protected = np.arange(8) == 6
    inputs["source_protected"] = (inputs["source_extended_ids"] == 6) | (
        inputs["source_extended_ids"] >= 8
    )
    found = check(
        model,
        tensors(inputs),
        beam_size=2,
        n_best=2,
        protected_vocabulary=ops.convert_to_tensor(protected),
    )
    for row in range(3):
        owed = inputs["source_extended_ids"][row][inputs["source_protected"][row]]
        said = found.tokens[row, 0, : found.lengths[row, 0]]
        for word in set(owed):
            assert (said == word).sum() == (owed == word).sum()
    assert inputs["source_protected"].any()


def test_a_list_too_short_for_the_source_copies_from_where_a_word_stands():
    """Four words are the special ones alone: all others must be copied, and are."""
    model, inputs = small_model(), small_inputs()
    words = words_of(model, tensors(inputs), 4)
    found = decoded(model, inputs, beam_size=3, n_best=3, shortlist=words, **OPTIONS)
    copied = 0
    for row, k, t in np.argwhere(found.tokens > 3):
        assert found.tokens[row, k, t] >= 8 and found.copied_from[row, k, t] >= 0
        first = found.tokens[row, k, t] - 8
        assert (
            inputs["source_ids"][row, first]
            == inputs["source_ids"][row, found.copied_from[row, k, t]]
        )
        copied += 1
    assert copied > 0


def test_sampling_draws_words_of_the_list():
    model, inputs = small_model(), tensors(small_inputs())
    words = words_of(model, inputs, 5)
    uniforms = draw_uniforms(7, 3, 4, 5)
    options = dict(max_length=5, sampling={}, uniforms=uniforms, n_best=4, shortlist=words)
    found, words = decoded(model, inputs, **options), numpy(words)
    for row in range(3):
        said = np.concatenate(
            [tokens[:n] for tokens, n in zip(found.tokens[row], found.lengths[row])]
        )
        assert set(said[said < 8].tolist()) <= set(words[row].tolist())


@pytest.mark.skipif(TENSORFLOW, reason="The next test compiles the same for all sizes")
@pytest.mark.parametrize("beam", [1, 3])
def test_compiled_equals_uncompiled(beam):
    model, inputs = small_model(seed=1), tensors(small_inputs())
    options = dict(OPTIONS, beam_size=beam, n_best=beam)

    def search(arrays):
        return decode(model, arrays, shortlist=words_of(model, arrays, 6), **options)

    assert_same(numpy(search(inputs)), numpy(compiled(search)(inputs)), tolerance=2e-6)


@pytest.mark.skipif(not TENSORFLOW, reason="JAX compiles for known sizes only")
@pytest.mark.parametrize("xla", [False, True])
def test_one_trace_with_symbolic_sizes_serves_all_sizes(xla):
    import tensorflow as tf

    model = small_model(seed=1)
    options = dict(OPTIONS, beam_size=3 if xla else 1, n_best=1)
    names = list(small_inputs())

    def search(*arrays):
        inputs = dict(zip(names, arrays))
        return decode(
            model, inputs, shortlist=choose_words(inputs["source_extended_ids"], 8, 6), **options
        )

    served = tf.function(
        search,
        input_signature=[tf.TensorSpec([None, None], tf.int32)] * len(names),
        jit_compile=xla,
        autograph=False,
    )
    for batch, source_length in ((3, 5), (1, 2)):
        inputs = small_inputs(batch=batch, source_length=source_length)
        fast = numpy(served(*map(tf.constant, inputs.values())))
        assert_same(numpy(search(*map(tf.constant, inputs.values()))), fast, tolerance=2e-6)
    assert served.experimental_get_tracing_count() == 1


def test_a_head_that_only_copies_has_nothing_to_shorten():
    with pytest.raises(ValueError, match="head 'pointer_network' has no softmax over words"):
        decode(
            small_model(head="pointer_network"),
            tensors(small_inputs()),
            shortlist=np.zeros((3, 4)),
            max_length=3,
        )
