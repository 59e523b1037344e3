"""`keras_models.token_ids` makes the ids and labels that the Transform graph makes."""

import functools

import hypothesis
import pytest
from hypothesis import strategies as st

from keras_models.token_ids import TokenIds
from pipeline.text import tokenization
from tests.pipeline.features.vocabulary_tables import vocabulary_tables

SPECIAL = list(tokenization.SPECIAL_TOKENS)
SOURCE_VOCABULARY = [*SPECIAL, "the", "page", "￭,", "%s", "only_source"]
TARGET_VOCABULARY = [*SPECIAL, "page", "la", "￭,", "{0}", "<b>", "only_target"]
CLASSES = {"%s": 4, "{0}": 4, "%(name)s": 4, "<b>": 5, "https://x.org": 6, "--force": 7}
TOKENS = sorted(
    {*SOURCE_VOCABULARY, *TARGET_VOCABULARY, *CLASSES, "Zanzibar", "Ζεύς"} - {tokenization.JOINER}
)
TEXTS = st.lists(st.sampled_from([*TOKENS, tokenization.JOINER]), max_size=9)
SPANS = {"max_span": 3, "min_span": 2}


@functools.cache
def graph(folder):
    """The traced preprocessor of lists of tokens, and its tables, which must stay alive."""
    import tensorflow as tf

    from pipeline.features.pair_preprocessor import PairPreprocessor

    tables = vocabulary_tables(folder, SOURCE_VOCABULARY, TARGET_VOCABULARY)
    preprocessor = PairPreprocessor(
        *tables, settings={"tokenizer": {"kind": "text", "lowercase": False}, "spans": SPANS}
    )
    ragged = tf.RaggedTensorSpec([None, None], tf.string)
    return tf.function(preprocessor.features_of_tokens, input_signature=[ragged, ragged]), tables


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Function of two lists of lists of tokens: the graph's features as dense lists."""
    import tensorflow as tf

    function, _ = graph(tmp_path_factory.mktemp("vocabularies"))

    def ragged(rows):
        values = tf.constant([token for row in rows for token in row], tf.string)
        return tf.RaggedTensor.from_row_lengths(
            values, tf.constant([len(row) for row in rows], tf.int64)
        )

    def call(sources, targets):
        made = dict(function(ragged(sources), ragged(targets)))
        del made["source_tokens"]
        return {name: value.to_tensor().numpy().tolist() for name, value in made.items()}

    yield call
    graph.cache_clear()


@hypothesis.given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
@hypothesis.settings(max_examples=60)
def test_ids_and_labels_equal_the_graphs(features, pairs):
    ids = TokenIds(
        SOURCE_VOCABULARY,
        TARGET_VOCABULARY,
        special_ids=range(SPECIAL.index(tokenization.JOINER)),
        unknown_as=lambda token: CLASSES.get(token, tokenization.UNK_ID),
    )
    sources, targets = map(list, zip(*pairs))
    made = {name: value.tolist() for name, value in ids.pairs(sources, targets, **SPANS).items()}
    assert made == features(sources, targets)
