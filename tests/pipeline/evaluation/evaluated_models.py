"""Models that answer from a table, and their evaluation as TFX's Evaluator does it."""

import pathlib

import pytest

tf = pytest.importorskip("tensorflow")
tfma = pytest.importorskip("tensorflow_model_analysis")
config_pb2 = pytest.importorskip("tensorflow_model_analysis.proto.config_pb2")

from google.protobuf import json_format

from pipeline.evaluation import eval_config, extractors
from pipeline.features import training_counts
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


def evaluate(folder, settings, candidate, last_blessed=None):
    """Evaluates as TFX's Evaluator does; returns the recipe and the folder of the evaluation."""
    tree = {"name": "test", "data": {"slice_features": ["domain"]}, "evaluation": settings}
    recipe = recipe_from_dict(tree)
    config = json_format.Parse(
        json_format.MessageToJson(eval_config.build_eval_config(recipe)), config_pb2.EvalConfig()
    )
    config = tfma.utils.update_eval_config_with_defaults(
        config, has_baseline=last_blessed is not None, rubber_stamp=True
    )
    paths = [candidate, *([last_blessed] if last_blessed else [])]
    models = [
        extractors.custom_eval_shared_model(path, model_name=spec.name, eval_config=config)
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
