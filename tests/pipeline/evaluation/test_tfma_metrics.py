"""The Evaluator's metrics:
equal to `pipeline.metrics.scoring`, whatever the shards, and able to gate.
"""

import json
import math

import pytest

tf = pytest.importorskip("tensorflow")
tfma = pytest.importorskip("tensorflow_model_analysis")
config_pb2 = pytest.importorskip("tensorflow_model_analysis.proto.config_pb2")

from pipeline.evaluation import eval_config, extractors, gate, tfma_metrics
from pipeline.evaluation.sum_combiner import CombinedMetric, SumCombiner, one_text
from pipeline.features import training_counts
from pipeline.metrics import scoring
from pipeline.metrics.scored_texts import ScoredTexts
from pipeline.metrics.scoring_options import ScoringOptions
from pipeline.recipes.choices import METRICS
from pipeline.recipes.recipe import recipe_from_dict
from pipeline.text import tokenization

PAIRS = [
    # source, target, output
    ("Hello %(name)s!", "Bonjour %(name)s !", "Bonjour %(name)s !"),
    (
        "%(count)d files were removed from {folder}.",
        "%(count)d fichiers supprimés de {folder}.",
        "%(count)d fichiers de {folder}.",
    ),
    ("Sign in to %s", "Se connecter à %s", "Se connecter à %d"),
    ("The page was not found", "La page est introuvable", "La page n'a pas été trouvée"),
    (
        "Delete the <b>selected</b> objects",
        "Supprimer les objets <b>sélectionnés</b>",
        "Supprimer les objets <b>sélectionnés</b>",
    ),
    ("Élan vital — naïve 東京", "Élan vital — naïf 東京", "Élan vital naïf 東京"),
    ("Nothing", "Rien", ""),
]
SOURCES, TARGETS, OUTPUTS = (list(column) for column in zip(*PAIRS))
SQL = {"one": "SELECT 1", "two": "SELECT 3"}
COUNTS = {"Bonjour": 3, "La": 900, "page": 8, "objets": 1, "Supprimer": 7, "東京": 0, "SELECT": 2}
NAMES = ["bleu", "chrf", "nist", "exact_match", "placeholder_fidelity"]


class _Model(tf.Module):
    """Answers from a table, with the outputs of an exported model around `text`."""

    def __init__(self):
        super().__init__()
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer([*SOURCES, *SQL], [*OUTPUTS, *SQL.values()]),
            default_value="?",
        )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
    def serve(self, source):
        text = self.table.lookup(source)
        tokens = tf.strings.split(text).to_tensor()
        return {
            "text": text,
            "score": tf.zeros(tf.shape(source)),
            "tokens": tokens,
            "copied_from": tf.fill(tf.shape(tokens), -1),
            "copy_probability": tf.zeros(tf.shape(tokens)),
            "source_tokens": tf.strings.split(source).to_tensor(),
        }

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name=name) for name in ("source", "target")
        ],
        autograph=False,
    )
    def score(self, source, target):
        """Half a nat for each byte of the source and a third for each byte of the target, a token
        for each of the target's.
        """
        lengths = [tf.strings.length(text) for text in (source, target)]
        nll = 0.5 * tf.cast(lengths[0], tf.float32) + tf.cast(lengths[1], tf.float32) / 3
        return {"log_probability": -nll, "token_count": lengths[1]}


def scores_of(pairs):
    """What `_Model.score` says, in Python."""
    sizes = [[len(text.encode()) for text in pair[:2]] for pair in pairs]
    return [(-source / 2 - target / 3, target) for source, target in sizes]


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory):
    directory = str(tmp_path_factory.mktemp("model"))
    model = _Model()
    tf.saved_model.save(
        model, directory, signatures={"serving_default": model.serve, "score": model.score}
    )
    training_counts.write(directory, COUNTS)
    return directory


def _write(directory, pairs, shards):
    directory.mkdir(parents=True)
    for shard in range(shards):
        with tf.io.TFRecordWriter(str(directory / f"data-{shard:05d}-of-{shards:05d}")) as writer:
            for source, target, _ in pairs[shard::shards]:
                feature = {
                    key: tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
                    for key, text in (("source", source), ("target", target))
                }
                writer.write(
                    tf.train.Example(
                        features=tf.train.Features(feature=feature)
                    ).SerializeToString()
                )
    return str(directory / "data-*")


def _evaluate(model_directory, tmp_path, pairs=PAIRS, shards=1, glossary="", **evaluation_keys):
    tree = {
        "name": "test",
        "evaluation": evaluation_keys,
        "decoding": {"glossary": glossary},
    }
    # The Evaluator stores its config as JSON and fills in defaults: the test goes the same way.
    config = eval_config.build_eval_config(recipe_from_dict(tree))
    from google.protobuf import json_format

    config = json_format.Parse(json_format.MessageToJson(config), config_pb2.EvalConfig())
    config = tfma.utils.update_eval_config_with_defaults(
        config, has_baseline=False, rubber_stamp=True
    )
    output = str(tmp_path / "evaluation")
    model = tfma.default_eval_shared_model(model_directory, eval_config=config)
    tfma.run_model_analysis(
        eval_shared_model=model,
        eval_config=config,
        data_location=_write(tmp_path / "data", pairs, shards),
        output_path=output,
        extractors=extractors.custom_extractors(model, config),
    )
    return output


@pytest.mark.parametrize("shards", [1, 3, 7])
def test_values_equal_scoring_in_any_number_of_shards(model_directory, tmp_path, shards):
    output = _evaluate(model_directory, tmp_path, shards=shards, metrics=NAMES)
    values = gate.read_metrics(output)
    expected = scoring.score(
        NAMES, ScoredTexts(OUTPUTS, TARGETS, SOURCES), ScoringOptions(bootstrap_samples=0)
    )
    for name in NAMES:
        assert values[name] == expected[name].value, name
    assert values["placeholder_fidelity"] == pytest.approx(2 / 3)
    assert gate.read_blessing(output)[0]


def test_all_metrics_equal_scoring(model_directory, tmp_path):
    """Execution accuracy among them:
    texts that are no SQL fail, and so do references that are none.
    """
    import sqlite3

    database = tmp_path / "x.sqlite"
    sqlite3.connect(database).execute("CREATE TABLE x (y)").connection.close()
    glossary = tmp_path / "terms.csv"
    glossary.write_text("press,appuyez\n")
    names = sorted(tfma_metrics.CLASSES)
    pairs = [*PAIRS, ("one", "SELECT 1.0", "?"), ("two", "SELECT 2 ;", "?")]
    pairs.append(("Press <b>OK</b>", "Appuyez sur <b>OK</b>", "?"))
    output = _evaluate(
        model_directory,
        tmp_path,
        pairs=pairs,
        glossary=str(glossary),
        metrics=names,
        database=str(database),
    )
    values = gate.read_metrics(output)
    outputs = [*OUTPUTS, "SELECT 1", "SELECT 3", "?"]
    targets, sources = [pair[1] for pair in pairs], [pair[0] for pair in pairs]
    options = ScoringOptions(
        bootstrap_samples=0, database=database, language="fr", glossary=str(glossary)
    )
    texts = ScoredTexts(outputs, targets, sources, COUNTS, scores_of(pairs))
    expected = scoring.score(names, texts, options)
    assert expected["execution_accuracy"].value == 0.5
    for name in names:
        # Probabilities are float32.
        tolerance = 1e-6 if "perplexity" in name else 0
        assert values.pop(name) == pytest.approx(expected[name].value, abs=0, rel=tolerance), name
    # What is left is the values by bucket, each a float of its own.
    for name, detail, category, value in (
        ("bleu_by_length", "by_length", "words", "bleu"),
        ("word_f1_by_length", "f1_by_length", "words", "f1"),
        ("word_f1_by_frequency", "by_frequency", "seen", "f1"),
    ):
        for part in expected[name].details[detail]:
            assert values.pop(f"{name}/{part[category]}") == part[value]
    assert not values


def test_bleu_equals_sacrebleu(model_directory, tmp_path):
    import sacrebleu

    values = gate.read_metrics(_evaluate(model_directory, tmp_path, shards=2))
    assert values["bleu"] == pytest.approx(
        sacrebleu.corpus_bleu(OUTPUTS, [TARGETS]).score, abs=1e-9
    )
    assert values["chrf"] == pytest.approx(
        sacrebleu.corpus_chrf(OUTPUTS, [TARGETS]).score, abs=1e-9
    )


@pytest.mark.parametrize("bound, blessed", [(1e9, True), (2.0, False)])
def test_perplexity_is_of_the_references_and_gates(model_directory, tmp_path, bound, blessed):
    """exp(nll / tokens), and exp(nll / words) where a word is a word whatever the model's tokens
    are; over three shards.
    """
    keys = {"metrics": ["perplexity", "word_perplexity"], "thresholds": {"perplexity": bound}}
    output = _evaluate(model_directory, tmp_path, shards=3, **keys)
    nll = -sum(log_probability for log_probability, _ in scores_of(PAIRS))
    # Words, punctuation and joiners, and the end of each text.
    words = sum(tokenization.count_tokens(target) + 1 for target in TARGETS)
    values = gate.read_metrics(output)
    assert values["perplexity"] == pytest.approx(
        math.exp(nll / sum(tokens for _, tokens in scores_of(PAIRS))), rel=1e-6
    )
    assert values["word_perplexity"] == pytest.approx(math.exp(nll / words), rel=1e-6)
    found, reason = gate.read_blessing(output)
    assert (
        found is blessed and ("Perplexity is 2.223, above the 2 demanded" in reason) is not blessed
    ), reason


@pytest.mark.parametrize(
    "keys, blessed, words",
    [
        ({"bleu": 20.0, "placeholder_fidelity": 0.5}, True, "is met"),
        ({"bleu": 99.0}, False, "BLEU is"),
        (
            {"placeholder_fidelity": 0.9},
            False,
            "Placeholder fidelity is 0.6667, below the 0.9 demanded",
        ),
        ({"repetition_rate": 0.0, "exact_match": 0.1}, True, "is met"),
        ({"ter": 10.0}, False, "above the 10 demanded"),
    ],
)
def test_thresholds_bless(model_directory, tmp_path, keys, blessed, words):
    metrics = list(dict.fromkeys(["bleu", *keys]))
    output = _evaluate(model_directory, tmp_path, thresholds=keys, metrics=metrics)
    found, reason = gate.read_blessing(output)
    assert found is blessed
    assert words in reason


def test_undefined_fidelity_does_not_pass_for_a_demand(model_directory, tmp_path):
    plain = [pair for pair in PAIRS if "%" not in pair[0]]
    output = _evaluate(
        model_directory, tmp_path, pairs=plain, thresholds={"placeholder_fidelity": 0.5}
    )
    assert gate.read_metrics(output)["placeholder_fidelity"] is None
    blessed, reason = gate.read_blessing(output)
    assert not blessed
    assert "undefined" in reason


def test_undefined_fidelity_does_not_block_where_nothing_is_demanded(model_directory, tmp_path):
    plain = [pair for pair in PAIRS if "%" not in pair[0]]
    assert gate.read_blessing(_evaluate(model_directory, tmp_path, pairs=plain))[0]


def test_config_names_the_target_language_and_how_texts_are_cut():
    recipe = recipe_from_dict({"name": "test", "data": {"target_language": "ja"}})
    metrics = eval_config.build_eval_config(recipe).metrics_specs[0].metrics
    assert json.loads(metrics[0].config) == {
        "language": "ja",
        "tokenization": "text",
        "database": None,
    }
    kept = {"placeholders": ["c"], "placeholder_patterns": ["x+"]}
    recipe = recipe_from_dict({"name": "test", "data": kept})
    metrics = eval_config.build_eval_config(recipe).metrics_specs[0].metrics
    assert kept.items() <= json.loads(metrics[0].config).items()


def bounds(metrics, **thresholds):
    tree = {
        "name": "test",
        "evaluation": {"metrics": metrics, "thresholds": thresholds, "database": "/x.sqlite"},
    }
    found = eval_config.build_eval_config(recipe_from_dict(tree)).metrics_specs[0].metrics
    sides = {}
    for metric in found:
        value = metric.threshold.value_threshold
        sides[metric.class_name] = (
            value.lower_bound.value if value.HasField("lower_bound") else None,
            value.upper_bound.value if value.HasField("upper_bound") else None,
        )
    return sides


def test_the_evaluator_measures_the_recipes_metrics_and_always_has_a_threshold():
    assert bounds(["ter", "unseen_copies", "chrf"]) == {
        "CorpusTer": (None, None),
        "UnseenCopies": (None, None),
        "CorpusChrf": (0.0, None),
    }
    assert bounds(["placeholder_fidelity"]) == {
        "PlaceholderFidelity": (None, None),
        "CorpusExactMatch": (0.0, None),
    }
    assert bounds(["placeholder_fidelity", "bleu"], placeholder_fidelity=0.0, bleu=3) == {
        "PlaceholderFidelity": (None, None),
        "CorpusBleu": (3.0, None),
    }
    assert bounds(["execution_accuracy", "ter"], execution_accuracy=0.5, ter=80) == {
        "ExecutionAccuracy": (0.5, None),
        "CorpusTer": (None, 80.0),
    }
    assert set(tfma_metrics.CLASSES) == set(METRICS)


def test_no_class_has_the_name_of_one_of_tfma():
    """A worker that has not imported the module looks a name up among TFMA's classes first."""
    names = {made.__name__ for made in tfma_metrics.CLASSES.values()}
    assert not [name for name in names if hasattr(tfma.metrics, name)]


@pytest.mark.parametrize("name", ["bleu", "nist"])
def test_combiner_travels_and_merges(name):
    import dill

    key = tfma.metrics.MetricKey(name=name)
    combiner = SumCombiner(CombinedMetric(name, {}, [key]))
    combiner.create_accumulator()
    combiner = dill.loads(dill.dumps(combiner))
    parts = []
    for _, target, output in PAIRS:
        inputs = tfma.metrics.StandardMetricInputs(
            labels=[target.encode()], predictions=[[output.encode()]], example_weights=None
        )
        parts.append(combiner.add_input(combiner.create_accumulator(), inputs))
    value = combiner.extract_output(combiner.merge_accumulators(dill.loads(dill.dumps(parts))))[key]
    assert value == pytest.approx(
        scoring.score(name, ScoredTexts(OUTPUTS, TARGETS), ScoringOptions(bootstrap_samples=0))[
            name
        ].value,
        abs=1e-9,
    )
    assert isinstance(value, float)
    fidelity = SumCombiner(CombinedMetric("placeholder_fidelity", {}, [key]))
    assert math.isnan(fidelity.extract_output(fidelity.create_accumulator())[key])


def test_an_example_without_one_text_is_refused():
    with pytest.raises(ValueError, match="must be one string"):
        one_text(None, "label")
    with pytest.raises(ValueError, match="must be one string"):
        one_text([b"a", b"b"], "label")


def test_eval_configs_of_old_find_their_classes():
    names = {name: made.__name__ for name, made in tfma_metrics.CLASSES.items()}
    assert names["bleu"] == "CorpusBleu" and names["perplexity"] == "TokenPerplexity"
    assert names["rougeL_recall"] == "RougeLRecall"
    assert names["word_f1_by_length"] == "WordF1ByLength"
    for name in names.values():
        assert getattr(tfma_metrics, name).__module__ == tfma_metrics.__name__
