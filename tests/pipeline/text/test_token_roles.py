"""What protected tokens do in their text."""

import itertools

import pytest

from pipeline.text import token_roles

EXAMPLES = {
    token_roles.OPENING: [
        *("<b>", '<a href="x/y z">', "<a title='>'>", "<0>", "<>", "<p\nclass=a>", "<b=1>"),
        *("{{#list}}", "{{^list}}", "[url=x]"),
    ],
    token_roles.CLOSING: [
        "</b>",
        "</0>",
        "</>",
        "</b >",
        "</ b>",
        "</xliff:g>",
        "{{/list}}",
        "[/b]",
    ],
    token_roles.VOID: [
        *("<br>", "<BR/>", "<img/>", "<1/>", "<hr class='x'>", "<!-- a <b> -->", "<?xml a?>"),
        "<x a='b'/>",
    ],
    token_roles.DIRECTIVE: [
        *("%s", "%d", "%lu", "%'d", "%-10s", "%.*s", "%*d", "%+.3f", "%n", "%@", "%<PRIu64>"),
        *("%tY", "%zu", "%hhd", "%lld", "%S", "%5.2Lf", "%.f", "%Zd", "%I64d", "%#x", "%08x"),
        *("%<s", "% d", "{}", "{:.2f}", "{!r}", "{!r:>10}"),
    ],
    token_roles.DATE: ["%Y", "%-M", "%y", "%I", "%j", "%Oy"],
    token_roles.STRUCTURE: [
        *("{n, plural, one {", "}", "other {", "} other {", "=1 {", "}}", "} }", "{n, select,"),
        *("{% if x %}", "{{else}}", "{{ else if x }}", "<% if x %>"),
    ],
    token_roles.OTHER: [
        *("%1$s", "%1$.2f", "%2$*1$d", "%1", "%L1", "%1$@", "%#@x@", "%%", "%(name)s", "%(name)d"),
        *("%{x}", "%<x>d", "{0}", "{0:N2}", "{x}", "{ $x }", "{{x}}", "{{{x}}}", "<%= x %>"),
        *("&amp;", "&#x27;", "--opt", "http://a.b/c", "$t(key)", "a@b.c", ":name", "@name"),
    ],
}


@pytest.mark.parametrize("role", EXAMPLES)
def test_roles(role):
    assert [token for token in EXAMPLES[role] if token_roles.role_of(token) != role] == []


def test_graph_and_metrics_read_roles_alike():
    import tensorflow as tf

    tokens = list(itertools.chain(*EXAMPLES.values()))
    for role, pattern in token_roles.ROLE_PATTERNS:
        in_graph = tf.strings.regex_full_match(tokens, pattern).numpy().tolist()
        assert in_graph == [bool(token_roles._compiled(pattern).fullmatch(t)) for t in tokens], role


@pytest.mark.parametrize(
    "opening, closing",
    [
        ("<b>", "</b>"),
        ("<A HREF='x'>", "</a >"),
        ("<>", "</>"),
        ("{{#if x}}", "{{/if}}"),
        ("[url=x]", "[/url]"),
    ],
)
def test_names_pair_tags(opening, closing):
    assert token_roles.tag_name(opening) == token_roles.tag_name(closing)
    assert token_roles.tag_name(opening) != token_roles.tag_name("</other>")


def test_blank_tokens_write_nothing():
    assert all(
        map(token_roles.is_blank, ["￭", " ", "\u00a0", "￭\u202f", "\n", "\u200b", "␊␠␠", "<￭"])
    )
    assert not any(map(token_roles.is_blank, ["a", "￭,", "%s"]))
