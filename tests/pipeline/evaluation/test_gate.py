"""What stops a push:
thresholds on the whole test split and on slices, absolute and against the last blessed model.
"""

import json
import math
import pathlib

import pytest

tf = pytest.importorskip("tensorflow")
tfma = pytest.importorskip("tensorflow_model_analysis")

from google.protobuf import json_format  # noqa: E402

from pipeline.evaluation import extractors, gate, slicing
from pipeline.features import training_counts
from pipeline.metrics import scoring
from pipeline.recipes import sections
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import recipe_from_dict

# Two domains, of which one has longer sentences; the words of both are known but for the
# placeholders.
LAW = [
    (
        f"The court of appeal heard case {n} in full today",
        f"La cour d'appel a entendu le cas {n} hier",
    )
    for n in range(6)
]
MENU = [(f"Open %(item_{n})s", f"Ouvrir %(item_{n})s") for n in range(12)]
PAIRS = [(*pair, "law") for pair in LAW] + [(*pair, "menu") for pair in MENU]
GOOD = {source: target for source, target, _ in PAIRS}
# Damaged on one domain alone: the other two thirds of the test split hide it from a lax threshold
# on the whole.
DAMAGED = {**GOOD, **{source: "La cour" for source, _ in LAW}}
VOCABULARY = [
    "The",
    "court",
    "of",
    "appeal",
    "heard",
    "case",
    "in",
    "full",
    "today",
    "Open",
    *map(str, range(6)),
]

# How often training saw words, on the target side: `full` stood in sources alone.
COUNTS = {"La": 9, "cour": 3, "a": 100, "Ouvrir": 7, "full": 0}


def save_model(directory, answers):
    """Exports a model that answers from a table, with what an exported model tells of its words."""

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            initializer = tf.lookup.KeyValueTensorInitializer(list(answers), list(answers.values()))
            self.table = tf.lookup.StaticHashTable(initializer, default_value="?")

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="source")])
        def serve(self, source):
            return {"text": self.table.lookup(source), "score": tf.zeros(tf.shape(source))}

        @tf.function(
            input_signature=[
                tf.TensorSpec([None], tf.string, name=name) for name in ("source", "target")
            ]
        )
        def score(self, source, target):
            """One token each, and a nat more where it would answer something else."""
            known = tf.cast(self.table.lookup(source) == target, tf.float32)
            return {
                "log_probability": known - 2.0,
                "token_count": tf.ones(tf.shape(source), tf.int32),
            }

    model = Model()
    tf.saved_model.save(
        model, str(directory), signatures={"serving_default": model.serve, "score": model.score}
    )
    assets = pathlib.Path(directory, "assets")
    assets.mkdir(exist_ok=True)
    (assets / "source_vocabulary.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    training_counts.write(str(directory), COUNTS)
    return str(directory)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {
        name: save_model(folder / name, answers)
        for name, answers in (("good", GOOD), ("damaged", DAMAGED))
    }


def evaluate(folder, settings, candidate, last_blessed=None):
    """Does what TFX's Evaluator does with a recipe's config; returns the folder of the evaluation."""
    tree = {"name": "test", "data": {"slice_features": ["domain"]}, "evaluation": settings}
    recipe = recipe_from_dict(tree)
    config = json_format.Parse(
        json_format.MessageToJson(gate.build_eval_config(recipe)), tfma.EvalConfig()
    )
    config = tfma.utils.update_eval_config_with_defaults(
        config, has_baseline=last_blessed is not None, rubber_stamp=True
    )
    paths = [candidate, *([last_blessed] if last_blessed else [])]
    models = [
        tfma.default_eval_shared_model(path, model_name=spec.name, eval_config=config)
        for path, spec in zip(paths, config.model_specs, strict=True)
    ]
    examples = folder / "examples"
    with tf.io.TFRecordWriter(str(examples)) as writer:
        for source, target, domain in PAIRS:
            feature = {
                key: tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
                for key, text in (("source", source), ("target", target), ("domain", domain))
            }
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
            )
    models = models[0] if len(models) == 1 else models
    tfma.run_model_analysis(
        eval_shared_model=models,
        eval_config=config,
        data_location=str(examples),
        output_path=str(folder / "evaluation"),
        extractors=extractors.custom_extractors(models, config),
    )
    return recipe, str(folder / "evaluation")


def test_a_first_model_is_judged_by_absolute_thresholds_alone(models, tmp_path):
    recipe, output = evaluate(tmp_path, {"change_thresholds": {"bleu": 5.0}}, models["damaged"])
    blessed, reason = gate.read_blessing(output, recipe)
    assert blessed
    assert "no model was blessed before" in reason
    assert gate.read_slices(output) == []


def test_a_change_from_the_last_blessed_model_is_demanded(models, tmp_path):
    settings = {"metrics": ["bleu", "ter"], "change_thresholds": {"bleu": -0.5, "ter": 0.5}}
    recipe, output = evaluate(tmp_path, settings, models["damaged"], last_blessed=models["good"])
    blessed, reason = gate.read_blessing(output, recipe)
    assert not blessed
    outputs, targets = [DAMAGED[source] for source, *_ in PAIRS], [target for _, target, _ in PAIRS]
    expected = scoring.score(["bleu", "ter"], outputs, targets, bootstrap_samples=0)
    assert gate.read_metrics(output) == {
        name: pytest.approx(expected[name].value) for name in ("bleu", "ter")
    }
    assert (
        f"BLEU is {100 - expected['bleu'].value:.4g} below that of the last blessed model" in reason
    )
    assert "a change of at least -0.5 is demanded" in reason
    assert f"TER is {expected['ter'].value:.4g} above that of the last" in reason
    assert "a change of at most +0.5" in reason


def test_perplexity_is_compared_with_the_last_blessed_model(models, tmp_path):
    """Each model by its own probabilities: a third of the texts costs the damaged one a nat more."""
    settings = {
        "metrics": ["perplexity"],
        "change_thresholds": {"perplexity": 0.5},
        "slices": ["domain"],
    }
    recipe, output = evaluate(tmp_path, settings, models["damaged"], last_blessed=models["good"])
    blessed, reason = gate.read_blessing(output, recipe)
    assert not blessed
    assert gate.read_metrics(output)["perplexity"] == pytest.approx(math.exp(4 / 3))
    assert (
        f"Perplexity is {math.exp(4 / 3) - math.e:.4g} above that of the last blessed model"
        in reason
    )
    law = gate.read_slices(output)[0]
    assert law["metrics"]["perplexity"] == pytest.approx(math.e**2)
    assert law["last_blessed"]["perplexity"] == pytest.approx(math.e)


def test_metrics_of_rare_and_unseen_words_read_the_training_counts(models, tmp_path):
    """As `scoring` with the same counts, on the whole split and on a slice;
    the gate takes them too.
    """
    names = ["unseen_copies", "rare_word_recall", "word_f1_by_frequency"]
    settings = {
        "metrics": names,
        "slices": ["domain"],
        "slice_thresholds": {"rare_word_recall": 0.9},
    }
    recipe, output = evaluate(tmp_path, settings, models["damaged"], last_blessed=models["good"])
    columns = list(zip(*((DAMAGED[source], target, source) for source, target, _ in PAIRS)))
    for part, found in (
        (slice(None), gate.read_metrics(output)),
        (slice(6), gate.read_slices(output)[0]["metrics"]),
    ):
        outputs, targets, sources = (list(column[part]) for column in columns)
        expected = scoring.score(names, outputs, targets, sources, COUNTS, bootstrap_samples=0)
        assert {name: found[name] for name in names} == {
            name: pytest.approx(expected[name].value) for name in names
        }
        assert all(
            0 < result.value < 1 for name, result in expected.items() if name != "unseen_copies"
        )
    blessed, reason = gate.read_blessing(output, recipe)
    assert not blessed and "on the slice domain = law, Rare-word recall is" in reason


def test_an_equal_and_a_better_model_pass(models, tmp_path):
    settings = {
        "change_thresholds": {"bleu": 0.0},
        "slices": ["domain"],
        "slice_change_thresholds": {"bleu": 0.0},
    }
    (tmp_path / "better").mkdir()
    for folder, last in ((tmp_path, "good"), (tmp_path / "better", "damaged")):
        recipe, output = evaluate(folder, settings, models["good"], last_blessed=models[last])
        blessed, reason = gate.read_blessing(output, recipe)
        assert blessed, reason
        assert "every change from the last blessed model" in reason


def test_a_regression_on_one_slice_alone_blocks(models, tmp_path):
    settings = {
        "metrics": ["exact_match", "placeholder_fidelity"],
        "thresholds": {"exact_match": 0.6, "placeholder_fidelity": 0.9},
        "change_thresholds": {"exact_match": -0.5},  # the whole split loses but a third
        "slices": ["domain", "source_length", "unknown_words"],
        "slice_thresholds": {"placeholder_fidelity": 0.9},
        "slice_change_thresholds": {"exact_match": -0.1},
    }
    recipe, output = evaluate(tmp_path, settings, models["damaged"], last_blessed=models["good"])
    blessed, reason = gate.read_blessing(output, recipe)
    assert not blessed
    assert reason == (
        "Not pushed: "
        + "; ".join(
            f"on the slice {name}, Exact match is 1 below that of the last blessed model, and a "
            "change of at least -0.1 is demanded"
            for name in ("domain = law", "source_length = 10-19", "unknown_words = no")
        )
        + "."
    )
    slices = {one["slice"]: one for one in gate.read_slices(output)}
    assert list(slices) == [
        *("domain = law", "domain = menu", "source_length = 0-9", "source_length = 10-19"),
        *("unknown_words = no", "unknown_words = yes"),
    ]
    # The domain of law has no placeholder: nothing can be lost there, and that blocks nothing.
    assert slices["domain = law"] == {
        "slice": "domain = law",
        "n": 6,
        "metrics": {"exact_match": 0.0, "placeholder_fidelity": None},
        "last_blessed": {"exact_match": 1.0, "placeholder_fidelity": None},
    }
    assert slices["unknown_words = yes"]["n"] == 12
    assert gate.read_metrics(output)["exact_match"] == pytest.approx(2 / 3)


def test_a_slice_of_few_pairs_and_a_lax_threshold_block_nothing(models, tmp_path):
    settings = {
        "metrics": ["exact_match"],
        "slices": ["domain"],
        "slice_thresholds": {"exact_match": 0.5},
        "min_slice_size": 7,
    }
    _, output = evaluate(tmp_path, settings, models["damaged"])
    assert gate.read_blessing(output)[0]
    # What it found is told all the same.
    law = gate.read_slices(output)[0]
    assert (law["metrics"], law["last_blessed"]) == ({"exact_match": 0.0}, {})


def test_an_absolute_threshold_on_slices_blocks(models, tmp_path):
    settings = {
        "metrics": ["exact_match"],
        "slices": ["domain"],
        "slice_thresholds": {"exact_match": 0.5},
    }
    _, output = evaluate(tmp_path, settings, models["damaged"])
    blessed, reason = gate.read_blessing(output)
    assert not blessed
    assert (
        reason == "Not pushed: on the slice domain = law, Exact match is 0, below the 0.5 demanded."
    )


def test_the_last_other_blessed_model_is_compared_with():
    from tfx.types import standard_artifacts

    from components.last_blessed_model.strategy import LastOtherBlessedModelStrategy

    models = [standard_artifacts.Model() for _ in range(4)]
    blessings = [standard_artifacts.ModelBlessing() for _ in range(5)]
    for number, artifact in enumerate([*models, *blessings]):
        artifact.id = number
    # The model 1 was refused, and 0 was blessed again after 2: one went back to it.
    for blessing, (judged, blessed) in zip(blessings, ((0, 1), (1, 0), (2, 1), (0, 1), (3, 0))):
        blessing.set_int_custom_property("current_model_id", judged)
        blessing.set_int_custom_property("blessed", blessed)

    def resolved(candidate, blessings):
        inputs = {"candidate": [models[candidate]], "model": models, "model_blessing": blessings}
        found = LastOtherBlessedModelStrategy().resolve_artifacts(None, inputs)
        assert found["candidate"] == [models[candidate]]
        return [[artifact.id for artifact in found[key]] for key in ("model", "model_blessing")]

    assert resolved(3, blessings) == [[0], [7]]
    assert resolved(0, blessings) == [[2], [6]]
    assert resolved(2, blessings) == [[0], [7]]
    # Repeated before any other was blessed, and the very first run.
    assert resolved(0, blessings[:2]) == [[], []] == resolved(0, [])


def save_language_model(directory, probability):
    """Exports a language model to which every word is equally likely."""

    class Model(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
        def score(self, text):
            tokens = tf.strings.split(text).to_tensor()
            counts = tf.strings.split(text).row_lengths()
            log_probability = tf.fill(tf.shape(tokens), tf.math.log(probability))
            return {
                "log_probability": log_probability,
                "tokens": tokens,
                "token_count": tf.cast(counts, tf.int32),
            }

    model = Model()
    tf.saved_model.save(model, str(directory), signatures={"score": model.score})
    return str(directory)


def test_a_language_model_is_compared_by_its_perplexity(tmp_path):
    from pipeline.evaluation import perplexity

    data = {"train_files": ["t"], "eval_files": ["e"], "tokenization": "whitespace"}
    settings = {
        "task": "language_model",
        "data": data,
        "language_model": {"max_perplexity_change": 1.5},
    }
    recipe = recipe_from_dict({"name": "x", **settings, "model": {"head": "softmax"}})
    paths = [
        save_language_model(tmp_path / name, p) for name, p in (("worse", 0.2), ("blessed", 0.25))
    ]
    config = tfma.utils.update_eval_config_with_defaults(
        perplexity.build_eval_config(recipe), has_baseline=True, rubber_stamp=True
    )
    with tf.io.TFRecordWriter(str(tmp_path / "examples")) as writer:
        for text, context in (("a b c", 0), ("c d", 1)):
            feature = {
                "text": tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()])),
                "context": tf.train.Feature(int64_list=tf.train.Int64List(value=[context])),
            }
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
            )
    for change, blessed in ((1.5, True), (0.5, False)):
        config.metrics_specs[0].metrics[0].threshold.change_threshold.absolute.value = change
        output = str(tmp_path / f"evaluation {change}")
        models = [
            tfma.default_eval_shared_model(path, model_name=spec.name, eval_config=config)
            for path, spec in zip(paths, config.model_specs)
        ]
        tfma.run_model_analysis(
            eval_shared_model=models,
            eval_config=config,
            data_location=str(tmp_path / "examples"),
            output_path=output,
        )
        found, reason = gate.read_blessing(output, recipe)
        assert found is blessed
        assert gate.read_metrics(output) == {"passage_perplexity": pytest.approx(5.0)}
    assert (
        "Perplexity of passages is 1 above that of the last blessed model, and a change of at "
        "most +0.5 is demanded" in reason
    )


def test_a_source_is_sliced_by_its_length_and_words(tmp_path):
    slicer = slicing.SourceSlicer.of_model(save_model(tmp_path / "model", GOOD))
    assert slicer.features("The court, of appeal") == {
        "source_length": "0-9",
        "unknown_words": "no",
    }
    assert slicer.features("Open %(x)s") == {"source_length": "0-9", "unknown_words": "yes"}
    assert slicer.features("The " * 23)["source_length"] == "20-29"
    recipe = recipe_from_dict(
        {"name": "x", "data": {"tokenization": "whitespace", "lowercase": True}}
    )
    extra = tmp_path / "model" / "assets.extra"
    (extra / "verbatim.json").write_text(json.dumps({"recipe": recipe.to_dict()}), encoding="utf-8")
    slicer = slicing.SourceSlicer.of_model(str(tmp_path / "model"))
    assert (
        slicer.features("OF the")["unknown_words"] == "yes"
    )  # `the` is not in the vocabulary, `The` is
    assert slicer.features("OF appeal")["unknown_words"] == "no"


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"slices": ["domian"]}, "unknown slice 'domian'; did you mean 'domain'"),
        (
            {"slice_thresholds": {"bleu": 3}},
            "'evaluation.slice_thresholds.bleu' needs 'evaluation.slices'",
        ),
        ({"change_thresholds": {"ter": 3}}, "'evaluation.change_thresholds.ter' needs 'ter' among"),
        ({"change_thresholds": {"tre": 3}}, "unknown key 'evaluation.change_thresholds.tre'"),
        (
            {"change_thresholds": {"bleu": "x"}},
            "'evaluation.change_thresholds.bleu' must be a number",
        ),
        ({"min_slice_size": 0}, "'evaluation.min_slice_size' must be at least 1"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(RecipeError, match=words):
        recipe_from_dict(
            {"name": "x", "data": {"slice_features": ["domain"]}, "evaluation": settings}
        )


def test_a_column_to_slice_by_has_a_name_of_its_own():
    for name in ("source_length", "target", "a b"):
        with pytest.raises(RecipeError, match="slice_features' cannot name"):
            recipe_from_dict({"name": "x", "data": {"slice_features": [name]}})


def test_every_threshold_has_its_change():
    names = [
        set(vars(section()))
        for section in (sections.ThresholdsConfig, sections.ChangeThresholdsConfig)
    ]
    assert names[0] == names[1]
