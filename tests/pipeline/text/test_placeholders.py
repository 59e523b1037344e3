"""Placeholders of every dialect are kept whole, in Python and in the graph, and prose is text."""

import functools
import re

import hypothesis
import pytest
from hypothesis import strategies as st

from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS, PLACEHOLDER_DIALECTS
from pipeline.recipes.own_patterns import PatternError, check_pattern
from pipeline.text import placeholders
from pipeline.text.tokenization import Tokenizer

ALL = PLACEHOLDER_DIALECTS
# By dialect what is one token wherever it stands between blanks.
EXAMPLES = {
    "c": (
        "%s %d %lu %lld %hhu %zu %jd %td %Lf %qd %5d %-10s %+d %#x %'d %Id %05.2f %.3s %.*s %*d "
        "%*1$d %1$*2$d %1$s %12$ld %.f %c %p %n %m %% %<PRIu64> %5<PRId32> %C %S %a %E %G"
    ).split(),
    "objc": "%@ %1$@ %#@items@ %2$#@x@ %ld %lu %lf".split(),
    "java": "%b %1$s %h %tY %1$tB %Tm %,d %(,.2f %-10s %n %S %X %1$,.2f".split(),
    "python": ["%(name)s", "%(a.b c)05d", "%(größe)-10.2f", "%r", "%i", "%5.1f"],
    "php": ["%b", "%1$05.2f", "%u", "{$name}", "{$user->name}", "${name}"],
    "python-brace": (
        "{} {0} {name} {0.name} {x[key]} {:.2f} {!r} {x!s:>10} {0:>{width}} {:%Y} {größe}"
    ).split()
    + ["{ x }", "{:%Y-%m-%d %H:%M}", "{0[a b]}"],
    "csharp": ["{0}", "{0:N2}", "{0,-10:C}", "{1,5}", "{0:yyyy-MM-dd HH:mm}"],
    "icu": ["{0}", "{count, number}", "{d, date, short}", "{n,number,#,##0.00}", "{ n }"],
    "fluent": ["{ $x }", "{$x}", "{ -brand }", '{ -brand(case: "x") }', "{ NUMBER($n) }", '{ "" }'],
    "javascript": ["${name}", "${ a.b }", "#{x + 1}", "@{x}", "$(name)"],
    "template": ["{{ x }}", "{{x|upper}}", "{{{ x }}}", "{% if a %}", "{# note #}", "<%= x %>"]
    + ["<%- f(a > b) %>", "<?php echo $x ?>", "{{#if x}}", "{{/if}}"],
    "ruby": ["%{x}", "%<x>d", "%-10<x>s", "%<x>.2f", "#{x}", "%05d"],
    "symfony": ["%name%", "%user.name%", "%USERPROFILE%", "%id%", "%link_start%"],
    "drupal": ["@name", "!name", "%name", "@my-name"],
    "qt": ["%1", "%99", "%L1", "%n", "%Ln"],
    "strftime": ["%Y", "%-d", "%H", "%B", "%Ey", "%%"],
    "laravel": [":name", ":Name", ":NAME", ":user_id", ":min2"],
    "at": ["@name", "@:key.of"],
    "i18next": ["$t(key)", '$t(key, {"count": 1})', "__count__", "{{count}}", "__MSG_x__"],
    "react": ["<0>", "</0>", "<1/>", "<12 />", "</>"],
    "shell": ["$HOME", "$USER_NAME"],
    "variables": ["$name", "$user->name", "$x1"],
    "mediawiki": ["$1", "$12"],
}
TAGS = (
    *(
        "<b>",
        "</b>",
        "<br>",
        "<br/>",
        "<br />",
        "<a href='x'>",
        '<a title="a > b" href=x>',
        "</a >",
    ),
    *("<input disabled>", '<x id="1"/>', '<xliff:g id="n">', "<!-- a <b> c -->", "<a {{ y }}>"),
    *("<p\nclass=x>", "<my-tag data-x>", "<b class=%s>", "<![CDATA[", "]]>", "<!DOCTYPE html>"),
    *("&nbsp;", "&frac12;", "&#39;", "&#x27;", "&#X2F;", "[X0X]", "[X120X]"),
)
PROSE = (
    *("20%discount", "Wait--this", "x<y or z>w", "10% off", "50% of", "100 % sure", "at 5:30"),
    *("a:b", ":D", ":-) :p", "Le 100 % d'un", "100\u00a0% d'accord", "1,5%discount", "20%so"),
    *("C# and F#", "see #5 and #tag", "{not a placeholder} and {another thing}", "5 %<10"),
    *("a < b > c", "if a<b and c>d", "a <> b", "x<>y", "$5.00 or $5", "AT&T; R&D", "yes.--no"),
    *("<your name>", "Mail <me at home>", "1--2", "été--hiver", "a - b -- c", "100% (about)"),
    *("foo::bar", "50%, 20% and 10%.", "Die 5%ige Lösung", "3:2", "[a]:b", "Price: $ 5"),
    *(
        "[X]",
        "[0X]",
        "what % of",
        "Le % d'augmentation",
        "l'an, 3 % de",
        "(20%)",
        "%",
        "50%/50%",
        "e.g. {a b}",
    ),
)


@functools.cache
def marker(dialects):
    import tensorflow as tf

    spec = tf.TensorSpec([None], tf.string)
    syntax = placeholders.syntax_of(dialects)
    return tf.function(syntax.mark_in_graph, input_signature=[spec])


def marked_in_graph(texts, dialects=DEFAULT_PLACEHOLDERS):
    import tensorflow as tf

    marked = marker(dialects)(tf.constant([text.encode() for text in texts]))
    return [text.decode() for text in marked.numpy()]


def test_every_dialect_has_a_name_in_recipes_and_examples():
    assert tuple(placeholders.DIALECTS) == PLACEHOLDER_DIALECTS
    assert set(EXAMPLES) == set(PLACEHOLDER_DIALECTS)


@pytest.mark.parametrize("dialect", EXAMPLES)
def test_a_dialect_alone_keeps_its_placeholders_whole(dialect):
    tokenizer = Tokenizer(dialects=(dialect,))
    for token in EXAMPLES[dialect]:
        for text in (token, f"Save {token} now", f"({token})", f"共{token}个", f"« {token} »"):
            assert tokenizer.protected_tokens(text) == [token], text


@pytest.mark.parametrize("dialect", DEFAULT_PLACEHOLDERS)
def test_all_default_dialects_together_keep_them_too(dialect):
    for token in EXAMPLES[dialect]:
        assert Tokenizer().protected_tokens(f"Save {token} now") == [token]


@pytest.mark.parametrize("tag", TAGS)
def test_tags_references_and_masks_are_protected_whatever_a_recipe_chooses(tag):
    for tokenizer in (Tokenizer(), Tokenizer(dialects=())):
        assert tokenizer.protected_tokens(f"a{tag}b 5%{tag}") == [tag, tag]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_text(text):
    assert Tokenizer().protected_tokens(text) == []
    assert Tokenizer().protected_tokens(f"It is {text}!") == []


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("%dx%dpx", "%d %d"),
        ("%s%sfoo%lu%%", "%s %s %lu %%"),
        ("%ld%d and %d%%", "%ld %d %d %%"),
        ("20%d 20%02d x%d", "%d %02d %d"),
        ("50%<b>discount</b>", "<b> </b>"),
        (":current/:total (:max)", ":current :total :max"),
        ("me@example.com @name", "me@example.com @name"),
        ("http://x:80 :port", "http://x:80 :port"),
        ("https://x.org/a--b#c?d=@e", "https://x.org/a--b#c?d=@e"),
        ("$HOME$HOME $NAME$ x", "$HOME $HOME $NAME$"),
        ("<0>text</0> <>x</>", "<0> </0> <> </>"),
    ],
)
def test_what_stands_close_together(text, tokens):
    assert Tokenizer().protected_tokens(text) == tokens.split()


@pytest.mark.parametrize(
    "text, structure, words",
    [
        (
            "{count, plural, one {# item} other {# items in {folder}}}",
            ["{count, plural, one {", "#", "} other {", "#", "{folder}", "}}"],
            ["item", "items", "in"],
        ),
        (
            "{n,plural,offset:1 =0{none}=1{You}other{You and # others}}",
            ["{n,plural,offset:1 =0{", "}=1{", "}other{", "#", "}}"],
            ["none", "You", "You", "and", "others"],
        ),
        (
            "{g, select, male {He has {n, plural, one {# file} other {# files}} here} other {x}}",
            [
                *("{g, select, male {", "{n, plural, one {", "#", "} other {", "#", "}}"),
                *("} other {", "}}"),
            ],
            ["He", "has", "file", "files", "here", "x"],
        ),
        (
            "{n, selectordinal,\n  one {#st}\n  other {the {n}th}\n}",
            ["{n, selectordinal,\n  one {", "}\n  other {", "{n}", "}\n}"],
            ["st", "the", "th"],
        ),
    ],
)
def test_a_message_with_branches_keeps_its_structure_and_shows_its_texts(text, structure, words):
    tokenizer = Tokenizer()
    assert tokenizer.protected_tokens(text) == structure
    assert [word for word in tokenizer.words(text) if word not in structure] == words


def test_a_recipe_chooses_dialects_and_adds_patterns():
    text = "%s {0} :name [[x]] $5"
    assert Tokenizer(dialects=("c",)).protected_tokens(text) == ["%s"]
    assert Tokenizer(dialects=("icu", "laravel")).protected_tokens(text) == ["{0}", ":name"]
    assert Tokenizer(dialects=()).protected_tokens(text) == []
    own = Tokenizer(dialects=("c",), own_patterns=[r"\[\[\w+\]\]", r"\$\d"])
    assert own.protected_tokens(text) == ["%s", "[[x]]", "$5"]
    assert own.placeholders(text) == ["%s", "[[x]]", "$5"]
    assert Tokenizer("whitespace", own_patterns=[r"\[\[\w+\]\]"]).protected_tokens("a [[x]]") == [
        "[[x]]"
    ]


@pytest.mark.parametrize(
    "pattern, reason",
    [
        ("(", "not a regular expression"),
        ("(a)", "write (?:...)"),
        ("(?=a)b", "RE2 does not support it"),
        (r"(?:a)*", "empty text"),
        ("", "empty text"),
        ("[[:alpha:]]x", "[A-Za-z]"),
        (r"[\W]", "brackets"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused(pattern, reason):
    with pytest.raises(PatternError, match=re.escape(reason)):
        check_pattern(pattern)


# Pieces that begin, end or look like placeholders of all dialects.
PIECES = st.one_of(
    st.sampled_from([token for tokens in EXAMPLES.values() for token in tokens]),
    st.sampled_from((*TAGS, *PROSE, "{count, plural, one {", "} other {", "}}", "{ $n ->")),
    st.sampled_from(
        "% %( $ $t( : @ ! # { } {{ }} < > </ /> & ; -- 1 20 a s d é 日 。 “ ' ’ , . é".split()
    ),
    st.sampled_from([" ", "\u00a0", "\n", "", "ß", "😀", "\u0301"]),
)
TEXTS = st.lists(PIECES, max_size=8).map("".join)


@pytest.mark.parametrize("dialects", [DEFAULT_PLACEHOLDERS, ALL, ()])
@hypothesis.given(texts=st.lists(TEXTS, min_size=1, max_size=8))
@hypothesis.settings(max_examples=150, deadline=None)
def test_the_graph_marks_like_python(dialects, texts):
    syntax = placeholders.syntax_of(dialects)
    assert marked_in_graph(texts, dialects) == [syntax.mark(text) for text in texts]


@hypothesis.given(text=TEXTS)
@hypothesis.settings(max_examples=300, deadline=None)
def test_what_is_protected_in_a_text_is_so_alone(text):
    for tokenizer in (Tokenizer(), Tokenizer(dialects=ALL)):
        for token in tokenizer.protected_tokens(text):
            assert tokenizer.syntax.is_protected(token)
