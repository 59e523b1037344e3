"""`verbatim translate`: files in, files out."""

import csv
import functools
import json

import lxml.etree
import pytest

from pipeline.commands import main
from pipeline.readers.formats import read_unit
from pipeline.readers.input_plan import InputUnit
from pipeline.readers.records import Pair
from pipeline.recipes.sections import DataConfig
from tests.serving.shouter import Shouter


def call(*arguments):
    return main.main(["translate", *arguments])


def test_a_text_file(model, folder, capsys):
    (folder / "in.txt").write_text("save %s\n\nopen\nopen\n")
    assert call("in.txt", "--model", model, "--output", "out.txt", "--json", "facts.json") == 0
    assert (folder / "out.txt").read_text() == "SAVE %s\n\nOPEN\nOPEN\n"
    assert capsys.readouterr().out.splitlines()[-1] == (
        "out.txt: 3 translated, 1 blank, 0 translated before, 0 refused"
    )
    facts = json.loads((folder / "facts.json").read_text())
    assert (facts["model"], facts["version"]) == ("shouter", 3)
    assert facts["files"] == [
        {
            "input": "in.txt",
            "output": "out.txt",
            "format": "text",
            "texts": 3,
            "translated": 3,
            "blank": 1,
            "translated_before": 0,
            "split": [],
            "cut_off": [],
            "refused": [],
        }
    ]


def test_refused_lines_keep_their_place_and_are_named(model, folder, capsys):
    (folder / "in.txt").write_text("a\n1 2 3 4 5 6 7 8 9\nb\n")
    assert call("in.txt", "--model", model, "--output", "out.txt") == 1
    assert (folder / "out.txt").read_text() == "A\n\nB\n"
    errors = capsys.readouterr().err
    assert "verbatim: Line 2 of in.txt: A text has more than 8 tokens" in errors
    assert "verbatim: 1 place was refused and stays untranslated" in errors


class LongTexts(Shouter):
    """Cuts off what is longer than 8 words, and counts lines as sentences."""

    def _cut(self, source):
        import tensorflow as tf

        return tf.strings.split(source).to_tensor("")[:, :8]

    def best(self, source):
        import tensorflow as tf

        words = tf.cast(tf.strings.split(source).row_lengths(), tf.int32)
        lines = tf.cast(tf.strings.split(source, ";").row_lengths(), tf.int32)
        return {**super().best(source), "tokens_dropped": tf.maximum(words - 8, 0), "parts": lines}


def test_what_was_cut_off_or_split_is_counted_and_named(folder, capsys):
    LongTexts("").save(folder / "model" / "1")
    (folder / "in.txt").write_text("a; b; c\nd\n1 2 3 4 5 6 7 8 9 10\n")
    assert call("in.txt", "--model", "model", "--output", "out.txt", "--json", "facts.json") == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == (
        "out.txt: 3 translated, 1 of them in sentences, 0 blank, 0 translated before, 0 refused"
    )
    sentence = "Line 3 of in.txt is too long for the model: its last 2 tokens are not translated."
    assert f"verbatim: {sentence}" in printed.err.splitlines()
    (facts,) = json.loads((folder / "facts.json").read_text())["files"]
    assert facts["split"] == [{"line": 1, "parts": 3}]
    assert facts["cut_off"] == [{"line": 3, "tokens_dropped": 2}]
    assert call("in.txt", "--model", "model", "--output", "s.jsonl", "--scores") == 0
    records = list(map(json.loads, (folder / "s.jsonl").read_text().splitlines()))
    assert [record.get("parts") for record in records] == [3, None, None]
    assert [record.get("tokens_dropped") for record in records] == [None, None, 2]


def test_a_review_file_has_the_most_doubtful_first(model, folder):
    (folder / "in.txt").write_text('a b\n\n1 2 3 4 5 6 7 8 9\n"x", y\nc c c\nd\n')
    assert call("in.txt", "--model", model, "--output", "out.txt", "--review", "r.csv") == 1
    header, refused, *rest = csv.reader((folder / "r.csv").read_text().splitlines())
    assert header == ["file", "line", "source", "target", "score", "note"]
    assert refused[:5] == ["in.txt", "3", "1 2 3 4 5 6 7 8 9", "", ""] and "8 tokens" in refused[5]
    assert rest == [
        ["in.txt", "5", "c c c", "C C C", "-3.0000", ""],
        ["in.txt", "1", "a b", "A B", "-2.0000", ""],
        ["in.txt", "4", '"x", y', '"X", Y', "-2.0000", ""],
        ["in.txt", "6", "d", "D", "-1.0000", ""],
    ]
    assert call("in.txt", "--model", model, "--output", "o.txt", "--review", "no/r.csv") == 1
    assert not (folder / "o.txt").exists()


def test_a_review_file_as_xliff(model, folder):
    """Read by lxml, and by our own reader of training data once a person has approved."""
    texts = ["a & <b>", "1 2 3 4 5 6 7 8 9", "c\x07c  c d e", "d"]
    (folder / "in.txt").write_text("\n".join(texts) + "\n")
    language = ("--target-language", "pt-BR")
    arguments = ("in.txt", "--model", model, "--output", "out.txt", "--review", "r.xlf", *language)
    assert call(*arguments) == 1
    root = lxml.etree.parse(str(folder / "r.xlf")).getroot()
    (file,) = root.findall("{*}file")
    assert (file.get("source-language"), file.get("target-language")) == ("und", "pt-BR")
    units = root.findall(".//{*}trans-unit")
    assert [unit.get("id") for unit in units] == ["1", "2", "3", "4"]
    assert [unit.findtext("{*}source") for unit in units] == [
        texts[1],
        "c\ufffdc  c d e",
        "a & <b>",
        "d",
    ]
    places = [[one.text for one in unit.iterfind(".//{*}context")] for unit in units]
    assert places == [["in.txt", "2"], ["in.txt", "3"], ["in.txt", "1"], ["in.txt", "4"]]
    refused, doubtful, _, sure = units
    assert refused.find("{*}target") is None and "8 tokens" in refused.findtext("{*}note")
    target = doubtful.find("{*}target")
    assert target.text == "C\ufffdC C D E" and doubtful.findtext("{*}note") == "score -4.0000"
    assert target.get("state") == "needs-review-translation"
    assert sure.findtext("{*}target") == "D" and sure.get("translate") is None

    read = functools.partial(xliff_pairs, folder / "r.xlf")
    assert read() == []
    approved = (folder / "r.xlf").read_text().replace("needs-review-translation", "final")
    (folder / "r.xlf").write_text(approved)
    assert read() == [("c\ufffdc  c d e", "C\ufffdC C D E"), ("a & <b>", "A & <B>"), ("d", "D")]


def xliff_pairs(path):
    """The pairs that training reads."""
    config = DataConfig(source_language="und", target_language="pt-BR")
    unit = InputUnit("xliff", (path.name,), (str(path),))
    return [record[:2] for record in read_unit(unit, config) if isinstance(record, Pair)]


def test_several_files_of_several_formats(model, folder):
    (folder / "a.csv").write_text("source\nx\n")
    (folder / "b.po").write_text('msgid "y"\nmsgstr ""\n')
    (folder / "out").mkdir()
    assert call("a.csv", "b.po", "--model", model, "--output", "out") == 0
    assert (folder / "out" / "a.csv").read_text() == "source,target\nx,X\n"
    assert (folder / "out" / "b.po").read_text() == (
        '# Machine translation: shouter, version 3 (verbatim)\n#, fuzzy\nmsgid "y"\nmsgstr "Y"\n'
    )


def test_a_file_in_place(model, folder):
    (folder / "a.jsonl").write_text('{"text": "x"}\n')
    columns = ("--source-column", "text", "--target-column", "translation")
    assert call("a.jsonl", "--model", model, "--output", "a.jsonl", "--force", *columns) == 0
    assert (folder / "a.jsonl").read_text() == '{"text": "x", "translation": "X"}\n'


def test_n_best_scores_and_provenance_are_json_lines(model, folder):
    (folder / "in.txt").write_text("save %s\n\n1 2 3 4 5 6 7 8 9\n")
    more = ("--n-best", "--provenance")
    assert call("in.txt", "--model", model, "--output", "out.jsonl", *more) == 1
    best, blank, refused = map(json.loads, (folder / "out.jsonl").read_text().splitlines())
    assert [one["target"] for one in best["outputs"]] == ["SAVE %s", "save %s"]
    assert best["outputs"][0]["score"] == -2.0
    assert best["outputs"][0]["tokens"][1]["copied_from"] == 1
    assert blank == {"line": 2, "source": ""}
    assert refused["line"] == 3 and "8 tokens" in refused["refused"]
    assert call("in.txt", "--model", model, "--output", "s.jsonl", "--scores") == 1
    first = json.loads((folder / "s.jsonl").read_text().splitlines()[0])
    assert first == {"line": 1, "source": "save %s", "target": "SAVE %s", "score": -2.0}


def test_standard_output_has_the_translation_alone(model, folder, capfdbinary):
    (folder / "in.txt").write_text("a\n")
    assert call("in.txt", "--model", model, "--output", "-") == 0
    assert capfdbinary.readouterr().out == b"A\n"


def test_its_other_name(model, folder):
    (folder / "in.txt").write_text("a\n")
    assert main.main(["predict", "in.txt", "--model", model, "--output", "out.txt"]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("in.txt", "--output", "old.txt"), "old.txt exists"),
        (("in.txt", "--output", "in.txt"), "in.txt exists"),
        (("in.txt", "--output", "none/out.txt"), "there is no folder"),
        (("in.txt", "in.txt", "--output", "out.txt"), "no folder out.txt"),
        (("in.txt", "sub/in.txt", "--output", "empty"), "Two files would be written"),
        (("none.txt", "--output", "out.txt"), "none.txt does not exist"),
        (("in.docx", "--output", "out.txt"), "no known suffix"),
        (("bad.csv", "--output", "out.csv"), "not valid CSV"),
    ],
)
def test_a_call_that_cannot_be_carried_out(refused, folder, model, arguments, sentence):
    for name in ("in.txt", "old.txt", "in.docx", "sub/in.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("text\n")
    (folder / "empty").mkdir()
    (folder / "bad.csv").write_text('source\n"a" b\n')
    before = sorted(folder.rglob("*"))
    assert sentence in refused("translate", *arguments, "--model", model)
    assert sorted(folder.rglob("*")) == before
    assert (folder / "old.txt").read_text() == "text\n"


STRINGS = """<resources>
    <string name="a">Don\\'t %1$s</string>
    <plurals name="b"><item quantity="one">%d x</item><item quantity="other">%d xs</item></plurals>
</resources>
"""


def test_a_translated_file_of_its_own(model, folder, capsys):
    for name in ("values", "values-ja"):
        (folder / name).mkdir()
    (folder / "values" / "strings.xml").write_text(STRINGS)
    arguments = ("values/strings.xml", "--model", model, "--output", "values-ja/strings.xml")
    assert call(*arguments) == 0
    expected = STRINGS.replace("Don\\'t", "DON\\'T").replace("%d xs", "%d XS")
    expected = expected.replace('<item quantity="one">%d x</item>', "")
    assert (folder / "values-ja" / "strings.xml").read_text() == expected
    assert call(*arguments) == 1
    assert "keep its texts with --update, or replace it" in capsys.readouterr().err


def test_a_translated_file_is_updated(model, folder, capsys):
    (folder / "en.json").write_text('{"a": "x", "b": "y"}')
    (folder / "fr.json").write_text('{"a": "à nous"}')
    assert call("en.json", "--model", model, "--output", "fr.json", "--update") == 0
    assert (folder / "fr.json").read_text() == '{"a": "à nous", "b": "Y"}'
    assert "1 translated, 0 blank, 1 translated before" in capsys.readouterr().out
    assert call("en.json", "--model", model, "--output", "en.json", "--update") == 1
    (folder / "a.txt").write_text("x")
    (folder / "b.txt").write_text("y")
    assert call("a.txt", "--model", model, "--output", "b.txt", "--update") == 1
    assert (folder / "b.txt").read_text() == "y"


def test_a_language_that_is_unknown(model, folder, capsys):
    (folder / "en.json").write_text('{"a_one": "x", "a_other": "y"}')
    arguments = ("en.json", "--model", model, "--output", "out.json")
    assert call(*arguments, "--target-language", "xx-YY") == 1
    assert "--target-language xx-YY is not a language" in capsys.readouterr().err
    assert call(*arguments) == 1
    assert "name it with --target-language" in capsys.readouterr().err
