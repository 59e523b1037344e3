"""A language model in the pipeline:
the stream put together again, a tiny training, and the perplexity that TFMA sums.
"""

import dataclasses
import json
import math
import random
import typing

import numpy as np
import pytest

from pipeline.common import progress
from pipeline.recipes import sections
from pipeline.recipes.fields import RecipeError
from pipeline.recipes.recipe import Recipe
from tests.pipeline.training.tiny_training import summaries

V = 20


def recipe(**settings):
    data = sections.DataConfig(train_files=("t",), eval_files=("e",), tokenization="whitespace")
    model = sections.ModelConfig(
        head="pointer_sentinel", embedding_size=8, hidden_size=8, dropout=0.0
    )
    training = sections.TrainingConfig(epochs=2, learning_rate=0.02)
    options = {"window": 5, "batch_size": 3, "stride": 5, "recurrent_layers": 1, **settings}
    return Recipe(
        name="tiny",
        task="language_model",
        data=data,
        model=model,
        training=training,
        language_model=sections.LanguageModelConfig(**options),
    )


def write_passages(path, stream, new=7, context=0, seed=0):
    """Writes a split as Transform does: passages in any order, with their repeated context."""
    import tensorflow as tf

    passages = []
    for order, begin in enumerate(range(0, len(stream), new)):
        first = max(0, begin - context)
        passages.append((order, begin - first, stream[first : begin + new]))
    random.Random(seed).shuffle(passages)
    with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
        for order, repeated, ids in passages:
            values = {"ids": ids, "context": [repeated], "order": [order]}
            features = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=[int(v) for v in value]))
                for name, value in values.items()
            }
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
            )
    return [str(path)]


@pytest.mark.parametrize("context", [0, 3])
def test_the_stream_is_put_together_again(tmp_path, context, monkeypatch):
    from pipeline.training import stored_streams, transformed_files

    monkeypatch.setattr(transformed_files, "READ_AT_ONCE", 4)
    monkeypatch.setattr(stored_streams, "_AT_ONCE", 2)
    stream = np.random.default_rng(0).integers(3, V, size=60)
    files = write_passages(tmp_path / "passages.gz", stream, context=context)
    read = stored_streams.read_stream(files, str(tmp_path))
    assert read.dtype == "int32"
    np.testing.assert_array_equal(read, stream)
    assert [path.name for path in tmp_path.iterdir()] == ["passages.gz"]
    empty = write_passages(tmp_path / "empty.gz", [])
    assert stored_streams.read_stream(empty).tolist() == []


@dataclasses.dataclass(frozen=True)
class ReadKeys(sections.TrainingConfig):
    """A section that notes in `names` which of its keys are read."""

    names: typing.ClassVar[set[str]] = set()

    def __getattribute__(self, name):
        if name in sections.TrainingConfig.__dataclass_fields__:
            ReadKeys.names.add(name)
        return super().__getattribute__(name)


def test_every_training_key_is_read_or_refused(tmp_path, monkeypatch):
    """What the trainer never reads, a recipe of a language model cannot set."""
    from pipeline.training import language_model_trainer
    from pipeline.training.language_model_inputs import LanguageModelInputs

    made = recipe()
    watched = dataclasses.replace(made, training=ReadKeys(epochs=1))
    # It has every key, for the digest and for the checks.
    monkeypatch.setattr(Recipe, "to_dict", lambda self: {})
    ReadKeys.names.clear()
    files = write_passages(tmp_path / "passages.gz", np.arange(24) % 9 + 9)
    language_model_trainer.train(watched, LanguageModelInputs(files, files, V))
    # What the run reads before its trainer begins.
    read = ReadKeys.names | {"initialize_from"}
    assert "learning_rate" in read
    refused = set()
    for field in dataclasses.fields(sections.TrainingConfig):
        training = dataclasses.replace(made.training, **{field.name: another(field)})
        try:
            dataclasses.replace(made, training=training)
        except RecipeError as error:
            assert f"'training.{field.name}' must be" in str(error)
            refused.add(field.name)
    assert refused == {field.name for field in dataclasses.fields(made.training)} - read


def another(field):
    """Another value of a field than its default, of the same type."""
    if "choices" in field.metadata:
        return next(value for value in field.metadata["choices"] if value != field.default)
    if isinstance(field.default, bool):
        return not field.default
    if isinstance(field.default, (int, float)):
        return field.default + 1 if field.default >= 1 else field.default / 2 + 0.25
    return "other" if isinstance(field.default, str) else (1,)


@pytest.mark.slow
def test_training_tells_the_facts(tmp_path, caplog):
    from keras_models import language_modeling
    from pipeline.training import language_model_trainer
    from pipeline.training.language_model_inputs import LanguageModelInputs

    caplog.set_level(progress.STEP, logger="verbatim.progress")

    stream = np.tile(np.random.default_rng(0).integers(9, V, size=6), 20)
    train = write_passages(tmp_path / "train.gz", stream)
    held = write_passages(tmp_path / "eval.gz", stream[:40], context=3)
    inputs = LanguageModelInputs(train, held, V, log_directory=str(tmp_path / "logs"))
    model, facts = language_model_trainer.train(recipe(), inputs)
    assert facts["head"] == "pointer_sentinel" and facts["words"] == {"train": 120, "eval": 40}
    assert [point["epoch"] for point in facts["curve"]] == [1, 2]
    assert facts["curve"][1]["eval_loss"] < facts["curve"][0]["eval_loss"]
    assert facts["validation_perplexity"] == pytest.approx(
        language_modeling.perplexity(model, stream[:40]), rel=1e-4
    )
    json.loads(json.dumps(facts), parse_constant=pytest.fail)
    assert caplog.text.count("validation perplexity") == 2
    last = [record.step for record in caplog.records if hasattr(record, "step")][-1]
    assert (last.done, last.total, last.finished) == (facts["updates"], facts["updates"], True)
    curves, pictures = summaries(tmp_path / "logs")
    assert curves == {"loss", "validation_perplexity"}
    assert len(pictures) == 4 and all(
        [step for step, _ in steps] == [1, 2] for steps in pictures.values()
    )


def test_a_pointer_map_is_the_oracles():
    from pipeline.training import heat_maps, language_model_trainer
    from tests.keras_models import sentinel_oracle
    from tests.keras_models.backends import randomize
    from tests.keras_models.models.test_language_model import oracle_weights

    model = language_model_trainer.build_model(recipe(), V)
    randomize(model, 3, 1.0)
    ids = np.random.default_rng(1).integers(3, 9, size=13)
    words = [f"w{number}" for number in ids]
    # Two windows of 5 before the four words are all that there is.
    found = heat_maps.pointer_map(model, ids, words, end=12, rows=4, most_columns=12)
    assert found["tokens"] == words[9:] and found["source_tokens"] == words[:12]
    p, pointed = sentinel_oracle.language_model(
        ids[:12], ids[:12], oracle_weights(model), 5, 0.025, 0.25, V
    )
    for row, step in enumerate(range(8, 12)):
        expected = [pointed[step].get(place, 0.0) for place in range(12)]
        np.testing.assert_allclose(found["attention"][row], expected, atol=2e-4)
        assert found["copy_probability"][row] == pytest.approx(sum(expected), abs=2e-4)
        target = ids[9 + row]
        copied = {
            place: weight
            for place, weight in enumerate(expected)
            if ids[place] == target and weight
        }
        most = max(copied, key=copied.get) if 2 * sum(copied.values()) >= p[step][target] else -1
        assert found["copied_from"][row] == most
    few = heat_maps.pointer_map(model, ids, words, end=12, rows=4, most_columns=3)
    assert len(few["source_tokens"]) == 3 and np.shape(few["attention"]) == (4, 3)


def test_the_recipe_reaches_the_model_and_the_walk():
    from pipeline.training import language_model_trainer

    made = recipe(zoneout_cell=0.4, optimizer="sgd", carry=False, stride=2, patience=7)
    built = language_model_trainer.build_model(made, V).get_config()
    assert (
        built["vocabulary_size"],
        built["window"],
        built["hidden_size"],
        built["zoneout_cell"],
    ) == (V, 5, 8, 0.4)
    assert (built["head"], built["recurrent_layers"], built["dropout"]) == (
        "pointer_sentinel",
        1,
        0.0,
    )
    options = language_model_trainer.fit_options(made)
    assert (options.optimizer, options.carry, options.stride, options.patience) == (
        "sgd",
        False,
        2,
        7,
    )
    assert (options.batch_size, options.max_epochs, options.learning_rate, options.max_seconds) == (
        3,
        2,
        0.02,
        None,
    )


def test_perplexity_sums_the_new_words_of_passages():
    import types

    from pipeline.evaluation import perplexity

    log_probs = np.log([0.5, 0.25, 0.125, 0.1])
    elements = [
        # Padded predictions, one or two axes: TFMA gives either.
        ({"log_probability": np.r_[log_probs[:2], 0.0], "token_count": np.array(2)}, np.array([0])),
        ({"log_probability": log_probs[None, 1:], "token_count": np.array([3])}, np.array([[1]])),
    ]
    combiner = perplexity._Combiner("key")
    accumulators = [
        combiner.add_input(
            combiner.create_accumulator(),
            types.SimpleNamespace(predictions=predictions, features={"context": context}),
        )
        for predictions, context in elements
    ]
    merged = combiner.merge_accumulators(iter(accumulators))
    assert merged[-1] == 4
    # The sums are exact: another order gives the same to the last bit.
    assert combiner.merge_accumulators(iter(accumulators[::-1])) == merged
    assert combiner.extract_output(merged)["key"] == pytest.approx(math.exp(-log_probs.mean()))
    assert math.isnan(combiner.extract_output(combiner.create_accumulator())["key"])


def test_a_perplexity_is_demanded_where_the_recipe_does():
    from pipeline.evaluation import perplexity

    for bound, expected in ((0.0, 1e30), (120.0, 120.0)):
        config = perplexity.build_eval_config(recipe(max_perplexity=bound))
        [metric] = config.metrics_specs[0].metrics
        assert metric.class_name == "Perplexity" and config.model_specs[0].signature_name == "score"
        assert metric.threshold.value_threshold.upper_bound.value == expected
