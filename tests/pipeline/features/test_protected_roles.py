"""The roles that the graph gives to a source's tokens: those of the definition, in plain Python."""

import functools

import hypothesis
import numpy as np
from hypothesis import strategies as st

from tests.keras_models import order_oracle

TOKENS = ["<b>", "</b>", "<i>", "</i>", "<br>", "%s", "%d", "{x}", "￭", "word"]


@functools.cache
def traced():
    import tensorflow as tf

    from pipeline.features import protected_roles

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.string)])
    def make(tokens):
        protected = tokens.with_flat_values(
            tf.strings.regex_full_match(tokens.flat_values, "(?s)[<%{].*")
        )
        return protected_roles.roles_and_links(tokens, protected)

    return make


def roles_of(sources):
    import tensorflow as tf

    return [ragged.to_list() for ragged in traced()(tf.ragged.constant(sources, tf.string, 1))]


def test_agrees_with_the_definition():
    random = np.random.default_rng(5)
    sources = [random.choice(TOKENS, random.integers(9)).tolist() for _ in range(1500)]
    # Well nested ones, which chance seldom makes.
    for _ in range(500):
        source = random.choice(TOKENS[4:], 3).tolist()
        for _ in range(random.integers(4)):
            begin, end = np.sort(random.integers(len(source) + 1, size=2))
            name = random.choice(["b", "i"])
            inside = source[begin:end]
            source = [*source[:begin], f"<{name}>", *inside, f"</{name}>", *source[end:]]
            if order_oracle.pairs_of(source) is None:
                break
        sources.append(source)
    roles, links = roles_of(sources)
    regular = 0
    for row, source in enumerate(sources):
        assert (roles[row], links[row]) == tuple(order_oracle.roles_and_links(source)), source
        regular += order_oracle.is_regular(source) and "<b>" in source
    assert regular > 100


@hypothesis.settings(max_examples=30)
@hypothesis.given(st.lists(st.lists(st.sampled_from(TOKENS), max_size=12), max_size=3))
def test_batches_do_not_change_a_source(sources):
    together = roles_of([*sources, ["<b>"]])
    for row, source in enumerate(sources):
        alone = roles_of([source, []])
        assert [part[row] for part in together] == [part[0] for part in alone]


def test_statements_keep_all_that_is_protected_in_order():
    roles, links = roles_of([["{% if a %}", "x", "%(name)s", "{% endif %}", "<b>", "y", "</b>"]])
    chained, gap = (order_oracle.NUMBERS[name] for name in ("chained", "chained behind text"))
    assert roles == [[chained, 1, gap, chained, chained, 1, gap]]
    assert links == [[0, 0, 1, 3, 4, 0, 5]]


def test_names_pair_tags_whatever_their_attributes_and_case():
    roles, links = roles_of([["<A href='x>'>", "word", "</a >"], ["<0>", "<1/>", "w", "</0>"]])
    assert links == [[0, 0, 1], [0, 0, 0, 1]]


def test_directives_of_a_date_may_move():
    _, links = roles_of([["%d", "%B", "%Y"], ["%d", "of", "%B"]])
    assert links == [[0, 0, 0], [0, 0, 1]]
