"""The command `verbatim`. TensorFlow and TFX are imported only by the commands that need them."""

import argparse
import contextlib
import dataclasses
import json
import math
import os
import sys
import warnings

from pipeline.common import tensorflow_settings
from pipeline.common.errors import VerbatimError
from pipeline.recipes import loading, views
from pipeline.recipes.choices import FORMATS, LANGUAGE_MODEL
from pipeline.recipes.recipe import Recipe, recipe_from_dict


def main(arguments=None):
    """Runs one command;
    returns the exit status: 0, 1 for an error, 2 for a wrong call, 3 for a model not blessed.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    tensorflow_settings.quiet()
    if not sys.warnoptions:
        # Third parties' deprecations say nothing to whoever runs a command; `python -W default -m
        # pipeline.commands.main` shows them.
        warnings.simplefilter("ignore")
    try:
        return options.command(options) or 0
    except KeyboardInterrupt:
        print("verbatim: interrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
    except Exception as error:
        if isinstance(error, OSError) and error.filename and error.strerror:
            error = f"{error.filename} cannot be used: {error.strerror}."
        elif not _is_for_the_user(error):
            raise
        print(f"verbatim: {error}", file=sys.stderr)
        return 1


def _is_for_the_user(error):
    """Whether an error's message is a sentence for the user:
    those that this project's modules define.
    """
    module = type(error).__module__.split(".")[0]
    # `__main__` is this module when it is started as `python -m pipeline.commands.main`.
    return module in ("pipeline", "serving", "components", "keras_models", "__main__")


def _parser():
    parser = argparse.ArgumentParser(
        prog="verbatim",
        description="Text-to-text models that copy: train, evaluate, serve and ask them.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    run = commands.add_parser(
        "run", help="train on your data through the whole pipeline, and push the model"
    )
    _recipe_arguments(run)
    run.add_argument(
        "--data",
        metavar="PATH",
        help="a file, a folder, or two aligned files A,B (not for made-up tasks)",
    )
    run.add_argument("--output", required=True, metavar="DIR", help="the run's folder")
    run.add_argument(
        "--beam",
        action="append",
        default=[],
        metavar="OPTION",
        help="--beam=--OPTION: an option for Beam; repeatable",
    )
    run.add_argument("--no-cache", action="store_true", help="run every component, changed or not")
    _json_argument(run)
    run.set_defaults(command=_run)

    evaluate = commands.add_parser("evaluate", help="measure an exported model on pairs")
    evaluate.add_argument(
        "--model", required=True, metavar="DIR", help="a model folder, or one of its versions"
    )
    evaluate.add_argument(
        "--data", required=True, metavar="PATH", help="pairs, in any format that run reads"
    )
    evaluate.add_argument("--format", default="auto", choices=("auto", *FORMATS))
    evaluate.add_argument(
        "--metrics", metavar="A,B,...", help="default: those of the model's recipe"
    )
    evaluate.add_argument(
        "--database",
        metavar="FILE",
        help="SQLite file for execution_accuracy (default: the recipe's)",
    )
    evaluate.add_argument(
        "--outputs", metavar="FILE", help="write the model's outputs there, a line each"
    )
    _json_argument(evaluate)
    evaluate.set_defaults(command=_evaluate)

    score = commands.add_parser("score", help="measure any system's outputs")
    score.add_argument(
        "--references",
        required=True,
        nargs="+",
        metavar="FILE",
        help="a reference a line; several files for several references, where an empty line is "
        "none",
    )
    score.add_argument("--hypotheses", required=True, metavar="FILE", help="an output a line")
    score.add_argument("--sources", metavar="FILE", help="a source a line; some metrics need them")
    score.add_argument(
        "--training",
        nargs="+",
        default=[],
        metavar="FILE",
        help="training text; unseen_copies needs both sides, rare_word_recall and "
        "word_f1_by_frequency the target side",
    )
    score.add_argument("--metrics", default="bleu,chrf", metavar="A,B,...")
    score.add_argument(
        "--language", default="en", help="of the references; chooses tokenizers (default: en)"
    )
    score.add_argument(
        "--tokenization",
        default="text",
        choices=("text", "whitespace"),
        help="whitespace: the texts are tokenized already",
    )
    score.add_argument(
        "--tokenize",
        metavar="NAME",
        help="sacrebleu's tokenizer for BLEU (default: the language's)",
    )
    score.add_argument(
        "--remove",
        default="",
        metavar="TEXT",
        help="take this out of all texts first, such as '@@ '",
    )
    score.add_argument(
        "--database", metavar="FILE", help="SQLite file that execution_accuracy runs the texts on"
    )
    score.add_argument(
        "--baseline", metavar="FILE", help="another system's outputs, to compare with"
    )
    score.add_argument(
        "--test",
        choices=("bootstrap", "randomisation"),
        help="paired test against --baseline: resampled test sets (default), or segments swapped "
        "at random",
    )
    score.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="resampled test sets behind each interval (default: 1000; 0: none), or trials of "
        "randomisation (10000)",
    )
    _json_argument(score)
    score.set_defaults(command=_score)

    serve = commands.add_parser("serve", help="answer gRPC requests with a model, or several")
    served = serve.add_mutually_exclusive_group(required=True)
    served.add_argument(
        "--model", metavar="DIR", help="a model folder; new versions in it are taken up"
    )
    served.add_argument(
        "--config", metavar="FILE", help="TensorFlow Serving's model config file: several models"
    )
    serve.add_argument(
        "--port", type=int, default=8500, metavar="N", help="0 chooses a free one (default: 8500)"
    )
    serve.add_argument(
        "--rest-port",
        type=int,
        metavar="N",
        help="TF Serving's REST paths, Prometheus and a web page (default: not)",
    )
    batched = serve.add_mutually_exclusive_group()
    batched.add_argument(
        "--batch-size",
        type=int,
        metavar="N",
        help="answer up to N texts of several requests together",
    )
    batched.add_argument(
        "--batching-config", metavar="FILE", help="TensorFlow Serving's batching parameters file"
    )
    serve.add_argument(
        "--batch-delay",
        type=float,
        metavar="MS",
        help="wait that long for more requests (default: 2; where batches run at once, a fifth of "
        "what one takes, if that is more)",
    )
    serve.add_argument(
        "--threads-per-batch",
        type=int,
        metavar="N",
        help="compute each batch on N cores, and as many batches at once as there are cores for: "
        "1 answers the most texts "
        "a second, all cores (the default) answer each soonest",
    )
    serve.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    serve.add_argument("--name", help="the model's name in requests (default: the folder's)")
    serve.add_argument(
        "--tls-key", metavar="FILE", help="PEM key; with --tls-certificate, serves TLS"
    )
    serve.add_argument("--tls-certificate", metavar="FILE", help="PEM certificate chain")
    serve.add_argument(
        "--tls-client-ca",
        metavar="FILE",
        help="PEM certificates; clients must show one signed by these",
    )
    serve.add_argument(
        "--request-log",
        metavar="FILE",
        help="append a line of JSON for each request ('-': standard error)",
    )
    serve.set_defaults(command=_serve)

    request = commands.add_parser("request", help="ask a server")
    request.add_argument("--address", required=True, metavar="HOST:PORT")
    request.add_argument(
        "--model", metavar="NAME", help="needed by TF Serving; default: the server's only model"
    )
    asked = request.add_mutually_exclusive_group()
    asked.add_argument("--n-best", action="store_true", help="all of the beam's answers")
    asked.add_argument(
        "--targets", metavar="FILE", help="how likely are these, a line for each text?"
    )
    asked.add_argument(
        "--continue", dest="continues", action="store_true", help="ask a language model to go on"
    )
    request.add_argument(
        "--timeout",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="for a request and its retries (default: 30)",
    )
    request.add_argument(
        "--attempts",
        type=int,
        default=3,
        metavar="N",
        help="send a request N times at most, if the server is away or full: 1 to 5 (default: 3)",
    )
    request.add_argument(
        "--wait", action="store_true", help="wait for a server that is not there yet"
    )
    request.add_argument(
        "--batch-size",
        type=int,
        default=32,
        metavar="N",
        help="the most texts in a request (default: 32)",
    )
    request.add_argument(
        "--tls", action="store_true", help="ask over TLS, with the certificate authorities of gRPC"
    )
    request.add_argument(
        "--tls-ca", metavar="FILE", help="PEM certificates that sign the server's; asks over TLS"
    )
    request.add_argument(
        "--tls-key",
        metavar="FILE",
        help="PEM key; with --tls-certificate, for a server that asks for one",
    )
    request.add_argument(
        "--tls-certificate", metavar="FILE", help="PEM certificate chain of this client"
    )
    request.add_argument(
        "--tags",
        action="append",
        default=[],
        metavar="NAME=TAGS",
        help="for models with data.source_features: a text's tags of column NAME; once for each "
        "text",
    )
    request.add_argument(
        "--file", metavar="FILE", help="ask all of a file's texts, one a line; - for standard input"
    )
    request.add_argument("text", nargs="*")
    _json_argument(request)
    request.set_defaults(command=_request)

    segment = commands.add_parser(
        "segment", help="print the words that a model with a segmenting encoder finds"
    )
    segment.add_argument(
        "--model", required=True, metavar="DIR", help="a model folder, or one of its versions"
    )
    segment.add_argument(
        "file",
        metavar="FILE",
        help="a text a line; spaces in it are the reference, hidden from the model",
    )
    _json_argument(segment)
    segment.set_defaults(command=_segment)

    compile_ = commands.add_parser("compile", help="write the pipeline for Kubeflow Pipelines v2")
    _recipe_arguments(compile_)
    compile_.add_argument("--output", required=True, metavar="FILE", help="pipeline.yaml")
    compile_.add_argument(
        "--data", default="gs://your-bucket/data", metavar="PATH", help="as the cluster sees it"
    )
    compile_.add_argument("--pipeline-root", default="gs://your-bucket/verbatim", metavar="PATH")
    compile_.add_argument(
        "--image", default="verbatim-text:latest", help="container image of all components"
    )
    compile_.add_argument(
        "--component-image",
        action="append",
        default=[],
        metavar="ID=IMAGE",
        help="another for one; repeatable",
    )
    compile_.add_argument(
        "--trainer-gpus",
        type=int,
        default=1,
        metavar="N",
        help="of the Tuner too; 0 for none (default: 1)",
    )
    compile_.add_argument(
        "--gpu-type", default="nvidia.com/gpu", metavar="NAME", help="the cluster's name of a GPU"
    )
    compile_.add_argument(
        "--resources",
        action="append",
        default=[],
        metavar="ID=LIMITS",
        help="what a component may use, such as Trainer=cpu:8,memory:32 (GB); repeatable",
    )
    compile_.add_argument(
        "--retries",
        type=int,
        default=2,
        metavar="N",
        help="of a task that failed (default: 2); a training goes on",
    )
    compile_.add_argument(
        "--no-cache", action="store_true", help="run every task, whatever an earlier run did"
    )
    compile_.add_argument(
        "--data-parameter",
        action="store_true",
        help="ask for the data, a folder, when a run is started",
    )
    compile_.add_argument(
        "--secret",
        action="append",
        default=[],
        metavar="PLACE=SECRET",
        help="a Kubernetes secret that containers see: VARIABLE=NAME/KEY, or /FOLDER=NAME; "
        "repeatable",
    )
    compile_.add_argument(
        "--beam",
        action="append",
        default=[],
        metavar="OPTION",
        help="--beam=--OPTION: an option for Beam; repeatable",
    )
    compile_.set_defaults(command=_compile)

    report = commands.add_parser("report", help="write a run's report again")
    report.add_argument("directory", metavar="DIR", help="the --output folder of a run")
    report.set_defaults(command=_report)

    compare = commands.add_parser("compare", help="write a report on several runs side by side")
    compare.add_argument(
        "directories", nargs="+", metavar="DIR", help="the --output folders of two runs or more"
    )
    compare.add_argument(
        "--output", default="comparison", metavar="DIR", help="where (default: comparison)"
    )
    compare.add_argument(
        "--samples",
        type=int,
        default=1000,
        metavar="N",
        help="resampled test sets behind each p-value (default: 1000)",
    )
    _json_argument(compare)
    compare.set_defaults(command=_compare)
    return parser


def _recipe_arguments(parser):
    names = ", ".join(loading.available_recipes())
    parser.add_argument("recipe", metavar="RECIPE", help=f"a .toml file, or one of: {names}")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override, such as model.head=softmax",
    )


def _json_argument(parser):
    parser.add_argument(
        "--json",
        metavar="FILE",
        help="write the facts there too, for machines; - for standard output",
    )


def _write_json(path, content):
    if not path:
        return
    text = json.dumps(_as_json(content), indent=1, ensure_ascii=False, allow_nan=False)
    if path == "-":
        print(text)
        return
    _write_text(path, text + "\n")


def _write_text(path, text):
    """Writes a file in one step, so that nothing half-written is left.

    What cannot be replaced, a pipe, a device, or a file in a folder that takes no new ones, is
    written in place.
    """
    path = os.path.realpath(path)
    in_place = (
        os.path.exists(path)
        and not os.path.isfile(path)
        or not os.access(os.path.dirname(path), os.W_OK)
    )
    partial = path if in_place else f"{path}.partial"
    try:
        with open(partial, "w", encoding="utf-8") as file:
            file.write(text)
        if not in_place:
            os.replace(partial, path)
    except OSError as error:
        if not in_place:
            with contextlib.suppress(OSError):
                os.unlink(partial)
        raise CommandError(f"The file {path} cannot be written: {error.strerror}.") from None


def _as_json(content):
    """Returns content in which numbers that JSON has no word for, such as an infinite perplexity,
    are null.
    """
    if isinstance(content, dict):
        return {key: _as_json(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_as_json(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _check_writable(*paths):
    """Refuses files that cannot be written before the work whose result they are to hold."""
    for path in paths:
        if not path or path == "-":
            continue
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise CommandError(f"The file {path} cannot be written: there is no folder {folder}.")
        if os.path.isdir(path):
            raise CommandError(f"The file {path} cannot be written: it is a folder.")
        if not os.access(path if os.path.exists(path) else folder, os.W_OK):
            raise CommandError(f"The file {path} cannot be written: permission denied.")


class CommandError(VerbatimError, ValueError):
    """A call that cannot be carried out; its message is one sentence for the user."""


def _talk(options):
    """Where people's lines go: not to standard output when machines read it."""
    stream = sys.stderr if getattr(options, "json", None) == "-" else sys.stdout
    return lambda line="": print(line, file=stream, flush=True)


def _run(options):
    from pipeline.runners import local_runner

    say = _talk(options)
    recipe = loading.load_recipe(options.recipe, options.set)
    _check_writable(options.json)
    data = options.data
    if not data:
        if not recipe.data.synthetic:
            raise CommandError(f"The recipe {recipe.name} needs data: give --data PATH.")
        from pipeline.readers import synthetic

        data = synthetic.write_task(
            recipe.data.synthetic, os.path.join(options.output, "data"), recipe.training.seed
        )
    # The trainer speaks on standard output, which is not for people when machines read it.
    with (
        contextlib.redirect_stdout(sys.stderr) if options.json == "-" else contextlib.nullcontext()
    ):
        facts = local_runner.run(
            recipe,
            data,
            options.output,
            options.beam,
            enable_cache=not options.no_cache,
            progress=say,
        )
    say_results(facts, say)
    _write_json(
        options.json,
        {key: facts[key] for key in (*local_runner.METRICS_KEYS, *local_runner.RUN_KEYS)},
    )
    return 0 if facts["blessed"] else 3


def say_results(facts, say):
    """Says a run's table, blessing and paths."""
    from pipeline.metrics import segmentation_scores
    from pipeline.metrics.base import MetricResult
    from pipeline.reporting import score_tables

    results = {
        system["name"]: {name: MetricResult(**metric) for name, metric in system["metrics"].items()}
        for system in facts["systems"]
    }
    say()
    # The first system was tested against the second, its baseline.
    model, *baseline = results
    p_values = {model: facts["comparison"]} if baseline else {}
    say(score_tables.format_table(results, p_values, *baseline[:1]))
    if breakdowns := score_tables.format_breakdowns(results):
        say(breakdowns)
    for system in facts["systems"]:
        if "word_f1" in (system.get("segmentation") or {}):
            say(
                f"Words found by {system['name']}: "
                f"{segmentation_scores.describe(system['segmentation'])}"
            )
    say()
    counts = facts["counts"]
    if "words_by_split" in counts:
        words = ", ".join(
            f"{number} words of {split}" for split, number in counts["words_by_split"].items()
        )
        say(f"{counts['read']} lines read: {words}, line ends included")
    else:
        say(
            f"{counts['read']} records read, {counts['kept']} kept, {counts['rejected']} rejected: "
            f"{facts['paths']['rejects']}"
        )
    for split, number in (counts.get("rejected_by_given_split") or {}).items():
        if split != "train":
            say(
                f"{number} of the rejected stand in the files given as {split}, which were "
                "therefore not used whole."
            )
    say(facts["blessing_reason"])
    if facts["blessed"]:
        say(f"Model:   {facts['paths']['models']}")
        if "model_card" in facts["paths"]:
            say(f"Card:    {facts['paths']['model_card']}")
    say(f"Metrics: {facts['paths']['metrics']}")
    say(f"Report:  {facts['paths']['report']}")


def _evaluate(options):
    from pipeline.export.served_model import version_directory
    from pipeline.features import training_counts
    from pipeline.metrics import registry, scoring, sql_execution
    from pipeline.readers.formats import read_plan
    from pipeline.readers.planning import plan_inputs
    from pipeline.readers.records import Reject
    from pipeline.reporting import score_tables

    say = _talk(options)
    _check_writable(options.json, options.outputs)
    if (
        options.json
        and options.outputs
        and os.path.realpath(options.json) == os.path.realpath(options.outputs)
    ):
        raise CommandError(f"--json and --outputs both name {options.json}: give different files.")
    if options.metrics:
        registry.expand_metric_names(options.metrics)  # a misspelt metric is reported first
    directory = version_directory(options.model)
    recipe = _recipe_of(directory)
    if recipe.task == LANGUAGE_MODEL:
        return _evaluate_language_model(options, directory, recipe, say)
    counts = training_counts.read(str(directory))
    names, left_out = _evaluated_metrics(recipe, options.metrics, counts is not None)
    for name in names:
        if counts is None and registry.metric_class(name).needs_training_words:
            raise CommandError(
                f"The metric '{name}' needs the counts of the training text, which the model "
                f"{directory} does not keep: export it "
                "anew, or leave the metric out."
            )
    data = _evaluated_data(recipe.data, options)
    metric_options = {
        **registry.options_of(recipe),
        **({"database": options.database} if options.database else {}),
    }
    for name in names:
        registry.create_metric(
            name, **metric_options
        )  # what it lacks is said before the model is loaded
    if "execution_accuracy" in names:
        sql_execution.executor_of(metric_options["database"])
    plan = plan_inputs(options.data, data)
    pairs, rejected = [], []
    for record in read_plan(plan, data):
        (rejected if isinstance(record, Reject) else pairs).append(record)
    for record in rejected[:5]:
        print(f"verbatim: {record.file}:{record.line} left out: {record.reason}", file=sys.stderr)
    if len(rejected) > 5:
        print(f"verbatim: and {len(rejected) - 5} more left out.", file=sys.stderr)
    if not pairs:
        found = (
            f"none of its {len(rejected)} records can be used"
            if rejected
            else "it holds no records"
        )
        raise CommandError(f"There is nothing to measure in {options.data}: {found}.")
    model = _model_for_many_texts(directory)
    sources = [pair.source for pair in pairs]
    features = dict(zip(data.source_features, zip(*(pair.features for pair in pairs))))
    targets = [pair.target for pair in pairs]
    scores = None
    if any(registry.metric_class(name).needs_scores for name in names):
        # Before the outputs, which take longer: a model may lack the signature.
        scores = list(zip(*model.score(sources, targets, features)))
    answers = model.predict(
        sources, progress=lambda done: say(f"decoded {done} of {len(sources)}"), features=features
    )
    texts = [answer["text"] for answer in answers]
    given = {"sources": sources, "scores": scores, "training_words": counts}
    results = scoring.score(names, texts, targets, **given, **metric_options)
    if options.outputs:
        _write_text(options.outputs, "".join(" ".join(text.split("\n")) + "\n" for text in texts))
    named = {model.facts.get("head", "model"): results}
    say(score_tables.format_table(named))
    if breakdowns := score_tables.format_breakdowns(named):
        say(breakdowns)
    say(f"{len(pairs)} pairs, {len(rejected)} left out, model {directory}")
    if data.train_files:
        say(f"The pairs are those of the recipe's data.test_files: {'; '.join(data.train_files)}")
    if left_out:
        say(
            "Not measured, because the model keeps no counts of its training text: "
            f"{', '.join(left_out)}"
        )
    _write_json(
        options.json,
        {
            "model": str(directory),
            "pairs": len(pairs),
            "rejected": len(rejected),
            "metrics": scoring.results_to_dict(results),
        },
    )


def _model_for_many_texts(directory):
    """Loads an exported model that answers as many batches at the same time as there are cores."""
    from pipeline.export.served_model import ServedModel
    from serving import processors

    processors.prefer_batches_side_by_side()
    return ServedModel(directory, at_once=processors.batches_at_once())


def _evaluated_data(data, options):
    """The data section with which pairs are read to be measured:
    as for training, but for what chooses or drops pairs.

    A folder stands for the files that the recipe names for its test split, if it names any.
    """
    files = data.test_files if os.path.isdir(options.data) else ()
    format_ = data.format if files and options.format == "auto" else options.format
    return dataclasses.replace(
        data,
        format=format_,
        drop_identical=False,
        train_files=files,
        eval_files=(),
        test_files=(),
        slice_features=(),
    )


def _evaluated_metrics(recipe, named, has_counts):
    """Returns the metrics to measure an exported model by, and those of its recipe that need counts
    which it has not.
    """
    from pipeline.metrics import registry

    if named:
        return registry.expand_metric_names(named), []
    names = {True: [], False: []}
    for name in recipe.evaluation.metrics:
        names[registry.metric_class(name).needs_training_words and not has_counts].append(name)
    return names[False], names[True]


def _recipe_of(model_directory):
    """The recipe that a model was trained with: its languages, columns, metrics;
    defaults where the model names none.
    """
    from pipeline.export.served_model import read_facts

    recipe = read_facts(model_directory).get("recipe")
    return recipe_from_dict(recipe) if recipe else Recipe(name="model")


def _evaluate_language_model(options, directory, recipe, say):
    """Perplexity of a text file, read as one stream."""
    from pipeline.evaluation import perplexity_of_text
    from pipeline.metrics import registry, scoring
    from pipeline.reporting import score_tables

    if options.metrics and options.metrics not in ("perplexity", "all"):
        raise CommandError(
            f"A language model is measured by 'perplexity' alone; got --metrics {options.metrics}."
        )
    if options.outputs:
        raise CommandError(
            "--outputs is for models that translate: a language model's evaluation writes no text."
        )
    results = perplexity_of_text.measure(options.data, directory, recipe, lambda line: say(line))
    say(score_tables.format_table({recipe.model.head: results}))
    for name, result in results.items():
        say(f"{registry.LABELS[name]}: {result.signature}")
    numbers = {name: results["perplexity"].details[name] for name in ("words", "unknown_words")}
    say(
        f"{numbers['words']} words, line ends included, {numbers['unknown_words']} of them "
        f"unknown; model {directory}"
    )
    facts = {"model": str(directory), **numbers, "metrics": scoring.results_to_dict(results)}
    _write_json(options.json, facts)
    return 0


def _score(options):
    from pipeline.metrics import registry, scoring
    from pipeline.reporting import score_tables

    _check_writable(options.json)
    if options.test and not options.baseline:
        raise CommandError(
            "--test compares two systems: give the other one's outputs with --baseline FILE."
        )
    if options.samples is not None and options.samples < 0:
        raise CommandError(f"--samples must be 0 or more; got {options.samples}.")
    names = registry.expand_metric_names(
        options.metrics
    )  # a misspelt metric is reported before large files are read
    texts = scoring.read_files(
        options.references,
        options.hypotheses,
        options.sources,
        options.baseline,
        options.training,
        tokenization=options.tokenization,
        remove=options.remove,
    )
    segments = len(texts["hypotheses"])
    if empty := sum(not text.strip() for text in texts["hypotheses"]):
        print(f"verbatim: {empty} of {segments} hypotheses are empty.", file=sys.stderr)
    if empty := sum(not any(text.strip() for text in given) for given in texts["references"]):
        print(f"verbatim: {empty} of {segments} references are empty.", file=sys.stderr)
    baseline = texts.pop("baseline_hypotheses", None)
    settings = {
        "language": options.language,
        "tokenize": options.tokenize,
        "tokenization": options.tokenization,
        "database": options.database,
    }
    say = _talk(options)
    randomise = options.test == "randomisation"
    given = (
        {}
        if options.samples is None
        else {"trials" if randomise else "bootstrap_samples": options.samples}
    )
    if baseline is None:
        results = {"outputs": scoring.score(names, **texts, **settings, **given)}
    else:
        test = options.test or "bootstrap"
        *scored, compared = scoring.score_pair(
            names, **texts, baseline_hypotheses=baseline, test=test, **settings, **given
        )
        results = dict(zip(("outputs", "baseline"), scored))
    say(score_tables.format_table(results))
    if breakdowns := score_tables.format_breakdowns(results):
        say(breakdowns)
    if baseline is None:
        _write_json(options.json, scoring.results_to_dict(results["outputs"]))
        return
    say(score_tables.format_comparisons(compared))
    facts = {**results, "comparison": compared}
    _write_json(options.json, {key: scoring.results_to_dict(value) for key, value in facts.items()})


def _serve(options):
    from serving import processors
    from serving.batching import Batching
    from serving.batching_config import read_batching_file
    from serving.model_config import read_config_file
    from serving.server import ServeError, serve

    if options.threads_per_batch is not None:
        try:
            processors.compute_each_batch_on(options.threads_per_batch)
        except ValueError as error:
            raise ServeError(f"--threads-per-batch does not fit: {error}") from None
    parallel = processors.batches_at_once()
    settings = None
    if options.batching_config:
        settings = read_batching_file(options.batching_config, parallel)
    elif options.batch_size is not None:
        if options.batch_size < 1 or (options.batch_delay or 0) < 0:
            raise ServeError("--batch-size must be 1 or more, --batch-delay 0 or more.")
        if options.batch_delay is not None:
            delay = {"delay_seconds": options.batch_delay / 1000}
        else:
            delay = {"delay_share": 0.2 if parallel > 1 else 0.0}
        settings = Batching(options.batch_size, parallel=parallel, **delay)
    batching = {}
    if settings:
        # A thread for each request that can come together: in the batches that run, and in the one
        # that is to be next.
        together = (settings.parallel + 1) * min(settings.max_batch_size, 64)
        batching = {"batching": settings, "max_workers": max(8, together)}
    serve(
        options.model or read_config_file(options.config),
        port=options.port,
        host=options.host,
        name=options.name,
        tls_key=options.tls_key,
        tls_certificate=options.tls_certificate,
        tls_client_ca=options.tls_client_ca,
        rest_port=options.rest_port,
        request_log=options.request_log,
        **batching,
    )


def _request(options):
    from serving import asking, tls
    from serving.client import Client, format_answer

    say = _talk(options)
    _check_writable(options.json)
    texts = _texts_to_ask(options)
    features = _named_tags(options.tags)
    if features and options.continues:
        raise CommandError("--tags are for models that translate: a language model takes none.")
    files = (options.tls_ca, options.tls_key, options.tls_certificate)
    credentials = tls.client_credentials(*files) if options.tls or any(files) else None
    with Client(
        options.address,
        model=options.model,
        timeout=options.timeout,
        credentials=credentials,
        attempts=options.attempts,
        batch_size=options.batch_size,
        wait_for_ready=options.wait,
    ) as client:
        names, columns = list(features), [texts, *features.values()]
        targets = [_lines(options.targets)] if options.targets else []

        def ask(sources, *others):
            tags = dict(zip(names, others))
            if targets:
                return client.score(sources, others[-1], tags)
            if options.continues:
                return client.continue_text(sources)
            return (
                client.n_best(sources, features=tags)
                if options.n_best
                else client.predict(sources, features=tags)
            )

        columns += targets
        # Columns that do not fit each other the client refuses by name.
        fit = all(len(column) == len(texts) for column in columns)
        answers = asking.ask_all(ask, columns, options.batch_size) if fit else ask(*columns)
        _tell_answers(answers, options, say, _format_score if targets else format_answer)


def _format_score(score):
    return f"{score.log_probability:.4f}  (log-probability, {score.token_count} tokens)"


def _tell_answers(answers, options, say, describe):
    """Prints answers as they come, each one or a list of the best;
    what is refused goes to standard error, by its number.
    """
    from serving.client import RequestError

    written, refused = [], 0
    try:
        for number, answer in enumerate(answers, 1):
            if isinstance(answer, RequestError):
                where = f"Line {number} of {options.file}" if options.file else f"Text {number}"
                print(f"verbatim: {where}: {answer}", file=sys.stderr)
                written.append(None)
                refused += 1
                continue
            beam = answer if isinstance(answer, list) else [answer]
            for one in beam:
                say(describe(one))
            kept = [dataclasses.asdict(one) for one in beam]
            written.append(kept[0] if options.targets else kept)
    except RequestError as error:
        if not written:
            raise
        _write_json(options.json, written)
        raise CommandError(f"{error} The {len(written)} texts before have their answers.") from None
    _write_json(options.json, written)
    if refused:
        raise CommandError(f"{refused} of {len(written)} texts were refused.")


def _texts_to_ask(options):
    if bool(options.text) == bool(options.file):
        raise CommandError("Give the texts either as arguments or with --file FILE.")
    if options.text:
        return options.text
    texts = _lines(options.file)
    for number, text in enumerate(texts, 1):
        if not text.strip():
            raise CommandError(f"Line {number} of {options.file} is empty; each must be a text.")
    return texts


def _lines(path):
    from pipeline.metrics import scoring

    return scoring.read_lines("/dev/stdin" if path == "-" else path, "text")


def _segment(options):
    from pipeline.export.served_model import version_directory
    from pipeline.metrics import scoring, segmentation_scores

    say = _talk(options)
    _check_writable(options.json)
    directory = version_directory(options.model)
    recipe = _recipe_of(directory)
    if not views.segments(recipe):
        raise CommandError(
            f"The model {directory} finds no words: it was trained with 'model.encoder' = "
            f'{recipe.model.encoder!r}, not "segmenting".'
        )
    lines = scoring.read_lines(options.file, "text")
    sources = [line for line in lines if line.strip()]
    if not sources:
        raise CommandError(f"{options.file} has no text: give a text a line.")
    answers = _model_for_many_texts(directory).predict(sources)
    # An empty line stays one, so that the lines of both files belong together.
    remaining = iter(answers)
    words = [next(remaining)["source_tokens"] if line.strip() else [] for line in lines]
    for found in words:
        say(" ".join(found))
    if len(sources) < len(lines):
        print(
            f"verbatim: {len(lines) - len(sources)} of {len(lines)} lines are empty.",
            file=sys.stderr,
        )
    found = segmentation_scores.of_answers(sources, answers)
    if "word_f1" in found:
        print(segmentation_scores.describe(found), file=sys.stderr)
    _write_json(options.json, {"scores": found, "words": words})


def _named_tags(tags):
    """Returns a dict from column to its texts of repeated NAME=TAGS."""
    features = {}
    for item in tags:
        name, separator, text = item.partition("=")
        if not separator or not name:
            raise CommandError(f"--tags needs NAME=TAGS, for example pos='DT NN'; got '{item}'.")
        features.setdefault(name, []).append(text)
    return features


def _compile(options):
    recipe = loading.load_recipe(options.recipe, options.set)
    images = {}
    for item in options.component_image:
        component, separator, image = item.partition("=")
        if not separator or not component or not image:
            raise CommandError(
                "--component-image needs ID=IMAGE, for example Trainer=repository/image; got "
                f"'{item}'."
            )
        images[component] = image
    for option, number in (
        ("--trainer-gpus", options.trainer_gpus),
        ("--retries", options.retries),
    ):
        if number < 0:
            raise CommandError(f"{option} must be 0 or more; got {number}.")
    from pipeline.runners import kubeflow_runner

    resources = dict(map(kubeflow_runner.parse_resources, options.resources))
    secrets = [kubeflow_runner.parse_secret(item) for item in options.secret]
    os.makedirs(os.path.dirname(os.path.abspath(options.output)), exist_ok=True)
    _check_writable(options.output)
    path = kubeflow_runner.compile_pipeline(
        recipe,
        options.output,
        data_path=options.data,
        pipeline_root=options.pipeline_root,
        image=options.image,
        component_images=images,
        gpu_count=options.trainer_gpus,
        gpu_type=options.gpu_type,
        resources=resources,
        retries=options.retries,
        enable_cache=not options.no_cache,
        data_parameter=options.data_parameter,
        secrets=secrets,
        beam_args=options.beam,
    )
    print(f"Wrote {path}")


def _compare(options):
    from pipeline.reporting import comparison, report, score_tables

    say = _talk(options)
    _check_writable(options.json)
    if os.path.realpath(options.output) in map(os.path.realpath, options.directories):
        raise CommandError(
            f"--output {options.output} is a run's own folder, whose report would be lost: give "
            "another."
        )
    facts = comparison.compare(options.directories, options.samples, progress=say)
    path = report.write_report(options.output, facts)
    results = {system["name"]: report.metric_results(system) for system in facts["systems"]}
    say(score_tables.format_table(results, facts.get("comparisons"), next(iter(results))))
    say(facts["note"])
    say(f"Report:  {path}")
    _write_json(options.json, report.load_facts(options.output))


def _report(options):
    from pipeline.reporting import report

    print(report.write_report(options.directory, report.load_facts(options.directory)))


if __name__ == "__main__":
    sys.exit(main())
