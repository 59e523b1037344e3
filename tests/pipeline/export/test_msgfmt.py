"""An independent judge: gettext's msgfmt accepts every answer for a flagged entry."""

import shutil
import subprocess

import pytest

from pipeline.text.tokenization import Tokenizer
from tests.pipeline.export.tiny_models import export_tiny, make_recipe

pytestmark = pytest.mark.skipif(not shutil.which("msgfmt"), reason="gettext is not installed")

HEADER = (
    'msgid ""\nmsgstr ""\n"Project-Id-Version: x\\n"\n"PO-Revision-Date: 2026-01-01\\n"\n'
    '"Last-Translator: x <x@example.org>\\n"\n"Language-Team: x\\n"\n"Language: fr\\n"\n'
    '"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Content-Transfer-Encoding: 8bit\\n"\n"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n'
)
# (flag, source)
ENTRIES = (
    ("c-format", "%ld files were deleted.\n"),
    ("c-format", "\n%-10s"),
    ("c-format", "100%% of %'d"),
    ("c-format", "%2$s in %1$.2f"),
    ("c-format", "Name:\n  %.*s\n"),
    ("c-format", "%<PRIu64> left"),
    ("c-format", "20%d"),
    ("c-format", "Value:% d\n"),
    ("objc-format", "%1$@ likes %2$@"),
    ("python-format", "%(name)s has %(count)05d"),
    ("python-format", "%r is wrong"),
    ("python-brace-format", "{name!r} and {0:>10.2f}"),
    ("csharp-format", "{0:N2} of {1,5}"),
    ("java-format", "{0,number} and {1}"),
    ("java-printf-format", "%1$tY and %2$,d%n"),
    ("qt-format", "%1 of %L2"),
    ("ruby-format", "%<x>d and %{y}"),
    ("php-format", "%1$05.2f and %2$s"),
    ("no-c-format", "20%discount\n"),
)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def complaints(entries, folder):
    """What `msgfmt -c` says of (flag, source, answer) triples; "" if it accepts them."""
    path = folder / "answers.po"
    path.write_text(
        HEADER
        + "".join(
            f"\n#, {flag}\nmsgid {quoted(source)}\nmsgstr {quoted(answer)}\n"
            for flag, source, answer in entries
        ),
        "utf-8",
    )
    made = subprocess.run(
        ["msgfmt", "-c", "-o", str(folder / "answers.mo"), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    return made.stderr if made.returncode else ""


def test_the_judge_accepts_what_is_kept_and_refuses_what_is_lost(tmp_path):
    tokenizer = Tokenizer()
    kept, lost = [], []
    for flag, source in ENTRIES:
        tokens = tokenizer.protected_tokens(source)
        inner = source.strip()
        outer = source.partition(inner)
        kept.append((flag, source, outer[0] + " mot ".join(("a", *tokens, "b")) + outer[2]))
        if tokens and not all(token in ("%%", "%n") for token in tokens):
            lost.append((flag, source, outer[0] + "mot" + outer[2]))
    assert not complaints(kept, tmp_path)
    # Of what these flags ask for, msgfmt tolerates a lost brace or number alone.
    strict = [entry for entry in lost if entry[0] in ("c-format", "objc-format", "python-format")]
    assert all(complaints([entry], tmp_path) for entry in strict)


@pytest.mark.slow
def test_the_judge_accepts_every_answer_of_a_model_that_has_learned_nothing(tmp_path):
    import tensorflow as tf

    recipe = make_recipe(
        model={"head": "pointer_generator"},
        data={"tokenization": "text", "max_tokens": 14},
        decoding={"length_buckets": [16], "max_length_offset": 8},
    )
    rows = [("files were deleted", "mots de trop")]
    words = ["files", "were", "deleted", "of", "in", "and"]
    path = export_tiny(
        tmp_path, recipe, rows, words, ["mots", "de"], ("serving_default_no_xla",), train=False
    )
    model = tf.saved_model.load(str(path))
    sources = [source for _, source in ENTRIES]
    answers = model.signatures["serving_default_no_xla"](source=tf.constant(sources))["text"]
    entries = [
        (flag, source, answer.decode())
        for (flag, source), answer in zip(ENTRIES, answers.numpy(), strict=True)
    ]
    tokenizer = Tokenizer()
    for _, source, answer in entries:
        before, _, behind = source.partition(source.strip())
        assert answer.startswith(before) and answer.endswith(behind)
        assert sorted(tokenizer.protected_tokens(answer)) == sorted(
            tokenizer.protected_tokens(source)
        )
    assert not complaints(entries, tmp_path)
