"""Tiny trainings that learn and say what they did, and those that cannot."""

import dataclasses
import json
import types

import pytest

from pipeline.common import progress
from tests.pipeline.training import tiny_training
from tests.pipeline.training.tiny_training import TINY, Clock, recipe, summaries, write_pairs


@pytest.mark.slow
def test_training_lowers_the_loss_and_tells_the_facts(tmp_path, caplog):
    caplog.set_level(progress.STEP, logger="verbatim.progress")
    train, held_out = write_pairs(tmp_path / "train.gz"), write_pairs(tmp_path / "eval.gz", count=6)
    write_pairs(tmp_path / "long.gz", count=3, length=8)
    model, facts = tiny_training.train(
        recipe(epochs=8), [*train, str(tmp_path / "long.gz")], held_out, str(tmp_path / "logs")
    )
    counted = {
        "parameters",
        "seconds",
        "steps_per_epoch",
        "updates",
        "workers",
        "pairs",
        "too_long",
    }
    assert set(facts) == {"head", "curve", *counted} and facts["workers"] == 1
    assert facts["head"] == "pointer_generator"
    assert (facts["pairs"], facts["too_long"]) == (39, 3)  # a label [END] makes the long ones 9
    assert facts["steps_per_epoch"] == 36 / (96 // 16)
    assert facts["updates"] == facts["steps_per_epoch"] * len(facts["curve"])
    assert facts["parameters"] == model.count_params() > 0
    assert [set(point) for point in facts["curve"]] == [
        {"epoch", "seconds", "loss", "eval_loss"}
    ] * 8
    assert [point["epoch"] for point in facts["curve"]] == list(range(1, 9))
    assert facts["curve"][-1]["loss"] < 0.6 * facts["curve"][0]["loss"]
    assert facts["curve"][-1]["eval_loss"] < facts["curve"][0]["eval_loss"]
    json.loads(json.dumps(facts), parse_constant=pytest.fail)
    said = [record.getMessage() for record in caplog.records if record.levelno > progress.STEP]
    assert [sentence for sentence in said if "3 of 39 training pairs are longer than" in sentence]
    assert sum("pointer_generator: epoch " in sentence for sentence in said) == 8
    steps = [record.step for record in caplog.records if hasattr(record, "step")]
    assert {(step.description, step.unit, step.total) for step in steps} == {
        ("training pointer_generator", "updates", facts["updates"])
    }
    assert (steps[0].done, steps[-1].done, steps[-1].finished) == (0, facts["updates"], True)
    curves, pictures = summaries(tmp_path / "logs")
    assert {"epoch_loss", "epoch_learning_rate"} <= curves
    # Four eval pairs after each of eight epochs: 12 pixels a token, and two columns more than the
    # source's five.
    assert set(pictures) == {f"attention/{number}" for number in (1, 2, 3, 4)}
    for steps in pictures.values():
        assert [step for step, _ in steps] == list(range(8))
        assert all(
            picture.shape[1:] == (7 * 12, 3) and picture.shape[0] % 12 == 0 for _, picture in steps
        )


@pytest.mark.slow
def test_the_time_limit_ends_a_training_early_with_a_model(tmp_path, monkeypatch):
    from pipeline.training import checkpointing, progress_callback, schedule

    clock = Clock()

    def tick():
        clock.now += 1
        return clock.now

    for module in (checkpointing, progress_callback, schedule):
        monkeypatch.setattr(module, "time", types.SimpleNamespace(monotonic=tick))
    files = write_pairs(tmp_path / "pairs.gz", count=18)
    _, facts = tiny_training.train(recipe(epochs=1000, max_seconds=12.0), files, files)
    assert 1 <= len(facts["curve"]) < 20
    assert facts["seconds"] < 60


@pytest.mark.slow
def test_a_training_that_explodes_is_one_sentence(tmp_path):
    files = write_pairs(tmp_path / "pairs.gz", count=6)
    with pytest.raises(ValueError, match=r"no finite loss: lower training\.learning_rate\.$"):
        tiny_training.train(
            recipe(learning_rate=1e38, gradient_clip_norm=0.0, warmup_steps=0),
            files,
            files,
        )


@pytest.mark.parametrize("option", [{"label_smoothing": 0.5}, {"consistency_weight": 3.0}])
def test_the_eval_loss_is_the_plain_one(tmp_path, option):
    import tensorflow as tf

    from pipeline.training.stored_pairs import StoredPairs
    from pipeline.training.training_data import TrainingBatches

    files = write_pairs(tmp_path / "pairs.gz", count=12)
    drops = dataclasses.replace(TINY, coverage=False, dropout=0.3)
    made = dataclasses.replace(recipe(epochs=1), model=drops)
    made = dataclasses.replace(made, training=dataclasses.replace(made.training, **option))
    model, facts = tiny_training.train(made, files, files)
    batches = TrainingBatches(StoredPairs.read(files), (4, 8), 96)
    losses = [
        -float(tf.reduce_sum(model(inputs) * tf.cast(labels > 0, "float32"))) / int(tf.size(labels))
        for inputs, labels in batches.epoch()
    ]
    assert facts["curve"][0]["eval_loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-5)


@pytest.mark.slow
def test_the_disk_and_memory_give_the_same_weights(tmp_path, monkeypatch):
    """The reference holds all pairs in memory and goes through them one after the other."""
    import numpy as np
    import tensorflow as tf

    from pipeline.training import training_data

    files = write_pairs(tmp_path / "a.gz", count=18) + write_pairs(
        tmp_path / "b.gz", count=18, length=3
    )
    made = recipe(epochs=2, deterministic=True)

    def weights():
        model, _ = tiny_training.train(made, files, files)
        return [variable.numpy() for variable in model.variables]

    from_disk = weights()

    def in_memory(batches, number=0, first=0):
        stored = batches._stored
        pairs = [
            {name: values[0] for name, values in stored.batch(np.array([row])).items()}
            for row in range(len(stored))
        ]
        order = np.arange(len(pairs))
        if batches._seed is not None:
            order = np.random.default_rng((batches._seed, number)).permutation(order)
        spec = {name: tf.TensorSpec([None], tf.int32) for name in stored.names}
        grouped = tf.data.Dataset.from_generator(
            lambda: (pairs[row] for row in order), output_signature=spec
        ).bucket_by_sequence_length(
            lambda pair: tf.size(pair["target_extended_ids"]), [5, 9], [12, 6, 1]
        )
        return grouped.skip(first).map(lambda inputs: (inputs, inputs[training_data.LABELS]))

    monkeypatch.setattr(training_data.TrainingBatches, "epoch", in_memory)
    assert all(map(np.array_equal, from_disk, weights()))


def test_pairs_that_fit_no_bucket_are_one_sentence(tmp_path):
    long, short = (
        write_pairs(tmp_path / "long.gz", count=3, length=8),
        write_pairs(tmp_path / "short.gz", count=3),
    )
    with pytest.raises(
        ValueError, match="None of the 3 training pairs has at most 8 tokens: raise"
    ):
        tiny_training.train(recipe(), long, short)
    with pytest.raises(ValueError, match="None of the 3 eval pairs has at most 8 tokens: raise"):
        tiny_training.train(recipe(), short, long)


@pytest.mark.slow
@pytest.mark.parametrize("body", ["rnn", "transformer"])
def test_scheduled_sampling_trains_on_batches_of_any_length(tmp_path, body):
    files = write_pairs(tmp_path / "pairs.gz", count=18) + write_pairs(
        tmp_path / "short.gz", count=18, length=3
    )
    made = recipe(
        epochs=6,
        scheduled_sampling="linear",
        scheduled_sampling_half_life=20,
        scheduled_sampling_floor=0.2,
    )
    made = dataclasses.replace(made, model=dataclasses.replace(TINY, body=body))
    model, facts = tiny_training.train(made, files, files)
    assert facts["curve"][-1]["loss"] < facts["curve"][0]["loss"]
    assert 0.2 <= float(model.gold_probability) < 1.0
