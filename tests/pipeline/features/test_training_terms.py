"""Terms in training pairs: aligned words become one, on both sides."""

import pytest
import tensorflow as tf

from pipeline.features.pair_preprocessor import PairPreprocessor
from pipeline.features.term_phrases import behind_phrases, fed_translations
from pipeline.features.training_terms import with_terms
from pipeline.features.vocabulary_choice import choose_tokens
from pipeline.text.tokenization import CLASS_TOKENS, JOINER, SPECIAL_TOKENS, Tokenizer
from serving.glossary import Glossary

LEXICON = {"file": "fichier", "page": "page", "close": "fermer", "open": "ouvrir", "shut": "fermer"}


def lookup(words):
    initializer = tf.lookup.KeyValueTensorInitializer(list(LEXICON), list(LEXICON.values()))
    return tf.lookup.StaticHashTable(initializer, default_value="").lookup(words)


def replaced(pairs, share=1.0, is_training=True):
    source, target = (tf.ragged.constant([pair[side].split() for pair in pairs]) for side in (0, 1))
    made = with_terms(source, target, lookup, share, tf.fill([len(pairs)], is_training))
    return [[[token.decode() for token in row] for row in side.to_list()] for side in made]


def terms_of(tokens):
    return {token for token in tokens if "\0" in token}


def test_both_sides_have_the_same_terms_where_their_words_were():
    pairs = [
        (f"open the file page {number}", f"ouvrir page le fichier {number}") for number in range(99)
    ]
    sources, targets = replaced(pairs)
    seen = set()
    for (source, target), made, made_target in zip(pairs, sources, targets):
        assert terms_of(made) == terms_of(made_target)
        for words, tokens, part in ((source, made, 1), (target, made_target, 2)):
            written = [token.split("\0")[part] if "\0" in token else token for token in tokens]
            assert written == words.split()
        seen.add(tuple(sorted(terms_of(made))))
    # Any of them, and none.
    assert len(seen) == 8


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("file file", "fichier"),
        ("file", "fichier fichier"),
        ("close shut", "fermer"),
        ("file", "page"),
        ("unknown", "inconnu"),
        (f"file {JOINER}s", "fichier"),
        ("file", f"fichier {JOINER}s"),
        ("file", f"fichier{JOINER}"),
        ("the", "le"),
        ("", ""),
    ],
)
def test_what_is_in_doubt_stays(source, target):
    pairs = [(f"{source} {number}", f"{target} {number}") for number in range(20)]
    assert not any(terms_of(tokens) for side in replaced(pairs) for tokens in side)


def test_only_a_share_of_the_pairs_and_only_in_training():
    pairs = [(f"file {number}", f"fichier {number}") for number in range(400)]

    def share(*arguments):
        return sum(map(bool, map(terms_of, replaced(pairs, *arguments)[0]))) / len(pairs)

    assert share(1.0) == pytest.approx(0.5, abs=0.1)
    assert share(0.4) == pytest.approx(0.2, abs=0.08)
    assert share(1.0, False) == 0
    # A larger share has the terms of a smaller one.
    few, many = (replaced(pairs, share)[0] for share in (0.2, 0.8))
    assert all(one == other for one, other in zip(few, many) if terms_of(one))


def table(words):
    initializer = tf.lookup.KeyValueTensorInitializer(
        tf.constant(words), tf.range(len(words), dtype=tf.int64)
    )
    return tf.lookup.StaticHashTable(initializer, default_value=-1)


@pytest.mark.parametrize("terms", [False, True])
def test_a_term_is_fed_as_its_class_and_labelled_as_a_copy(terms):
    vocabulary = [*CLASS_TOKENS, "open", "ouvrir"] if terms else [*SPECIAL_TOKENS, "open", "ouvrir"]
    preprocessor = PairPreprocessor(
        table(vocabulary), table(vocabulary), Tokenizer("whitespace", terms=terms)
    )
    mark = Glossary({"home page": "la page", "start": "la page"}).mark
    source = mark("open home page start home page [TERM]")
    features = preprocessor.features(tf.constant([source]), tf.constant([mark("ouvrir home page")]))
    class_id = CLASS_TOKENS.index("[TERM]" if terms else "[PLACEHOLDER]")
    size, known = len(vocabulary), vocabulary.index
    ids = {name: value.to_list()[0] for name, value in features.items() if name != "source_tokens"}
    assert ids["source_ids"] == [known("open"), class_id, class_id, class_id, 1]
    assert ids["source_feed_ids"] == [known("open"), class_id, class_id, class_id, 1]
    assert ids["source_extended_ids"] == [known("open"), size + 1, size + 2, size + 1, size + 4]
    assert ids["target_extended_ids"] == [known("ouvrir"), size + 1, 3]
    assert ids["target_input_ids"] == [2, known("ouvrir"), class_id]


def test_the_class_is_the_first_behind_the_special_tokens():
    from pipeline.features.vocabulary_choice import choose_side
    from pipeline.recipes.sections import VocabularyConfig

    counts = {"open": 9, "[TERM]": 3}
    settings = {"tokenizer": {"kind": "text", "lowercase": False, "terms": True}}
    for side in ("source", "target"):
        chosen = choose_side(side, counts, VocabularyConfig(), settings, None)
        assert chosen == [*CLASS_TOKENS, "open"]
    del settings["tokenizer"]["terms"]
    assert choose_side("source", counts, VocabularyConfig(), settings, None) == choose_tokens(
        counts, 100, 1, 1
    )


@pytest.mark.parametrize("kind", ["text", "whitespace"])
def test_a_term_follows_its_phrase(kind):
    """The encoder sees which word stood there."""
    tokenizer = Tokenizer(kind)
    marked = Glossary({"home page": "accueil"}).mark("the home page now")
    tokens = behind_phrases(tokenizer.tokenize(tf.constant([marked, "", "now"])), tokenizer)
    assert [[token.decode() for token in row] for row in tokens.to_list()] == [
        ["the", "home", "page", "\0home page\0accueil\0", "now"],
        [],
        ["now"],
    ]


def test_a_placeholder_in_a_phrase_is_not_repeated():
    tokenizer = Tokenizer("whitespace")
    tokens = tokenizer.tokenize(tf.constant([Glossary({"Open %s": "Ouvrir %s"}).mark("Open %s")]))
    (row,) = behind_phrases(tokens, tokenizer).to_list()
    assert row == [b"Open", b"\0Open %s\0Ouvrir %s\0"]


def test_after_a_term_the_decoder_reads_the_end_of_its_translation():
    tokenizer = Tokenizer("text")
    tokens = [["\0home page\0page d'accueil\0", "the", "\0x\0unknown\0"], [], ["accueil"]]
    feed = tf.ragged.constant([[5, 6, 5], [], [7]], tf.int64)

    class Vocabulary:
        def lookup(self, words):
            return tf.where(words == "accueil", 19, tf.constant(-1, tf.int64))

    fed = fed_translations(tf.ragged.constant(tokens), feed, tokenizer, Vocabulary())
    assert fed.to_list() == [[19, 6, 5], [], [7]]
