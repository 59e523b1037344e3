"""Texts hold the protected tokens that their tokens are, and no others."""

import collections
import functools
import random

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
from pipeline.text import units, white_space
from pipeline.text.keeping_apart import keep_apart
from pipeline.text.placeholders import DIALECTS
from pipeline.text.tokenization import JOINER, Tokenizer

KEPT = ["%s", "%d", "%(name)s", "{0}", "<b>", "</b>", "<br>", "--all", "https://a.b/c", "a@b.c"]
WORDS = ["d", "s", "b", "name", "all", "x", "0", "com", "http", "lt", "d'un", "été", "10"]
MARKS = list("%{}<>/-$&;:#@!().,'\"[]=_*") + ["«\u00a0", "\u00a0!"]


def output(draw):
    """Tokens as an untrained model may output them: joiners anywhere."""
    tokens = []
    for _ in range(draw.randrange(1, 9)):
        kind = draw.random()
        if kind < 0.3:
            tokens.append(draw.choice(KEPT))
        elif kind < 0.55:
            tokens.append(draw.choice(WORDS))
        elif kind < 0.7:
            tokens.append(JOINER)
        elif kind < 0.73:
            tokens.append("␊")
        else:
            before, behind = (JOINER * (draw.random() < 0.6) for _ in range(2))
            tokens.append(before + draw.choice(MARKS) + behind)
    return tokens


@functools.cache
def traced(tokenizer):
    import tensorflow as tf

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.string)])
    def apart(tokens):
        kept = keep_apart(tokens, tokenizer)
        return tokenizer.detokenize(tokens), tokenizer.detokenize(kept), kept

    return apart


def written(rows, tokenizer):
    """The texts as they are joined plainly, and as they are written; and the tokens."""
    import tensorflow as tf

    plain, texts, kept = traced(tokenizer)(tf.ragged.constant(rows, tf.string, 1))
    return (
        [text.decode() for text in plain.numpy()],
        [text.decode() for text in texts.numpy()],
        [[token.decode() for token in row] for row in kept.to_list()],
    )


def kept_of(row, tokenizer):
    return collections.Counter(filter(tokenizer.syntax.is_protected, row))


def read(text, tokenizer):
    return collections.Counter(tokenizer.protected_tokens(text))


@pytest.mark.parametrize("dialects", [DEFAULT_PLACEHOLDERS, tuple(DIALECTS)])
@pytest.mark.parametrize("kind", ["text", "characters"])
def test_hostile_outputs_hold_no_other_tokens(kind, dialects):
    tokenizer = Tokenizer(kind, dialects=dialects)
    draw = random.Random(7)
    rows = [output(draw) for _ in range(3216)]
    if kind == "characters":
        rows = [[token for token in map(bare, row) if token] for row in rows]
    plain, texts, _ = written(rows, tokenizer)
    glued = [read(text, tokenizer) != kept_of(row, tokenizer) for text, row in zip(plain, rows)]
    assert sum(glued) > 100
    wrong = [
        (row, text)
        for row, text in zip(rows, texts)
        if read(text, tokenizer) != kept_of(row, tokenizer)
    ]
    assert wrong == []
    # Where nothing is glued nothing changes, but behind a `<` among tags.
    changed = [one != other and "<" not in one for one, other in zip(plain, texts)]
    assert not any(new and not was for new, was in zip(changed, glued))


def bare(token):
    return token.strip(JOINER + "␊\u00a0")


@hypothesis.settings(max_examples=60)
@hypothesis.given(st.text(st.sampled_from("ab1 %sd{}<>/-$&;:#@.,'\n￭"), max_size=30))
def test_what_was_cut_from_a_text_is_written_as_it_was(text):
    import tensorflow as tf

    tokenizer = Tokenizer()
    tokens = tokenizer.tokenize(tf.constant([text]))
    assert (
        tokenizer.detokenize(tokens).numpy()
        == tokenizer.detokenize(keep_apart(tokens, tokenizer)).numpy()
    )


@pytest.mark.parametrize(
    "tokens, text",
    [
        (["5", "￭%￭", "d"], "5% d"),
        (["<￭", "b", "￭>"], "< b >"),
        (["%s", "￭", "%d"], "%s%d"),
        (["https://a.b/c", "￭", "d"], "https://a.b/c d"),
        (["a", "￭,", "%￭", "s", "￭!"], "a, % s!"),
        (["--all", "￭", "x"], "--all x"),
        (["Hello", "￭,", "%(name)s", "￭!"], "Hello, %(name)s!"),
        (["été", "￭%￭", "s", "￭."], "été% s."),
        (["a", "￭<￭", "c"], "a<c"),
        (["a", "￭<￭", "c", "<b>", "￭", "x", "￭", "</b>"], "a< c <b>x</b>"),
    ],
)
def test_blanks_stand_where_tokens_would_change(tokens, text):
    assert written([tokens, ["x"], []], Tokenizer())[1] == [text, "x", ""]


@pytest.mark.parametrize("byte", ["1C", "1D", "1E"])
def test_bytes_that_mark_places_are_written_as_unknown_characters(byte):
    import tensorflow as tf

    # In the second row tokens are kept apart.
    rows = [["a", f"￭<0x{byte}>", "￭!"], ["5", "￭%", "￭d'un"]]
    tokens = tf.ragged.constant(rows, tf.string)
    texts = units.detokenize(tokens, units.byte_table(), Tokenizer()).numpy()
    assert [text.decode() for text in texts] == ["a\ufffd!", "5% d'un"]


def test_bytes_of_a_character_stay_together():
    import tensorflow as tf

    tokens = tf.ragged.constant(
        [["https://a.b/c", "￭<0xC3>", "￭<0xA9>"], ["a", "￭<0xC3>", "￭<0xA9>"]], tf.string
    )
    texts = units.detokenize(tokens, units.byte_table(), Tokenizer()).numpy()
    found = [text.decode() for text in texts]
    assert found[1] == "aé" and read(found[0], Tokenizer()) == {"https://a.b/c": 1}
    assert "\ufffd" not in found[0]
    assert white_space.is_white_space("␊")
