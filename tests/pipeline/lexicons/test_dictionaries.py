"""Lexicon files, and what the graph makes of them."""

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeline.lexicons import dictionaries
from pipeline.readers import DataError
from pipeline.recipes.recipe import recipe_from_dict
from pipeline.text import tokenization

TEXT = tokenization.Tokenizer()
WHITESPACE = tokenization.Tokenizer("whitespace", lowercase=True)


def refusal(function, *arguments):
    with pytest.raises(DataError) as caught:
        function(*arguments)
    return str(caught.value)


def test_a_dictionary_keeps_entries_of_one_word_and_counts_the_others(tmp_path):
    path = tmp_path / "dictionary.tsv"
    path.write_text(
        "house\tmaison\nhouse\tdemeure\nice cream\tglace\n%s\tx\nwater\tl'eau\n\nhome\tmaison\n",
        "utf-8",
    )
    read = dictionaries.read_dictionary(path, TEXT)
    assert read.pairs == [("house", "maison"), ("house", "demeure"), ("home", "maison")]
    assert (read.entries, read.skipped) == (6, 3)
    sources, targets = dictionaries.dictionary_tables(read.pairs)
    assert sources == ["maison\thouse home", "demeure\thouse"]
    assert targets == ["house\tmaison", "home\tmaison"]


def test_a_dictionary_of_four_columns_gives_word_and_meaning(tmp_path):
    path = tmp_path / "jlpt.tsv"
    path.write_text(
        "見地\tけんち\tviewpoint\tN1\n原則\tげんそく\tprinciple, general rule\tN1\n", "utf-8"
    )
    read = dictionaries.read_dictionary(path, WHITESPACE)
    assert read.pairs == [("見地", "viewpoint"), ("原則", "principle")] and read.skipped == 1


@pytest.mark.parametrize(
    "line, why",
    [
        (b"one column", "must be"),
        (b"a\tb\tc", "must be"),
        (b"\tb", "must be"),
        (b"a\t ", "must be"),
        (b"a\tb\t\td", "must be"),
        ("\xe9t\xe9\tsummer".encode("latin-1"), "not valid UTF-8"),
    ],
)
def test_a_malformed_line_of_a_dictionary_is_counted_and_named(tmp_path, line, why):
    path = tmp_path / "dictionary.tsv"
    path.write_bytes(b"good\tbon\n" + line + b"\nnew\tneuf\n")
    read = dictionaries.read_dictionary(path, TEXT)
    assert read.pairs == [("good", "bon"), ("new", "neuf")] and read.lines == 3
    ((number, reason),) = read.malformed
    assert number == 2 and why in reason
    assert dictionaries.describe_malformed(read, path).startswith(
        f"1 of 3 lines of {path} (data.dictionary) are malformed"
    )


def test_too_many_malformed_lines_stop_the_run_before_it_begins(tmp_path):
    path = tmp_path / "dictionary.tsv"
    path.write_text("good\tbon\nbad line\nnew\tneuf\n", "utf-8")

    def recipe(share):
        data = {"dictionary": str(path), "max_rejected_share": share}
        return recipe_from_dict({"name": "x", "data": data, "lexicon": {"kind": "manual"}})

    dictionaries.check(recipe(0.4))
    said = refusal(dictionaries.check, recipe(0.3))
    assert (
        "1 of 3 lines" in said
        and "line 2" in said
        and "above data.max_rejected_share (30.0%)" in said
    )
    # A file in another encoding altogether has no line that can be read.
    path.write_bytes("good\tbon\n".encode("utf-16"))
    assert "malformed; the first is line 1" in refusal(dictionaries.check, recipe(0.9))


def test_unreadable_files(tmp_path):
    assert "cannot be read: No such file" in refusal(
        dictionaries.read_dictionary, tmp_path / "none", TEXT
    )
    (tmp_path / "latin").write_bytes(b"a\tb\n\xe9t\xe9\tsummer\n")
    assert "Line 2" in refusal(dictionaries.read_copy_lexicon, tmp_path / "latin", TEXT)


def test_copy_lexicons_of_both_forms(tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text(
        "denver :- NP : denver:ci\nmontreal canada  :- NP : montreal:ci\nninth :- NP : "
        "9:dn\nDenver\tother:_ci\nny\tnew_york:_ci\n",
        "utf-8",
    )
    read = dictionaries.read_copy_lexicon(path, WHITESPACE)
    assert read.phrases == {
        "denver": "denver:_ci",
        "montreal canada": "montreal:_ci",
        "ninth": "9:_dn",
        "ny": "new_york:_ci",
    }
    assert read.ambiguous == 1


@pytest.mark.parametrize(
    "line", ["alone", "a\tb\tc", " :- NP : x:y", "a :- NP : x", "a :- x:y", "a\t"]
)
def test_a_malformed_line_of_a_copy_lexicon_is_named(tmp_path, line):
    path = tmp_path / "lexicon.txt"
    path.write_text(f"denver\tdenver:_ci\n{line}\n", "utf-8")
    assert f"Line 2 of {path} (data.copy_lexicon) must be" in refusal(
        dictionaries.read_copy_lexicon, path, WHITESPACE
    )


def test_an_entity_is_one_token(tmp_path):
    path = tmp_path / "lexicon.txt"
    path.write_text("denver\tdenver city\n", "utf-8")
    assert "line 1 of" in refusal(dictionaries.read_copy_lexicon, path, WHITESPACE)


WORDS = st.sampled_from(["a", "b", "c"])
PHRASES = st.dictionaries(
    st.lists(WORDS, min_size=1, max_size=3).map(" ".join), st.sampled_from(["E1", "E2"]), max_size=5
)


@hypothesis.given(st.lists(st.lists(WORDS, max_size=6), max_size=4), PHRASES)
@hypothesis.settings(max_examples=100)
def test_the_longest_phrase_at_each_position(rows, phrases):
    import tensorflow as tf

    from pipeline.features import copy_lexicon

    def lookup(words):
        return tf.constant([phrases.get(word.decode(), "") for word in words.numpy()], tf.string)

    def expected(row, place):
        for length in range(3, 0, -1):
            phrase = row[place : place + length]
            if len(phrase) == length and " ".join(phrase) in phrases:
                return phrases[" ".join(phrase)].encode()
        return row[place].encode()

    values = tf.constant([token for row in rows for token in row], tf.string)
    tokens = tf.RaggedTensor.from_row_lengths(
        values, tf.constant([len(row) for row in rows], tf.int64)
    )
    made = copy_lexicon.phrase_surfaces(tokens, lookup, 3)
    assert made.to_list() == [[expected(row, place) for place in range(len(row))] for row in rows]


def test_tables_read_what_the_lexicons_write(tmp_path):
    import tensorflow as tf

    from pipeline.features import lookup_tables

    path = tmp_path / "table.tsv"
    path.write_text("montreal canada\tmontreal:_ci\n\u2028x\ty z\n", "utf-8")
    table = lookup_tables.text_table(str(path))
    found = (
        table.lookup(tf.constant(["montreal canada", "montreal", "", "\u2028x"])).numpy().tolist()
    )
    assert found == [b"montreal:_ci", b"", b"", b"y z"]
    assert lookup_tables.longest_phrase(str(path)) == 2
