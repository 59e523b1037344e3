"""`verbatim score`: tables for people, JSON for machines, one sentence for bad input."""

import json

import pytest

from pipeline.commands import main


def test_score_refuses_bad_input(refused, texts):
    def score(references="references", outputs="outputs", *more):
        return refused(
            "score", "--references", texts / references, "--hypotheses", texts / outputs, *more
        )

    assert score("references", "short") == (
        f"The hypotheses file {texts / 'short'} has 1 line, but the references file "
        f"{texts / 'references'} has 2 lines; they must be aligned line by line."
    )
    assert score("references", "absent").endswith(f"file {texts / 'absent'} does not exist.")
    assert f"file {texts} is a folder" in score("references", ".")
    assert "'blue'" in score("references", "outputs", "--metrics", "blue")
    assert "give the sources too" in score(
        "references", "outputs", "--metrics", "placeholder_fidelity"
    )
    assert f"sources file {texts / 'absent'} does not exist" in score(
        "references", "outputs", "--sources", texts / "absent"
    )
    assert "it is a folder" in score("references", "outputs", "--json", texts)
    assert f"baseline file {texts / 'short'} has 1 line, but" in score(
        "references", "outputs", "--baseline", texts / "short"
    )
    assert "--baseline FILE" in score("references", "outputs", "--test", "randomisation")
    assert score("references", "outputs", "--samples", "-1") == (
        "--samples must be 0 or more; got -1."
    )
    assert "'nonsense'" in score("references", "outputs", "--tokenize", "nonsense")
    assert "did you mean 'python'" in score("references", "outputs", "--placeholders", "c,pyton")
    assert "write (?:...)" in score("references", "outputs", "--placeholder-pattern", "(x)")
    (texts / "latin1").write_bytes("été\nété\n".encode("latin-1"))
    (texts / "empty").write_text("")
    facts = texts / "facts.json"
    assert "UTF-8" in score("references", "latin1", "--json", facts)
    (texts / "utf16").write_text("le chat %s\nun chien\n", encoding="utf-16")
    assert "utf16 is UTF-16, or not text" in score("utf16", "outputs", "--json", facts)
    (texts / "blank").write_text("\n\n")
    assert "blank contains no text: all of its 2 lines are empty" in score(
        "references", "blank", "--json", facts
    )
    assert "measure the model with" in score(
        "references", "outputs", "--metrics", "perplexity", "--json", facts
    )
    assert "is empty" in score("references", "empty", "--json", facts)
    assert not facts.exists()


def test_some_empty_outputs_are_scored_and_told(texts, capsys):
    (texts / "gaps").write_text("le chat %s\n\n", encoding="utf-8")
    files = [
        "--references",
        str(texts / "references"),
        "--hypotheses",
        str(texts / "gaps"),
        "--samples",
        "0",
    ]
    assert main.main(["score", *files, "--metrics", "exact_match"]) == 0
    said = capsys.readouterr()
    assert "50.0 %" in said.out and said.err == "verbatim: 1 of 2 hypotheses are empty.\n"
    files[1], files[3] = files[3], files[1]
    assert main.main(["score", *files, "--metrics", "exact_match"]) == 0
    assert capsys.readouterr().err == "verbatim: 1 of 2 references are empty.\n"


def test_score_says_a_table_and_writes_json(texts, capsys):
    files = [
        "--references",
        texts / "references",
        "--hypotheses",
        texts / "outputs",
        "--sources",
        texts / "sources",
    ]
    arguments = ["score", *map(str, files), "--metrics", "bleu,placeholder_fidelity,exact_match"]
    assert main.main([*arguments, "--json", str(texts / "facts.json")]) == 0
    assert "BLEU" in capsys.readouterr().out
    facts = json.loads((texts / "facts.json").read_text(encoding="utf-8"))
    assert list(facts) == ["bleu", "placeholder_fidelity", "exact_match"]
    assert facts["exact_match"]["value"] == 0.5 and facts["placeholder_fidelity"]["value"] == 1.0

    assert main.main([*arguments, "--json", "-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == facts
    assert "BLEU" in captured.err


def test_score_says_what_it_found_by_length_and_frequency(texts, capsys):
    files = [
        "--references",
        texts / "references",
        "--hypotheses",
        texts / "outputs",
        "--training",
        texts / "references",
    ]
    options = [
        "--metrics",
        "bleu_by_length,word_f1_by_frequency",
        "--samples",
        "0",
        "--baseline",
        texts / "references",
    ]
    options += ["--test", "randomisation", "--samples", "20"]
    assert main.main(["score", *map(str, [*files, *options])]) == 0
    said = capsys.readouterr().out
    assert "BLEU by words of the reference  outputs  baseline  reference words" in said
    assert "Word F1 by how often training saw it" in said


@pytest.mark.parametrize("test", ["bootstrap", "randomisation"])
def test_score_compares_with_a_baseline(texts, capsys, test):
    files = [
        "--references",
        texts / "references",
        texts / "sources",
        "--hypotheses",
        texts / "references",
    ]
    options = [
        "--baseline",
        texts / "outputs",
        "--test",
        test,
        "--samples",
        "50",
        "--metrics",
        "chrf,exact_match",
    ]
    assert main.main(["score", *map(str, [*files, *options, "--json", texts / "facts.json"])]) == 0
    said = capsys.readouterr().out
    assert "baseline" in said and "difference" in said and "p-value" in said and "50.0 %" in said
    facts = json.loads((texts / "facts.json").read_text(encoding="utf-8"))
    assert list(facts) == ["outputs", "baseline", "comparison"]
    assert facts["comparison"]["exact_match"]["difference"] == 0.5
    assert "nrefs:2" in facts["outputs"]["chrf"]["signature"]


def test_score_cuts_words_as_a_recipe_does(tmp_path, capsys):
    (tmp_path / "references").write_text("self.last_name = x\n")
    (tmp_path / "outputs").write_text("self.first_name = x\n")
    words = ["--references", "references", "--hypotheses", "outputs", "--json", "facts"]
    words = [str(tmp_path / word) if word[0] != "-" else word for word in words]
    metrics = ["--metrics", "token_accuracy,exact_match"]

    def scored(*more):
        assert main.main(["score", *words, *metrics, *more]) == 0
        return json.loads((tmp_path / "facts").read_text())

    plain, letters = scored(), scored("--rare-words", "letters")
    assert plain["token_accuracy"]["value"] == 2 / 3
    # Of self, dot, last, underscore, name, equals, x.
    assert letters["token_accuracy"]["value"] == 6 / 7
    assert letters["token_accuracy"]["signature"].endswith("|tok:text|rare_words:letters")
    assert "rare_words" not in plain["token_accuracy"]["signature"]
    assert letters["exact_match"] == plain["exact_match"]
    split = scored("--rare-words", "letters", "--tokenization", "whitespace")
    assert "rare_words" not in split["token_accuracy"]["signature"]


def test_metrics_that_see_nothing_say_so(tmp_path, capsys):
    """Identical Hindi has ROUGE 0 by the English tokenizer."""
    (tmp_path / "hi").write_text("फ़ाइल नहीं खोली जा सकी\n", encoding="utf-8")
    (tmp_path / "unknown").write_text("फ़ाइल [UNK] जा\n", encoding="utf-8")
    files = ["--references", str(tmp_path / "hi"), "--hypotheses", str(tmp_path / "hi")]
    files += ["--metrics", "rougeL", "--samples", "0"]
    assert main.main(["score", *files]) == 0
    said = capsys.readouterr()
    assert "0.00" in said.out
    assert said.err.startswith("verbatim: rougeL: ROUGE for English reads only a-z and 0-9")
    assert "--language" in said.err
    assert main.main(["score", *files, "--language", "hi"]) == 0
    said = capsys.readouterr()
    assert "100.00" in said.out and said.err == ""
    baseline = ["--language", "hi", "--baseline", str(tmp_path / "unknown")]
    files[-1] = "10"
    assert main.main(["score", *files, *baseline]) == 0
    assert "The baseline's outputs hold [UNK] or <unk> in 1 of 1 texts" in capsys.readouterr().err
