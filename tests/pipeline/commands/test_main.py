"""The command:
quick help, one sentence for whatever is wrong, and nothing but JSON where JSON is asked for.
"""

import ast
import json
import math
import os
import pathlib
import socket
import subprocess
import sys

import pytest

from pipeline.commands import main
from pipeline.metrics import scoring
from pipeline.readers import DataError
from pipeline.recipes.recipe import Recipe, recipe_from_dict

ROOT = pathlib.Path(__file__).parents[3]
COMMANDS = ("run", "evaluate", "score", "serve", "request", "compile", "report", "compare")
RECIPE = "localization_en_fr"


@pytest.fixture
def refused(capsys):
    """Function of arguments: runs a command that must fail, and returns its sentence."""

    def call(*arguments):
        assert main.main([str(argument) for argument in arguments]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        lines = [line for line in captured.err.splitlines() if line.startswith("verbatim: ")]
        assert len(lines) == 1 and captured.err.strip().splitlines()[-1] == lines[0], captured.err
        assert "Traceback" not in captured.err
        sentence = lines[0].removeprefix("verbatim: ")
        assert sentence[-1] in ".?" and not sentence.endswith("..")
        return sentence

    return call


@pytest.fixture
def texts(tmp_path):
    """Files of references, outputs and sources, and a TSV of pairs."""
    for name, lines in {
        "references": ["le chat %s", "un chien"],
        "outputs": ["le chat %s", "le chien"],
        "sources": ["the cat %s", "a dog"],
        "short": ["le chat"],
        "pairs.tsv": ["the cat\tle chat", "a dog\tun chien"],
    }.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def save_model(folder, signatures):
    """Writes a SavedModel whose signatures take `source` and give what they are told:
    dict of name to outputs.
    """
    import tensorflow as tf

    module = tf.Module()
    spec = tf.TensorSpec([None], tf.string, name="source")
    functions = {}
    for name, outputs in signatures.items():

        def answer(source, outputs=outputs):
            return {output: tf.identity(source) for output in outputs}

        functions[name] = tf.function(answer).get_concrete_function(spec)
    module.kept = list(functions.values())
    tf.saved_model.save(module, str(folder), signatures=functions)


def test_help_imports_neither_tensorflow_nor_tfx():
    code = f"""
import contextlib, io, sys
from pipeline import cli
for arguments in [["--help"], *([command, "--help"] for command in {COMMANDS!r})]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            main.main(arguments)
        except SystemExit as end:
            assert end.code == 0, arguments
    assert "usage: verbatim" in out.getvalue(), arguments
    assert all(command in out.getvalue() for command in {COMMANDS!r}) or len(arguments) == 2
heavy = {{"tensorflow", "tfx", "keras", "numpy", "apache_beam", "grpc", "kfp"}} & set(sys.modules)
sys.exit(f"imported: {{heavy}}" if heavy else 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    "arguments", [[], ["frobnicate"], ["run"], ["run", RECIPE], ["serve", "--port", "x"], ["score"]]
)
def test_a_wrong_call_is_explained_by_argparse(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main.main(arguments)
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("usage: verbatim")
    assert captured.err.splitlines()[-1].startswith("verbatim")


def test_started_as_a_module_errors_are_sentences_too():
    arguments = ["compile", RECIPE, "--output", "p.yaml", "--component-image", "Trainer"]
    command = [sys.executable, "-m", "pipeline.commands.main", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr == (
        "verbatim: --component-image needs ID=IMAGE, for example Trainer=repository/image; got "
        "'Trainer'.\n"
    )


def test_each_error_type_of_the_project_becomes_a_sentence():
    """Reads the sources: a new error type cannot be forgotten here."""
    import importlib

    found = []
    for package in ("pipeline", "serving", "components", "keras_models"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                    found.append(getattr(importlib.import_module(module), node.name))
    names = {error.__name__ for error in found}
    assert {
        "DataError",
        "RecipeError",
        "RunError",
        "ScoringError",
        "ReportError",
        "ModelError",
    } <= names
    assert {"ServeError", "RequestError", "CatalogueError", "CommandError"} <= names
    for error in found:
        assert main._is_for_the_user(error.__new__(error)), error
    for error in (
        ValueError("x"),
        KeyError("x"),
        RuntimeError("x"),
        json.JSONDecodeError("x", "y", 0),
    ):
        assert not main._is_for_the_user(error)


@pytest.mark.parametrize(
    "error, status, sentence",
    [
        (DataError("The data are bad."), 1, "verbatim: The data are bad.\n"),
        (
            PermissionError(13, "Permission denied", "/x/y"),
            1,
            "verbatim: /x/y cannot be used: Permission denied.\n",
        ),
        (KeyboardInterrupt(), 130, "verbatim: interrupted.\n"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
)
def test_how_errors_end(error, status, sentence, monkeypatch, capsys):
    def fail(options):
        raise error

    monkeypatch.setattr(main, "_report", fail)
    assert main.main(["report", "x"]) == status
    assert capsys.readouterr().err == sentence


def test_a_fault_of_our_own_keeps_its_traceback(monkeypatch):
    def fail(options):
        raise KeyError("oops")

    monkeypatch.setattr(main, "_report", fail)
    with pytest.raises(KeyError):
        main.main(["report", "x"])


def test_run_refuses_bad_input_before_anything_slow(refused, texts):
    output = texts / "run"
    data = texts / "pairs.tsv"

    def run(recipe=RECIPE, data=data, output=output, *more):
        return refused(
            "run", recipe, "--set", "data.format=tsv", "--data", data, "--output", output, *more
        )

    assert str(texts / "absent.tsv") in run(data=texts / "absent.tsv")
    assert "did you mean 'localization_en_fr'" in run("localization_en_de")
    assert str(texts / "absent.toml") in run(texts / "absent.toml")
    assert "'model.hed'" in run(RECIPE, data, output, "--set", "model.hed=softmax")
    sql = (
        "--set",
        "evaluation.metrics=['execution_accuracy']",
        "--set",
        "evaluation.thresholds={}",
    )
    assert f"no database {texts / 'absent.sqlite'}" in run(
        RECIPE, data, output, *sql, "--set", "evaluation.database=absent.sqlite"
    )
    files = ("--set", "data.train_files=['absent.tsv']")
    assert "absent.tsv in data.train_files" in run(RECIPE, texts, output, *files)
    assert "'model.head'" in run(RECIPE, data, output, "--set", "model.head=magic")
    assert "--set needs" in run(RECIPE, data, output, "--set", "model.head")
    assert "it is a folder" in run(RECIPE, data, output, "--json", texts)
    assert "no folder" in run(RECIPE, data, output, "--json", texts / "absent" / "facts.json")
    assert not output.exists()
    assert "cannot be made" in run(RECIPE, data, texts / "pairs.tsv")
    assert "cannot be made" in run(RECIPE, data, texts / "pairs.tsv" / "below")


def test_evaluate_refuses_bad_input(refused, texts):
    model, data = texts / "model", texts / "pairs.tsv"

    def evaluate(*more, model=model, data=data):
        return refused("evaluate", "--model", model, "--data", data, *more)

    assert evaluate() == f"The model folder {model} does not exist."
    model.mkdir()
    (model / "notes").mkdir()
    (model / "3").mkdir()
    assert "holds no version" in evaluate()
    assert evaluate(model=data).startswith(f"The model folder {data} is a file: give the folder")
    assert "'blue'" in evaluate("--metrics", "blue")
    assert "it is a folder" in evaluate("--outputs", texts)
    assert "no folder" in evaluate("--json", texts / "absent" / "x.json")
    (model / "3" / "saved_model.pb").write_bytes(b"not a model")
    assert str(texts / "absent.tsv") in evaluate(data=texts / "absent.tsv")
    sentence = evaluate()
    assert f"{model / '3'} cannot be loaded" in sentence and sentence.endswith(
        "copy or export it anew."
    )
    assert "does not keep: export it anew" in evaluate("--metrics", "bleu,unseen_copies")
    files = ("--outputs", texts / "same", "--json", texts / "same")
    assert "give different files" in evaluate(*files) and not (texts / "same").exists()
    (texts / "header.tsv").write_text("source\ttarget\n")
    assert "it holds no records" in evaluate(data=texts / "header.tsv")
    extra = model / "3" / "assets.extra"
    extra.mkdir()
    (extra / "verbatim.json").write_text("{")
    assert f"{extra / 'verbatim.json'}, cannot be read" in evaluate()
    (extra / "verbatim.json").write_text("[]")
    assert "must be one JSON object" in evaluate()
    (extra / "verbatim.json").write_text(
        '{"recipe": {"name": "x", "model": {"head": "of_the_future"}}}'
    )
    assert "'model.head'" in evaluate()
    # Metrics are the model's recipe's, unless others are named; a database may be elsewhere than in
    # training.
    evaluation = {"metrics": ["execution_accuracy"], "database": str(texts / "absent.sqlite")}
    (extra / "verbatim.json").write_text(
        json.dumps({"recipe": {"name": "x", "evaluation": evaluation}})
    )
    assert f"no database {texts / 'absent.sqlite'}" in evaluate()
    assert "no database" in evaluate("--database", texts / "other.sqlite")
    assert "cannot be loaded" in evaluate("--metrics", "bleu")
    (extra / "verbatim.json").write_text('{"recipe": {"name": "x"}}')
    assert "--database" in evaluate("--metrics", "execution_accuracy")


def test_scores_that_are_no_numbers_are_one_sentence(texts, refused):
    """As of a model whose training diverged: nothing is measured, nothing is written."""
    import tensorflow as tf

    def answer(source):
        tokens = tf.reshape(source, [-1, 1])
        nothing = tf.zeros(tf.shape(tokens))
        texts = {"text": source, "tokens": tokens, "source_tokens": tokens}
        return {
            **texts,
            "score": tf.fill(tf.shape(source), float("nan")),
            "copied_from": tf.cast(nothing, tf.int32),
            "copy_probability": nothing,
        }

    module = tf.Module()
    function = tf.function(answer).get_concrete_function(
        tf.TensorSpec([None], tf.string, name="source")
    )
    tf.saved_model.save(
        module, str(texts / "diverged" / "1"), signatures={"serving_default": function}
    )
    files = ("--json", texts / "facts.json", "--outputs", texts / "written")
    sentence = refused(
        "evaluate", "--model", texts / "diverged", "--data", texts / "pairs.tsv", *files
    )
    assert "gives 'score' that is not a number" in sentence
    assert not (texts / "facts.json").exists() and not (texts / "written").exists()


def test_perplexity_takes_the_signature_score_and_numbers(texts, refused):
    import tensorflow as tf

    names = ("text", "score", "tokens", "copied_from", "copy_probability", "source_tokens")
    save_model(texts / "mute" / "1", {"serving_default": names})
    module = tf.Module()
    spec = {name: tf.TensorSpec([None], tf.string, name=name) for name in ("source", "target")}

    def answer(source):
        return {name: tf.identity(source) for name in names}

    def score(source, target):
        sizes = tf.shape(source)
        return {
            "log_probability": tf.fill(sizes, float("nan")),
            "token_count": tf.ones(sizes, tf.int32),
        }

    functions = {
        "serving_default": tf.function(answer).get_concrete_function(spec["source"]),
        "score": tf.function(score).get_concrete_function(**spec),
    }
    module.kept = list(functions.values())
    tf.saved_model.save(module, str(texts / "diverged" / "1"), signatures=functions)
    for model, words in (
        ("mute", "has no signature 'score'"),
        ("diverged", "gives 'log_probability' that is not a number"),
    ):
        files = (
            "--json",
            texts / "facts.json",
            "--outputs",
            texts / "written",
            "--metrics",
            "perplexity",
        )
        assert words in refused(
            "evaluate", "--model", texts / model, "--data", texts / "pairs.tsv", *files
        )
        assert not (texts / "facts.json").exists() and not (texts / "written").exists()


def test_json_holds_no_infinite_numbers(tmp_path):
    main._write_json(
        str(tmp_path / "x.json"), {"a": [math.inf, math.nan, 1.5], "b": {"c": -math.inf}}
    )
    assert json.loads((tmp_path / "x.json").read_text()) == {
        "a": [None, None, 1.5],
        "b": {"c": None},
    }
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_a_file_is_written_whole_and_a_device_in_place(tmp_path, monkeypatch):
    path = tmp_path / "facts.json"
    path.write_text("before")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", fail)
        with pytest.raises(main.CommandError, match="No space left"):
            main._write_text(str(path), "after")
    assert path.read_text() == "before" and [file.name for file in tmp_path.iterdir()] == [
        "facts.json"
    ]
    main._write_text("/dev/null", "x")
    assert not os.path.exists("/dev/null.partial")


def test_what_evaluate_reads_and_measures_by_default(tmp_path):
    import argparse

    recipe = recipe_from_dict(
        {
            "name": "x",
            "data": {
                "train_files": ["a"],
                "test_files": ["b"],
                "drop_identical": True,
                "format": "tsv",
            },
        }
    )
    options = argparse.Namespace(data=str(tmp_path), format="auto")
    data = main._evaluated_data(recipe.data, options)
    assert (
        data.train_files == ("b",)
        and data.test_files == ()
        and data.format == "tsv"
        and not data.drop_identical
    )
    (tmp_path / "pairs.jsonl").write_text("{}")
    options.data = str(tmp_path / "pairs.jsonl")
    data = main._evaluated_data(recipe.data, options)
    assert data.train_files == () and data.format == "auto"
    names, left_out = main._evaluated_metrics(recipe, None, has_counts=False)
    assert "bleu" in names and left_out == ["unseen_copies"]
    assert main._evaluated_metrics(recipe, None, has_counts=True) == (
        list(recipe.evaluation.metrics),
        [],
    )
    assert main._evaluated_metrics(recipe, "rouge,ter", has_counts=False) == (
        ["rouge1", "rouge2", "rougeL", "ter"],
        [],
    )


def test_evaluate_refuses_a_model_of_another_kind(refused, texts):
    data = texts / "pairs.tsv"
    save_model(texts / "other" / "1", {"classify": ["text"]})
    sentence = refused("evaluate", "--model", texts / "other", "--data", data)
    assert "no signature 'serving_default'" in sentence
    save_model(texts / "third" / "1", {"serving_default": ["text", "score"]})
    sentence = refused("evaluate", "--model", texts / "third", "--data", data)
    assert "gives score, text: it is not one of Verbatim's." in sentence


def test_a_text_that_the_model_refuses_is_one_sentence(texts, refused):
    """As ServingModule refuses a text that is too long."""
    import tensorflow as tf

    names = ("text", "score", "tokens", "copied_from", "copy_probability", "source_tokens")

    def answer(source):
        tf.debugging.Assert(
            tf.size(source) < 0, [tf.strings.format("The source text {} is too long.", (0,))]
        )
        return {name: source for name in names}

    module = tf.Module()
    function = tf.function(answer).get_concrete_function(
        tf.TensorSpec([None], tf.string, name="source")
    )
    tf.saved_model.save(
        module, str(texts / "strict" / "1"), signatures={"serving_default": function}
    )
    sentence = refused("evaluate", "--model", texts / "strict", "--data", texts / "pairs.tsv")
    assert sentence == "The source text 0 is too long."


def test_score_refuses_bad_input(refused, texts):
    def score(references="references", outputs="outputs", *more):
        return refused(
            "score", "--references", texts / references, "--hypotheses", texts / outputs, *more
        )

    assert "1" in score("references", "short") and "2" in score("references", "short")
    assert str(texts / "absent") in score("references", "absent")
    assert str(texts) in score("references", ".")
    assert "'blue'" in score("references", "outputs", "--metrics", "blue")
    assert "source" in score("references", "outputs", "--metrics", "placeholder_fidelity")
    assert str(texts / "absent") in score("references", "outputs", "--sources", texts / "absent")
    assert "it is a folder" in score("references", "outputs", "--json", texts)
    assert str(texts / "short") in score("references", "outputs", "--baseline", texts / "short")
    assert "--baseline FILE" in score("references", "outputs", "--test", "randomisation")
    assert "-1" in score("references", "outputs", "--samples", "-1")
    assert "'nonsense'" in score("references", "outputs", "--tokenize", "nonsense")
    (texts / "latin1").write_bytes("été\nété\n".encode("latin-1"))
    (texts / "empty").write_text("")
    facts = texts / "facts.json"
    assert "UTF-8" in score("references", "latin1", "--json", facts)
    (texts / "utf16").write_text("le chat %s\nun chien\n", encoding="utf-16")
    assert "utf16 is UTF-16 text" in score("utf16", "outputs", "--json", facts)
    (texts / "blank").write_text("\n\n")
    assert "blank holds no text: all of its 2 lines are empty" in score(
        "references", "blank", "--json", facts
    )
    assert "measure the model itself" in score(
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


def test_run_says_only_json_where_json_is_asked_for(texts, capsys, monkeypatch):
    """Even what the trainer prints, which knows nothing of the command."""
    from pipeline.runners import local_runner

    metric = scoring.score(["bleu"], ["a b"], ["a b"], bootstrap_samples=0)
    facts = {
        **dict.fromkeys((*local_runner.METRICS_KEYS, *local_runner.RUN_KEYS)),
        "systems": [{"name": "softmax", "metrics": scoring.results_to_dict(metric)}],
        "counts": {"read": 3, "kept": 2, "rejected": 1},
        "paths": dict.fromkeys(("rejects", "models", "metrics", "report"), "somewhere"),
        "blessing_reason": "Not pushed: BLEU is low.",
        "blessed": False,
        "samples": ["not for the JSON"],
    }

    def run(recipe, data_path, output, beam_args, enable_cache, progress):
        assert isinstance(recipe, Recipe) and not enable_cache
        assert beam_args == ["--a=1", "--b=2"]
        print("  softmax: epoch 1/1")
        progress("said")
        return facts

    monkeypatch.setattr(local_runner, "run", run)
    arguments = [
        "run",
        RECIPE,
        "--data",
        "d",
        "--output",
        "o",
        "--no-cache",
        "--beam=--a=1",
        "--beam=--b=2",
    ]
    # Status 3: the run is fine, the model is not good enough.
    assert main.main([*arguments, "--json", "-"]) == 3
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        key: value for key, value in facts.items() if key != "samples"
    }
    for words in ("epoch 1/1", "said", "3 records read, 2 kept, 1 rejected", "Not pushed"):
        assert words in captured.err
    assert main.main(arguments) == 3
    captured = capsys.readouterr()
    assert "epoch 1/1" in captured.out and captured.err == ""


def test_compile_refuses_bad_input(refused, texts):
    def compile_(*more, output=texts / "p.yaml"):
        return refused("compile", RECIPE, "--output", output, *more)

    for item in ("Trainer", "Trainer=", "=image"):
        assert item in compile_("--component-image", item)
    for option in ("--trainer-gpus", "--retries"):
        assert f"{option} must be 0 or more" in compile_(option, "-1")
    assert "--resources needs" in compile_("--resources", "Trainer=8")
    assert "--secret needs" in compile_("--secret", "key")
    assert "must be a folder" in compile_("--data-parameter", "--data", "gs://bucket/pairs.tsv")
    assert "it is a folder" in compile_(output=texts)
    assert "cannot be used" in compile_(output=texts / "pairs.tsv" / "p.yaml")
    assert "'model.head'" in compile_("--set", "model.head=magic")
    sentence = compile_("--component-image", "Trainr=image")
    assert "'Trainr'" in sentence and "Trainer.baseline" in sentence
    assert not (texts / "p.yaml").exists()


def test_serve_refuses_bad_input(refused, texts):
    model = texts / "model"
    assert "does not exist" in refused("serve", "--model", model, "--port", 0)
    model.mkdir()
    sentence = refused("serve", "--model", model, "--port", 0)
    assert str(model) in sentence and "version" in sentence
    save_model(model / "1", {"serving_default": ["text"]})
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        port = occupied.getsockname()[1]
        assert refused("serve", "--model", model, "--port", port) == (
            f"Port {port} is already in use; choose another with --port."
        )
    assert "0 to 65535" in refused("serve", "--model", model, "--port", 65536)
    assert "--batch-size must be 1 or more" in refused("serve", "--model", model, "--batch-size", 0)
    assert "--batch-delay 0 or more" in refused(
        "serve", "--model", model, "--batch-size", 8, "--batch-delay", -1
    )
    assert "for a batch; got 0." in refused("serve", "--model", model, "--threads-per-batch", 0)
    assert "for a batch; got 4097." in refused(
        "serve", "--model", model, "--threads-per-batch", 4097
    )
    assert "nowhere.config cannot be read" in refused("serve", "--config", texts / "nowhere.config")
    sentence = refused("serve", "--model", model, "--batching-config", texts / "nowhere.config")
    assert "batching config file" in sentence and "cannot be read" in sentence
    assert "both a key and a certificate" in refused(
        "serve", "--model", model, "--port", 0, "--tls-key", "x"
    )
    tls = ("--tls-key", texts / "absent.pem", "--tls-certificate", texts / "absent.pem")
    assert str(texts / "absent.pem") in refused("serve", "--model", model, "--port", 0, *tls)


@pytest.mark.parametrize(
    "options, at_once, workers, delay",
    [
        (["--batch-size", 16], 1, 32, (0.002, 0)),
        (["--batch-size", 16, "--threads-per-batch", 4], 1, 32, (0.002, 0)),
        (["--batch-size", 16, "--threads-per-batch", 1], 4, 80, (0.002, 0.2)),
        (["--batch-size", 16, "--threads-per-batch", 1, "--batch-delay", 0], 4, 80, (0, 0)),
        (["--batching-config", "batching", "--threads-per-batch", 2], 2, 96, (0.002, 0)),
        (["--batching-config", "threads", "--threads-per-batch", 2], 3, 128, (0.002, 0)),
    ],
)
def test_a_server_runs_as_many_batches_as_it_has_cores_for(
    texts, monkeypatch, options, at_once, workers, delay
):
    from serving import processors, server

    asked = {}
    monkeypatch.setattr(processors, "cores", lambda: 4)
    monkeypatch.setattr(server, "serve", lambda models, **given: asked.update(given))
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "")
    monkeypatch.chdir(texts)
    (texts / "batching").write_text("max_batch_size { value: 32 }")
    (texts / "threads").write_text("num_batch_threads { value: 3 }")
    assert main.main([str(argument) for argument in ("serve", "--model", texts, *options)]) == 0
    assert asked["batching"].parallel == at_once
    assert asked["max_workers"] == workers
    assert (asked["batching"].delay_seconds, asked["batching"].delay_share) == delay


@pytest.mark.parametrize("given, at_once", [(None, 4), ("2", 2)])
def test_many_texts_are_answered_by_batches_side_by_side(
    refused, texts, monkeypatch, given, at_once
):
    from pipeline.export import served_model
    from serving import processors

    asked = {}

    def load(directory, **options):
        asked.update(options)
        raise served_model.ModelError("It goes no further.")

    monkeypatch.setattr(processors, "cores", lambda: 4)
    monkeypatch.setattr(served_model, "ServedModel", load)
    monkeypatch.setenv(
        "TF_NUM_INTRAOP_THREADS", given or ""
    )  # taken back after the test, what the command sets, too
    if given is None:
        monkeypatch.delenv("TF_NUM_INTRAOP_THREADS")
    save_model(texts / "model" / "1", {"serving_default": ["text"]})
    arguments = (
        "evaluate",
        "--model",
        texts / "model",
        "--data",
        texts / "pairs.tsv",
        "--metrics",
        "bleu",
    )
    assert refused(*arguments) == "It goes no further."
    assert asked == {"at_once": at_once}


def test_request_to_a_dead_address(refused, texts):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    # Bound but not listened at, then closed: nobody answers there.
    sentence = refused("request", "--address", address, "--timeout", 5, "Hello")
    assert (
        sentence
        == f"No server answers at {address}; start one with 'verbatim serve' or check the address."
    )
    assert "it is a folder" in refused("request", "--address", address, "--json", texts, "Hello")


def test_report_refuses_bad_input(refused, texts):
    assert "There is no report in" in refused("report", texts)
    (texts / "report").mkdir()
    (texts / "report" / "facts.json").write_text("{")
    assert "not valid JSON" in refused("report", texts)
    (texts / "report" / "facts.json").write_text('{"systems": 3}')
    assert "expected form" in refused("report", texts)
    assert str(texts / "pairs.tsv") in refused("report", texts / "pairs.tsv")
