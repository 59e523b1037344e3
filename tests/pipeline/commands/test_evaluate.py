"""`verbatim evaluate`: one sentence for data and models that cannot be used."""

import json

import pytest

from pipeline.recipes.recipe import recipe_from_dict
from pipeline.reporting import seq2seq_evaluation
from pipeline.reporting.model_evaluation import EvaluationRequest
from tests.pipeline.commands.saved_models import save_model


def test_evaluate_refuses_bad_input(refused, texts):
    model, data = texts / "model", texts / "pairs.tsv"

    def evaluate(*more, model=model, data=data):
        return refused("evaluate", "--model", model, "--data", data, *more)

    assert evaluate() == f"The model folder {model} does not exist."
    model.mkdir()
    (model / "notes").mkdir()
    (model / "3").mkdir()
    assert "contains no version" in evaluate()
    assert evaluate(model=data).startswith(f"The model folder {data} is a file: give the folder")
    assert "'blue'" in evaluate("--metrics", "blue")
    assert "it is a folder" in evaluate("--outputs", texts)
    assert "no folder" in evaluate("--json", texts / "absent" / "x.json")
    (model / "3" / "saved_model.pb").write_bytes(b"not a model")
    assert str(texts / "absent.tsv") in evaluate(data=texts / "absent.tsv")
    sentence = evaluate()
    assert f"{model / '3'} cannot be loaded" in sentence and sentence.endswith(
        "copy or export it again."
    )
    assert "does not contain: export it again" in evaluate("--metrics", "bleu,unseen_copies")
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
    assert f"database {texts / 'absent.sqlite'} does not exist" in evaluate()
    assert "does not exist" in evaluate("--database", texts / "other.sqlite")
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
    assert "returned a 'score' that is not a number" in sentence
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
        ("diverged", "returned a 'log_probability' that is not a number"),
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


def test_what_evaluate_reads_and_measures_by_default(tmp_path):
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
    request = EvaluationRequest(str(tmp_path))
    data = seq2seq_evaluation.evaluated_data(recipe.data, request)
    assert (
        data.train_files == ("b",)
        and data.test_files == ()
        and data.format == "tsv"
        and not data.drop_identical
    )
    (tmp_path / "pairs.jsonl").write_text("{}")
    request = EvaluationRequest(str(tmp_path / "pairs.jsonl"))
    data = seq2seq_evaluation.evaluated_data(recipe.data, request)
    assert data.train_files == () and data.format == "auto"
    names, left_out = seq2seq_evaluation.evaluated_metrics(recipe, None, has_counts=False)
    assert "bleu" in names and left_out == ["unseen_copies"]
    assert seq2seq_evaluation.evaluated_metrics(recipe, None, has_counts=True) == (
        list(recipe.evaluation.metrics),
        [],
    )
    assert seq2seq_evaluation.evaluated_metrics(recipe, "rouge,ter", has_counts=False) == (
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
    assert "returns score, text: it is not a Verbatim model." in sentence


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
    assert sentence == "The source text 0 is too long. 1 more text was refused, too."


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
    monkeypatch.setenv("VERBATIM_THREADS_PER_BATCH", "")
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
