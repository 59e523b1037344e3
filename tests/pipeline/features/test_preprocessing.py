"""Ids of the extended space, against plain Python loops."""

import functools

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeline.text import tokenization
from tests.pipeline.features.vocabulary_tables import vocabulary_tables

SPECIAL = list(tokenization.SPECIAL_TOKENS)
SOURCE_VOCABULARY = [*SPECIAL, "the", "page", "￭,", "%s", "only_source"]
TARGET_VOCABULARY = [*SPECIAL, "page", "la", "￭,", "{0}", "<b>", "only_target", ","]
CLASSES = {
    **dict.fromkeys(["%(name)s", "%s", "{0}", "{{ x }}", "$HOME"], "[PLACEHOLDER]"),
    **dict.fromkeys(["<b>", "</b>", "&amp;"], "[TAG]"),
    **dict.fromkeys(["https://x.org", "a@b.org"], "[URL]"),
    **dict.fromkeys(["--force", "--no-cache"], "[OPTION]"),
}
# Pieces of text, and the tokens they are: known on both sides, on one, on none.
PIECES = {
    **{token: [token] for token in CLASSES},
    **{
        word: [word]
        for word in (
            "the",
            "page",
            "la",
            "only_source",
            "only_target",
            "Zanzibar",
            "Ζεύς",
            "été",
            ",",
            "?",
        )
    },
    "page,": ["page", "￭,"],
    "(Quxo)": ["(￭", "Quxo", "￭)"],
    "%s%s": ["%s", "￭", "%s"],
    "<b>{0}</b>": ["<b>", "￭", "{0}", "￭", "</b>"],
    "d'Alençon": ["d'￭", "Alençon"],
}
TEXTS = st.lists(st.sampled_from(sorted(PIECES)), max_size=8)


def oracle(source, target):
    """The features of one pair of lists of pieces."""
    source, target = (
        [token for piece in pieces for token in PIECES[piece]] for pieces in (source, target)
    )
    size = len(TARGET_VOCABULARY)

    def feed(token, vocabulary):
        return vocabulary.index(token if token in vocabulary else CLASSES.get(token, "[UNK]"))

    def extended(token):
        if token in TARGET_VOCABULARY:
            return TARGET_VOCABULARY.index(token)
        return size + source.index(token) if token in source else 1

    return {
        "source_tokens": [token.encode() for token in source],
        "source_ids": [feed(token, SOURCE_VOCABULARY) for token in source],
        "source_extended_ids": [extended(token) for token in source],
        "source_feed_ids": [feed(token, TARGET_VOCABULARY) for token in source],
        "target_input_ids": [2, *(feed(token, TARGET_VOCABULARY) for token in target)],
        "target_extended_ids": [*(extended(token) for token in target), 3],
    }


@functools.cache
def graph(folder):
    import tensorflow as tf

    from pipeline.features.pair_preprocessor import PairPreprocessor

    tables = vocabulary_tables(folder, SOURCE_VOCABULARY, TARGET_VOCABULARY)
    spec = tf.TensorSpec([None], tf.string)
    function = tf.function(
        lambda source, target: PairPreprocessor(*tables).features(source, target),
        input_signature=[spec, spec],
    )
    # The tables live as long as somebody holds them.
    return function, tables


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Function of pairs of lists of pieces: the graph's features, a list of dicts of lists."""
    import tensorflow as tf

    from pipeline.features import feature_names

    function, _ = graph(tmp_path_factory.mktemp("vocabularies"))

    def call(pairs):
        sides = [[" ".join(pair[side]).encode() for pair in pairs] for side in (0, 1)]
        made = function(*(tf.constant(side, tf.string, shape=[len(pairs)]) for side in sides))
        assert tuple(made) == feature_names.FEATURES
        made = {name: value.to_list() for name, value in made.items()}
        assert {len(rows) for rows in made.values()} == {len(pairs)}
        return [{name: rows[number] for name, rows in made.items()} for number in range(len(pairs))]

    return call


@hypothesis.given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
@hypothesis.settings(max_examples=250)
def test_features_equal_plain_python(features, pairs):
    assert features(pairs) == [oracle(*pair) for pair in pairs]


@hypothesis.given(st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=4))
@hypothesis.settings(max_examples=50)
def test_a_pair_does_not_depend_on_its_batch(features, pairs):
    assert features(pairs) == [features([pair])[0] for pair in pairs]


def test_an_unseen_placeholder_is_fed_as_its_class_and_copied_as_itself(features):
    (made,) = features(
        [(["the", "%(name)s", "Zanzibar", "%(name)s"], ["la", "%(name)s", "Zanzibar", "Ζεύς"])]
    )
    size = len(TARGET_VOCABULARY)
    assert made["source_ids"] == [9, 4, 1, 4]
    assert made["source_extended_ids"] == [size, size + 1, size + 2, size + 1]
    assert made["source_feed_ids"] == [1, 4, 1, 4]
    assert made["target_input_ids"] == [2, 10, 4, 1, 1]
    assert made["target_extended_ids"] == [10, size + 1, size + 2, 1, 3]


def test_a_known_token_keeps_its_target_id_even_where_it_could_be_copied(features):
    (made,) = features([(["page", "{0}"], ["{0}", "page"])])
    assert made["source_extended_ids"] == [9, 12]
    assert made["target_extended_ids"] == [12, 9, 3]


def test_empty_texts_and_an_empty_batch(features):
    empty = {
        "source_tokens": [],
        "source_ids": [],
        "source_extended_ids": [],
        "source_feed_ids": [],
    }
    assert (
        features([([], []), ([], [])])
        == [{**empty, "target_input_ids": [2], "target_extended_ids": [3]}] * 2
    )
    assert features([([], ["Zanzibar"])])[0]["target_extended_ids"] == [1, 3]
    assert features([]) == []


def test_a_long_neighbour_costs_little(features):
    """One text of thousands of tokens must not blow a batch of short ones up to its square."""
    long = (["?"] * 3000, ["?"] * 3000)
    short = (["Zanzibar"], ["Zanzibar"])
    made = features([long, *[short] * 400])
    assert made[0]["target_extended_ids"] == [len(TARGET_VOCABULARY)] * 3000 + [3]
    assert made[1:] == [oracle(*short)] * 400


def test_a_special_token_written_in_a_tokenized_text_is_a_word_to_copy(tmp_path):
    import tensorflow as tf

    from pipeline.features import lookup_tables
    from pipeline.features.pair_preprocessor import PairPreprocessor

    tables = []
    for name, tokens in (("source", SOURCE_VOCABULARY), ("target", TARGET_VOCABULARY)):
        (tmp_path / name).write_text("".join(f"{token}\n" for token in tokens))
        tables.append(lookup_tables.vocabulary_table(str(tmp_path / name)))
    tokenizer = tokenization.Tokenizer("whitespace")
    made = PairPreprocessor(*tables, tokenizer).features(
        tf.constant(["[PAD] page %s"]), tf.constant(["[END] [PAD]"])
    )
    size = len(TARGET_VOCABULARY)
    assert made["source_tokens"].to_list() == [[b"[PAD]", b"page", b"%s"]]
    assert made["source_ids"].to_list() == [[1, 10, 12]]
    assert made["source_extended_ids"].to_list() == [[size, 9, size + 2]]
    assert made["source_feed_ids"].to_list() == [[1, 9, 4]]
    assert made["target_extended_ids"].to_list() == [[1, size, 3]]


def test_every_class_has_its_id():
    import tensorflow as tf

    from pipeline.features import protected_classes

    ids = protected_classes.protected_class_ids(
        tf.constant([*CLASSES, "word", "￭,", "100%"])
    ).numpy()
    assert ids.tolist() == [*(SPECIAL.index(name) for name in CLASSES.values()), 1, 1, 1]
    assert SPECIAL[:4] == ["[PAD]", "[UNK]", "[START]", "[END]"]


def test_a_vocabulary_table_counts_lines(tmp_path):
    import tensorflow as tf

    from pipeline.features import lookup_tables

    (tmp_path / "file").write_text("[PAD]\n<a b>\n\u2028x\ny z\n")
    table = lookup_tables.vocabulary_table(str(tmp_path / "file"))
    found = table.lookup(tf.constant(["[PAD]", "<a b>", "\u2028x", "y z", "y", ""]))
    assert found.numpy().tolist() == [0, 1, 2, 3, -1, -1]
    assert int(table.size()) == 4


class Lookup:
    """A table of a Python dict, for eager calls."""

    def __init__(self, entries):
        self._entries = entries

    def lookup(self, words):
        import tensorflow as tf

        return tf.constant(
            [self._entries.get(word.decode(), "") for word in words.numpy()], tf.string
        )


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Returns a function that makes the features of a pair of tokenized texts as lists."""
    import tensorflow as tf

    from pipeline.features import lookup_tables
    from pipeline.features.pair_preprocessor import PairPreprocessor

    folder = tmp_path_factory.mktemp("vocabularies")
    entities = ["[ENTITY_1]", "[ENTITY_2]"]
    tables = []
    for name, tokens in (
        ("source", [*SOURCE_VOCABULARY, *entities]),
        ("target", TARGET_VOCABULARY),
    ):
        (folder / name).write_text("".join(f"{token}\n" for token in tokens))
        tables.append(lookup_tables.vocabulary_table(str(folder / name)))

    def call(source, target, settings, tables_of_settings=None, tags=None):
        preprocessor = PairPreprocessor(
            *tables,
            tokenizer=tokenization.Tokenizer("whitespace"),
            settings=settings,
            tables=lookup_tables.FeatureTables(**(tables_of_settings or {})),
        )
        made = preprocessor.features(
            tf.constant([source]),
            tf.constant([target]),
            tags={name: tf.constant([text]) for name, text in (tags or {}).items()},
        )
        return {name: value.to_list()[0] for name, value in made.items()}

    return call


SIZE = len(TARGET_VOCABULARY)


def test_a_copy_lexicon_decides_what_is_copied_and_not_what_is_read(make):
    lexicon = Lookup({"the page": "only_target", "Paris": "paris:_ci", "New York": "ny:_ci"})
    made = make(
        "the page New York Paris",
        "paris:_ci la ny:_ci Paris",
        {"copy_lexicon": True, "spans": {"max_span": 5}},
        {"copy_lexicon": lexicon, "longest_phrase": 2},
    )
    assert made["source_tokens"] == [b"the", b"page", b"New", b"York", b"Paris"]
    assert made["source_copy_tokens"] == [b"only_target", b"page", b"ny:_ci", b"York", b"paris:_ci"]
    assert made["source_ids"] == [9, 10, 1, 1, 1]
    assert made["source_extended_ids"] == [14, 9, SIZE + 2, SIZE + 3, SIZE + 4]
    assert made["source_feed_ids"] == [14, 9, 1, 1, 1]
    assert made["target_extended_ids"] == [SIZE + 4, 10, SIZE + 2, 1, 3]
    assert made["target_span_starts"] == [4, -1, 2, -1, -1]
    assert made["target_span_lengths"] == [1, 0, 1, 0, 0]


def test_entities_are_read_as_ids_and_pointed_at_even_if_known(make):
    made = make(
        "page Ann the page [ENTITY_1]",
        "page la Ann page the",
        {
            "pointers": "entities",
            "entity_feature": "ner",
            "entities": 2,
            "source_features": ["ner"],
        },
        {"tags": {"ner": Tags()}},
        {"ner": "PER PER O PER O"},
    )
    first = len(SOURCE_VOCABULARY)
    # A word that reads like an entity's id is none.
    assert made["source_ids"] == [first, first + 1, 9, first, 1]
    assert made["source_ner"] == [2, 2, 3, 2, 3]
    assert made["source_extended_ids"] == [9, SIZE + 1, SIZE + 2, 9, SIZE + 4]
    assert made["target_pointers"] == [0, -1, 1, 0, -1, -1]
    assert made["target_extended_ids"] == [9, 10, SIZE + 1, 9, SIZE + 2, 3]


class Tags:
    def lookup(self, tags):
        import tensorflow as tf

        return tf.constant(
            [{"PER": 2, "O": 3}.get(tag.decode(), -1) for tag in tags.numpy()], tf.int64
        )


def test_a_served_text_with_too_few_tags_still_has_features(make):
    settings = {
        "pointers": "entities",
        "entity_feature": "ner",
        "entities": 2,
        "source_features": ["ner"],
    }
    made = make("Ann Bob", "", settings, {"tags": {"ner": Tags()}}, {"ner": "PER"})
    assert made["source_ids"] == [len(SOURCE_VOCABULARY), 1]
    assert make("Ann", "", settings, {"tags": {"ner": Tags()}}, {"ner": ""})["source_ids"] == [1]


def test_a_dictionary_translates_what_copies_write_but_no_placeholder(make):
    lookup = Lookup({"house": "maison", "%s": "pour", "Paris": "other"})
    made = make(
        "house %s Paris x",
        "maison",
        {"translate": "dictionary", "pointers": "dictionary", "copy_lexicon": True},
        {
            "copy_lexicon": Lookup({"Paris": "paris:_ci"}),
            "longest_phrase": 1,
            "translations": lookup,
            "dictionary_sources": Lookup({"maison": "home house"}),
        },
    )
    assert made["source_copy_tokens"] == [b"maison", b"%s", b"paris:_ci", b"x"]
    assert made["target_pointers"] == [0, -1]
    # The labels are of what a copy means, not of how it is written: `maison` is not in the source.
    assert made["target_extended_ids"] == [1, 3]


class Lines:
    """The lines of a lexicon's words."""

    def lookup(self, words):
        import tensorflow as tf

        lines = {b"the": 0, b"page": 1}
        return tf.constant([lines.get(word, -1) for word in words.numpy()], tf.int64)


def test_each_source_token_has_its_row_in_the_lexicon(make):
    made = make("page x the", "la", {"lexicon_rows": True}, {"lexicon_rows": Lines()})
    assert made["source_lexicon_rows"] == [3, 1, 2]


class Letters:
    """Line numbers of characters: 6 and up, by the alphabet."""

    def lookup(self, found):
        import tensorflow as tf

        flat = [
            6 + ord(c.decode()) - ord("a") if c.isalpha() else -1 for c in found.numpy().ravel()
        ]
        return tf.reshape(tf.constant(flat, tf.int64), tf.shape(found))


def test_words_as_rows_of_characters(make):
    made = make("ab ? {0} page", "x", {"word_length": 3}, {"characters": Letters()})
    assert made["source_tokens"] == [b"ab", b"?", b"{0}", b"page"]
    # An unseen placeholder is one character, its class; of a long word the first two and the last.
    assert made["source_characters"] == [6, 7, 0, 1, 0, 0, 2, 0, 0, 21, 6, 10]
    # One that the vocabulary has is spelt.
    assert make("%s", "x", {"word_length": 3}, {"characters": Letters()})["source_characters"] == [
        1,
        24,
        0,
    ]
    assert make("", "x", {"word_length": 3}, {"characters": Letters()})["source_characters"] == []


def test_case_of_each_token(make):
    made = make("The NASA probe iPhone 42", "x", {"surface_features": ["case"]})
    assert made["source_case"] == [4, 3, 2, 5, 1]
