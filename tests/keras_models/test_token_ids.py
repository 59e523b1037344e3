"""Ids and labels of token lists, and tokens of ids."""

import numpy as np
import pytest

from keras_models.token_ids import TokenIds

SPECIAL = ["[PAD]", "[UNK]", "[START]", "[END]"]
SOURCE = ["the", "page", "%s", "Zanzibar", "%s"]
TARGET = ["la", "page", "%s", "Zanzibar", "Ζεύς"]
V = 6


@pytest.fixture
def ids():
    return TokenIds([*SPECIAL, "the"], [*SPECIAL, "la", "page"])


def test_pairs_have_the_ids_that_heads_read(ids):
    made = {name: value.tolist() for name, value in ids.pairs([SOURCE], [TARGET]).items()}
    assert made == {
        "source_ids": [[4, 1, 1, 1, 1]],
        # A word has its target id; the second `%s` has the id of the first.
        "source_extended_ids": [[V, 5, V + 2, V + 3, V + 2]],
        "source_feed_ids": [[1, 5, 1, 1, 1]],
        "target_input_ids": [[2, 4, 5, 1, 1, 1]],
        "target_extended_ids": [[4, 5, V + 2, V + 3, 1, 3]],
    }


def test_texts_are_padded_and_never_cut(ids):
    made = ids.pairs([SOURCE, ["the"], []], [["la"], [], TARGET], length=7, target_length=8)
    assert {name: value.shape for name, value in made.items()} == {
        "source_ids": (3, 7),
        "source_extended_ids": (3, 7),
        "source_feed_ids": (3, 7),
        "target_input_ids": (3, 8),
        "target_extended_ids": (3, 8),
    }
    assert all(value.dtype == np.int32 for value in made.values())
    assert made["target_extended_ids"][1].tolist() == [3, 0, 0, 0, 0, 0, 0, 0]
    assert ids.sources([[]])["source_ids"].shape == (1, 0)
    with pytest.raises(ValueError, match="A text has 5 source_ids; at most 4 fit"):
        ids.sources([SOURCE], length=4)
    with pytest.raises(ValueError, match="A text has 6 target_input_ids; at most 5 fit"):
        ids.pairs([SOURCE], [TARGET], target_length=5)


def test_labels_give_the_target_back_wherever_it_can_be_said(ids):
    labels = ids.pairs([SOURCE], [TARGET], target_length=9)["target_extended_ids"]
    assert ids.tokens(labels[0], SOURCE) == [*TARGET[:4], "[UNK]"]
    with pytest.raises(ValueError, match="Id 11 is token 5 of the source, which has 5"):
        ids.tokens([11], SOURCE)


def test_a_word_that_reads_like_a_special_one_is_copied(ids):
    made = ids.pairs([["[PAD]", "[END]"]], [["[END]"]])
    assert made["source_ids"].tolist() == [[1, 1]]
    assert made["target_extended_ids"].tolist() == [[V + 1, 3]]


def test_unknown_words_may_be_read_as_classes_of_words():
    names = [*SPECIAL, "[PLACEHOLDER]", "page"]
    ids = TokenIds(
        names,
        names,
        special_ids=range(5),
        unknown_as=lambda token: 4 if token.startswith("%") else 1,
    )
    made = ids.pairs([["%s", "[PLACEHOLDER]"]], [["page", "%s"]])
    assert made["source_ids"].tolist() == [[4, 1]]
    assert made["target_input_ids"].tolist() == [[2, 5, 4]]
    assert made["target_extended_ids"].tolist() == [[5, 6, 3]]


def test_special_ids_of_another_tokenizer():
    """Those of T5: padding 0, end 1, unknown 2; the decoder starts with padding."""
    pieces = ["<pad>", "</s>", "<unk>", "▁page"]
    ids = TokenIds(pieces, pieces, unknown_id=2, start_id=0, end_id=1, special_ids=())
    made = ids.pairs([["▁page", "▁x"]], [["▁x", "▁y"]])
    assert made["source_ids"].tolist() == [[3, 2]]
    assert made["target_input_ids"].tolist() == [[0, 2, 2]]
    assert made["target_extended_ids"].tolist() == [[5, 2, 1]]


def test_spans_are_those_of_span_copy(ids):
    made = ids.pairs([["a", "b", "c", "page"]], [["b", "c", "x", "page", "a"]], max_span=2)
    assert made["target_span_starts"].tolist() == [[1, -1, -1, 3, 0, -1]]
    assert made["target_span_lengths"].tolist() == [[2, -1, 0, 1, 1, 0]]
    # A known word alone is generated; an unknown one must be copied.
    made = ids.pairs(
        [["a", "b", "c", "page"]], [["b", "c", "x", "page", "a"]], max_span=2, min_span=2
    )
    assert made["target_span_lengths"].tolist() == [[2, -1, 0, 0, 1, 0]]


def test_mistakes_are_named(ids):
    with pytest.raises(ValueError, match="a list of tokens; got the text 'the page'"):
        ids.sources(["the page"])
    with pytest.raises(ValueError, match="as many targets as sources; got 1 sources and 2"):
        ids.pairs([SOURCE], [TARGET, TARGET])
    with pytest.raises(ValueError, match="source_vocabulary: a token is listed twice"):
        TokenIds([*SPECIAL, "a", "a"], SPECIAL)
    with pytest.raises(ValueError, match="target_vocabulary: two tokens have the same id"):
        TokenIds(SPECIAL, {"a": 4, "b": 4})
    with pytest.raises(ValueError, match="target_vocabulary is empty"):
        TokenIds(SPECIAL, [])


def test_the_packages_have_the_version_that_is_installed(monkeypatch):
    import importlib.metadata

    import keras_models
    import serving
    from keras_models.own_version import own_version

    assert keras_models.__version__ == serving.__version__ == own_version()

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert own_version() == "not installed"
