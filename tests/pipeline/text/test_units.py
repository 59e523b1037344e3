"""Words cut into units, and the texts that come back from them."""

import functools

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeline.text import tokenization, units

WORDS = {
    "international": 9,
    "nation": 30,
    "nations": 20,
    "inter": 9,
    "the": 90,
    "a": 50,
    "été": 9,
    "(￭": 9,
    "￭)": 9,
    "%s": 99,
}
PIECES = [
    *(
        "nation",
        "internationally",
        "Zanzibar",
        "朝食",
        "👩\u200d🚀",
        "d'été",
        "%s",
        "{0}",
        "<b>",
        "x.y",
        "(a)",
        "((a",
        "nation(s",
        "'the'",
        "¿été",
        "l’a",
        "￭",
        "■",
        "ẞ,",
        "\u0301",
    ),
]


@functools.cache
def model(kind):
    from components.subwords.executor import train

    return train(WORDS, kind, 300)


@functools.cache
def tokenizer(kind, tokenization_kind="text"):
    return units.SegmentingTokenizer(tokenization.Tokenizer(tokenization_kind), model(kind))


def cut(texts, *arguments):
    import tensorflow as tf

    made = tokenizer(*arguments).tokenize(tf.constant(texts, tf.string, shape=[len(texts)]))
    return made, [[unit.decode() for unit in row] for row in made.to_list()]


def test_words_are_cut_and_placeholders_are_not():
    _, (row, empty) = cut(["the nations (a %(name)s)", ""], "characters")
    letters = ["n", *(f"￭{letter}" for letter in "ations")]
    assert row == ["t", "￭h", "￭e", *letters, "(￭", "a", "%(name)s", "￭)"] and empty == []
    _, (row,) = cut(["nations internation"], "subwords")
    assert "".join(row).replace("￭", "") == "nationsinternation" and len(row) < 8


@pytest.mark.parametrize("arguments", [("characters",), ("subwords",), ("subwords", "whitespace")])
@hypothesis.settings(max_examples=40)
@hypothesis.given(
    texts=st.lists(
        st.lists(st.sampled_from(PIECES), max_size=6).map(" ".join), min_size=1, max_size=3
    )
)
def test_texts_come_back(arguments, texts):
    """As the words' own tokenizer gives them back."""
    import tensorflow as tf

    made, rows = cut(texts, *arguments)
    got = [text.decode() for text in units.detokenize(made, units.byte_table()).numpy()]
    words = tokenization.Tokenizer(*arguments[1:])
    expected = words.detokenize(words.tokenize(tf.constant(texts))).numpy()
    assert got == [text.decode().replace("￭", "■") for text in expected]
    # Alone as beside the others; and each unit is one that the vocabulary has, or a whole token
    # that no model may cut.
    for text, row in zip(texts, rows):
        assert cut([text], *arguments)[1] == [row]
    possible = set(units.possible_units(model(arguments[0])))
    for unit in (unit for row in rows for unit in row):
        _, bare, _ = units.split_marks(unit)
        assert (
            unit in possible
            or bare == "￭"
            or tokenization.Tokenizer("whitespace").protected_tokens(bare)
        )


def test_bytes_that_make_no_character():
    import tensorflow as tf

    tokens = tf.ragged.constant(
        [["a", "<0xE3>", "￭<0x81>", "￭<0x82>￭", "b"], ["<0xE3>", "x"], []], dtype=tf.string
    )
    assert [text.decode() for text in units.detokenize(tokens, units.byte_table()).numpy()] == [
        "a あb",
        "\ufffd x",
        "",
    ]


def test_what_cannot_be_learned():
    from components.subwords.executor import train

    with pytest.raises(ValueError, match="no word to learn units from"):
        train({"%s": 3, "￭": 2}, "subwords", 300)


def test_only_punctuation_of_texts_that_are_not_tokenized_touches_what_follows():
    possible = units.possible_units(model("characters"))
    assert {"(￭", "￭(￭", "￭)￭"} <= set(possible) and "n￭" not in possible
    assert not {"(￭", "￭(￭"} & set(units.possible_units(model("characters"), touching=False))
    assert len(set(possible)) == len(possible)


def test_every_piece_is_in_the_vocabulary():
    from pipeline.features.vocabulary_choice import choose_units

    vocabulary = choose_units({"￭nation": 7, "%s": 3, "{0}": 1}, model("subwords"), 2)
    special = len(tokenization.SPECIAL_TOKENS)
    assert vocabulary[special : special + 2] == ["￭nation", "%s"] and "{0}" not in vocabulary
    assert {"<0x00>", "￭<0xFF>￭", "a", "￭a"} <= set(vocabulary) and len(set(vocabulary)) == len(
        vocabulary
    )


def save_and_load(tokenizers, folder):
    """Returns the function that cuts texts by each of some tokenizers, as another program does."""
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def cut_by_all(texts):
        return [made.tokenize(texts).flat_values for made in tokenizers]

    saved = tf.Module()
    saved.cut, saved.resources = cut_by_all, [made._pieces for made in tokenizers]
    tf.saved_model.save(saved, str(folder))
    return tf.saved_model.load(str(folder)).cut


def test_models_stay_apart_once_saved(tmp_path):
    """A graph that was loaded finds a model by a name, in what all graphs of the process share."""
    import tensorflow as tf

    from components.subwords.executor import train

    texts = tf.constant(["nation 朝食"])
    english, japanese = model("subwords"), train({"朝食": 30, "朝": 20, "食": 9}, "subwords", 300)
    for number, models in enumerate([(english, japanese), (japanese, english)]):
        tokenizers = [
            units.SegmentingTokenizer(tokenization.Tokenizer("whitespace"), made) for made in models
        ]
        expected = [made.tokenize(texts).flat_values.numpy().tolist() for made in tokenizers]
        assert expected[0] != expected[1]
        found = save_and_load(tokenizers, tmp_path / str(number))(texts)
        assert [cut_units.numpy().tolist() for cut_units in found] == expected
