"""PHP arrays, read by PHP."""

import json
import re
import shutil
import subprocess

import hypothesis
import hypothesis.strategies as st
import pytest

from pipeline.documents.document import DocumentError
from pipeline.documents.options import Options
from pipeline.documents.php_document import PhpDocument
from tests.pipeline.documents.filling import filled, shout

LARAVEL = """<?php
// Don't ["read"] this

return [
    'title' => 'It\\'s \\\\ <a href="x">here</a>',
    "escaped" => "Say \\"hi\\" \\$5 \\u{e9}\\n{$name} $other[x]",  # a note
    'nested' => array('a' => 'One', 'b' => ['Two', 'Three',],),
    'count' => 3, 'none' => null, 'call' => trans('x'), 'sum' => 'a' . 'b',
    /* the end */
    'last' => 'Done'
];
"""
CODEIGNITER = """<?php
$lang['a']   = 'Open';
$lang["b"] = "Close" ; // now
$x = $lang['a'];
"""


def read(text):
    return PhpDocument("en.php", text.encode(), Options(language="fr"))


def literal(written):
    """Returns what a string of PHP means, by its manual."""
    if written[0] == "'":
        return re.sub(r"\\([\\'])", r"\1", written[1:-1])
    assert not re.search(r"(?<!\\)(?:\\\\)*\$[a-zA-Z_{]", written), "a variable"
    named = {"n": "\n", "r": "\r", "t": "\t", "v": "\v", "f": "\f", "e": "\x1b"}
    named |= {letter: letter for letter in '\\$"'}

    def character(match):
        if match[1]:
            return chr(int(match[1], 16))
        return named.get(match[2], match[0])

    return re.sub(r"\\(?:x([0-9a-f]{1,2})|(.))", character, written[1:-1], flags=re.DOTALL)


def php(path, text):
    """Returns what a file returns, or the array `$lang` that it fills, as PHP runs it."""
    if not shutil.which("php"):
        pytest.skip("PHP is not installed")
    path.write_text(text, encoding="utf-8", newline="")
    code = (
        "$name = 'N'; $other = ['x' => 'O']; function trans($x) { return $x; } "
        "$value = include $argv[1]; echo json_encode($lang ?? $value, JSON_THROW_ON_ERROR);"
    )
    done = subprocess.run(["php", "-r", code, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_texts_are_replaced(tmp_path):
    def answer(text):
        return shout(text).replace("$OTHER[X]", "$other[x]")

    document = read(LARAVEL)
    assert document.problems == [(8, "an expression, not one string")] * 2
    assert document.segments[1].text == 'Say "hi" $5 é\n{$name} $other[x]'
    assert php(tmp_path / "fr.php", filled(document, answer)) == {
        "title": 'IT\'S \\ <a href="x">HERE</a>',
        "escaped": 'SAY "HI" $5 É\nN O',
        "nested": {"a": "ONE", "b": ["TWO", "THREE"]},
        "count": 3,
        "none": None,
        "call": "x",
        "sum": "ab",
        "last": "DONE",
    }


def test_only_the_texts_change(tmp_path):
    after = filled(read(LARAVEL), lambda text: text.replace("here", "l'été"))
    assert after == LARAVEL.replace("here", "l\\'été").replace("\\u{e9}", "é")
    after = filled(read(CODEIGNITER), shout)
    assert after == CODEIGNITER.replace("Open", "OPEN").replace("Close", "CLOSE")
    assert php(tmp_path / "a.php", after) == {"a": "OPEN", "b": "CLOSE"}


def test_forms_between_pipes_are_texts_of_their_own():
    before = (
        "<?php return ['a' => '{0} none|[1,*] :n files', 'b' => \"one|<b>$n</b>\", 'c' => 'x|'];"
    )
    document = read(before)
    assert [segment.text for segment in document.segments] == [
        "{0} none",
        "[1,*] :n files",
        "one",
        "<b>$n</b>",
        "x|",
    ]
    expected = before.replace("none", "NONE").replace("one|<", "ONE|<").replace("x|", "X|")
    after = filled(
        document, lambda text: text.upper() if ":" not in text and "$" not in text else text
    )
    assert after == expected


@pytest.mark.parametrize(
    "content", ["<?php return [", "return [];", "<?php return ['a' => 'b", "<?php echo 1;", ""]
)
def test_what_is_no_catalogue_is_refused(content):
    with pytest.raises(DocumentError, match="^en.php .*\\.$"):
        read(content)


TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1) | st.text(
    "a'\"\\${}[]nx0\n", min_size=1
)


@hypothesis.settings(deadline=None, derandomize=True, max_examples=5)
@hypothesis.given(texts=st.lists(TEXTS, min_size=40, max_size=60))
def test_any_text_comes_back(tmp_path_factory, texts):
    lines = "".join(f"  {'x'!r}," if n % 2 else '  "x",' for n in range(len(texts)))
    document = read(f"<?php return [{lines}];")
    after = document.filled(dict(enumerate(texts)), "").decode()
    found = re.findall(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", after, re.DOTALL)
    assert [literal(written) for written in found] == texts
    if shutil.which("php"):
        assert php(tmp_path_factory.mktemp("php") / "a.php", after) == texts
