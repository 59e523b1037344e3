"""What protected tokens do, in Python and in the graph."""

from pipeline.text.token_roles import Role, role_of, roles
from pipeline.text.tokenization import Tokenizer

ROLES = {
    **dict.fromkeys(["<b>", "<B>"], (Role.OPENING, "b")),
    "<0>": (Role.OPENING, "0"),
    "<>": (Role.OPENING, ""),
    "<a\nhref='x>y'>": (Role.OPENING, "a"),
    '<xliff:g id="1">': (Role.OPENING, "xliff:g"),
    "<broken>": (Role.OPENING, "broken"),
    "</b>": (Role.CLOSING, "b"),
    "</a >": (Role.CLOSING, "a"),
    "</0>": (Role.CLOSING, "0"),
    "</>": (Role.CLOSING, ""),
    "</xliff:g>": (Role.CLOSING, "xliff:g"),
    **dict.fromkeys(["<br>", "<BR/>", "<br />"], (Role.EMPTY, "br")),
    '<x id="1"/>': (Role.EMPTY, "x"),
    "<1/>": (Role.EMPTY, "1"),
    **dict.fromkeys(
        ["%s", "%ld", "%.*s", "% d", "%@", "%<PRIu64>", "{}", "{:.2f}", "{!r}"], (Role.ORDERED, "")
    ),
    **dict.fromkeys(["{n, plural, one {", "} other {", "}}", "} }"], (Role.ORDERED, "")),
    **dict.fromkeys(
        ["%1$s", "%%", "%(x)s", "{0}", "{{ x }}", "{% if %}", "&nbsp;", "<!-- <b> -->", "--all"],
        (Role.OTHER, ""),
    ),
}


def test_python_and_the_graph_say_what_a_token_does():
    import tensorflow as tf

    found, names = roles(tf.constant(list(ROLES)))
    for token, role, name in zip(ROLES, found.numpy(), names.numpy()):
        assert role_of(token) == ROLES[token] == (role, name.decode()), token
        assert Tokenizer().syntax.is_protected(token), token
