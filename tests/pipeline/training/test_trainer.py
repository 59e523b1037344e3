"""Training: the schedule, the clock, and a tiny run that learns and says what it did."""

import dataclasses
import json
import math
import types

import numpy as np
import pytest

from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import DataConfig, ModelConfig, TrainingConfig

VOCABULARY = 20
TINY = ModelConfig(embedding_size=8, hidden_size=8, dropout=0.0)


def write_pairs(path, count=36, length=5):
    """Pairs whose target repeats their source: half known words, half copies.

    `recipe` makes batches of 6: with a multiple of it there is one shape, hence one trace.
    """
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path), options="GZIP") as writer:
        for number in range(count):
            known = [10 + (number + place) % 5 for place in range(length)]
            extended = [
                VOCABULARY + place if place % 2 else word for place, word in enumerate(known)
            ]
            ids = {
                "source_ids": known,
                "source_extended_ids": extended,
                "source_feed_ids": known,
                "target_input_ids": [2, *known],
                "target_extended_ids": [*extended, 3],
            }
            features = {
                name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
                for name, value in ids.items()
            }
            tokens = [f"token{place}".encode() for place in range(length)]
            features["source_tokens"] = tf.train.Feature(
                bytes_list=tf.train.BytesList(value=tokens)
            )
            writer.write(
                tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
            )
    return [str(path)]


def recipe(**training):
    options = {
        "epochs": 4,
        "batch_tokens": 96,
        "learning_rate": 0.02,
        "warmup_steps": 2,
        "bucket_lengths": (4, 8),
    }
    data = DataConfig(max_tokens=7)
    return Recipe(
        name="tiny", data=data, model=TINY, training=TrainingConfig(**{**options, **training})
    )


def test_learning_rate_warms_up_and_decays():
    from pipeline.training.training_callbacks import learning_rate_at

    config = TrainingConfig(learning_rate=0.4, warmup_steps=10, final_learning_rate_share=0.1)
    assert learning_rate_at(0.0, 1, config) == pytest.approx(0.04)
    assert learning_rate_at(0.0, 5, config) == pytest.approx(0.2)
    assert (
        learning_rate_at(0.0, 10, config)
        == learning_rate_at(0.0, 1000, config)
        == pytest.approx(0.4)
    )
    assert learning_rate_at(0.5, 100, config) == pytest.approx(0.4 * 0.55)
    assert (
        learning_rate_at(1.0, 100, config)
        == learning_rate_at(1.7, 100, config)
        == pytest.approx(0.04)
    )
    rates = [learning_rate_at(step / 100, step + 10, config) for step in range(101)]
    assert rates == sorted(rates, reverse=True)


def test_learning_rate_without_warmup_or_decay():
    from pipeline.training.training_callbacks import learning_rate_at

    config = TrainingConfig(learning_rate=0.4, warmup_steps=0, final_learning_rate_share=1.0)
    assert [learning_rate_at(progress, 1, config) for progress in (0.0, 0.3, 1.0)] == [
        pytest.approx(0.4)
    ] * 3
    config = TrainingConfig(learning_rate=0.4, warmup_steps=0, final_learning_rate_share=0.0)
    assert learning_rate_at(1.0, 1, config) == pytest.approx(0.0)


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


def schedule(monkeypatch, **training):
    """A Schedule of 2 epochs of 10 steps on a fake model, and its clock."""
    import keras

    from pipeline.training import training_callbacks

    clock = Clock()
    monkeypatch.setattr(training_callbacks, "time", types.SimpleNamespace(monotonic=clock))
    config = TrainingConfig(
        epochs=2, warmup_steps=0, final_learning_rate_share=0.0, learning_rate=1.0, **training
    )
    callback = training_callbacks.Schedule(config, steps_per_epoch=10)
    optimizer = types.SimpleNamespace(learning_rate=keras.Variable(0.5))
    callback.set_model(types.SimpleNamespace(optimizer=optimizer, stop_training=False))
    callback.on_train_begin()
    return callback, clock


def rate(callback):
    return float(callback.model.optimizer.learning_rate)


def test_schedule_follows_the_epochs_where_there_is_no_limit(monkeypatch):
    callback, clock = schedule(monkeypatch)
    for step in range(1, 21):
        clock.now += 1e6
        callback.on_train_batch_begin(step % 10)
        assert rate(callback) == pytest.approx((1 + math.cos(math.pi * step / 20)) / 2, abs=1e-6)
        callback.on_train_batch_end(step % 10)
        assert not callback.model.stop_training


def test_schedule_stops_when_the_time_is_used_up(monkeypatch):
    callback, clock = schedule(monkeypatch, max_seconds=10.0)
    rates = []
    for step, seconds in enumerate((1, 4, 9, 10), 1):
        clock.now = 1000.0 + seconds
        callback.on_train_batch_begin(step)
        rates.append(rate(callback))
        callback.on_train_batch_end(step)
        assert not callback.model.stop_training
    # The rate has fallen with the time, not been cut off.
    expected = [(1 + math.cos(math.pi * share)) / 2 for share in (0.1, 0.4, 0.9, 1.0)]
    assert rates == pytest.approx(expected, abs=1e-6)
    clock.now = 1010.5
    callback.on_train_batch_begin(5)
    callback.on_train_batch_end(5)
    assert callback.model.stop_training


def test_schedule_with_time_to_spare_follows_the_epochs(monkeypatch):
    callback, clock = schedule(monkeypatch, max_seconds=1000.0)
    for step in range(1, 11):
        clock.now += 1
        callback.on_train_batch_begin(step)
    assert rate(callback) == pytest.approx(0.5, abs=1e-6)


def summaries(directory):
    """Returns the names of TensorBoard's curves, and a dict from the name of a picture to its
    (step, pixels).
    """
    import tensorflow as tf
    from tensorflow.python.summary.summary_iterator import summary_iterator

    curves, pictures = set(), {}
    for path in sorted(directory.rglob("events.out.tfevents.*")):
        for event in summary_iterator(str(path)):
            for value in event.summary.value:
                kind = value.metadata.plugin_data.plugin_name
                if kind == "scalars":
                    curves.add(value.tag)
                if kind == "images":
                    # Width, height, then a PNG for each picture.
                    png = tf.make_ndarray(value.tensor)[2]
                    pictures.setdefault(value.tag, []).append(
                        (event.step, tf.io.decode_png(png).numpy())
                    )
    return curves, pictures


def test_a_picture_shows_weights_copies_and_where_they_came_from():
    from pipeline.training import heat_maps

    drawn = heat_maps.picture([[0.0, 1.0], [0.5, np.nan]], [1.0, 0.0], [1, -1])
    assert drawn.shape == (24, 48, 3) and drawn.dtype == np.uint8
    inside, corner = (5, 5), (0, 0)

    def pixel(row, column, place):
        return tuple(drawn[row * 12 + place[0], column * 12 + place[1]].tolist())

    white, blue, orange = (255, 255, 255), (10, 84, 148), (163, 75, 0)
    assert [pixel(0, column, inside) for column in (0, 1, 3)] == [white, blue, orange]
    # The copied cell alone is outlined.
    assert [pixel(row, column, corner) for row, column in ((0, 1), (0, 0), (1, 1))] == [
        orange,
        white,
        white,
    ]
    assert pixel(1, 0, inside) == (132, 170, 202) and pixel(1, 3, inside) == white


@pytest.mark.slow
def test_training_lowers_the_loss_and_tells_the_facts(tmp_path, capsys):
    from pipeline.training import trainer

    train, held_out = write_pairs(tmp_path / "train.gz"), write_pairs(tmp_path / "eval.gz", count=6)
    write_pairs(tmp_path / "long.gz", count=3, length=8)
    model, facts = trainer.train(
        recipe(epochs=8),
        [*train, str(tmp_path / "long.gz")],
        held_out,
        VOCABULARY,
        VOCABULARY,
        str(tmp_path / "logs"),
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
    output = capsys.readouterr().out
    assert "3 of 39 training pairs are longer than 8 tokens" in output
    assert output.count("pointer_generator: epoch ") == 8
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
    from pipeline.training import trainer, training_callbacks

    clock = Clock()

    def tick():
        clock.now += 1
        return clock.now

    monkeypatch.setattr(training_callbacks, "time", types.SimpleNamespace(monotonic=tick))
    files = write_pairs(tmp_path / "pairs.gz", count=18)
    _, facts = trainer.train(
        recipe(epochs=1000, max_seconds=12.0), files, files, VOCABULARY, VOCABULARY
    )
    assert 1 <= len(facts["curve"]) < 20
    assert facts["seconds"] < 60


@pytest.mark.slow
def test_a_training_that_explodes_is_one_sentence(tmp_path):
    from pipeline.training import trainer

    files = write_pairs(tmp_path / "pairs.gz", count=6)
    with pytest.raises(ValueError, match=r"no finite loss: lower training\.learning_rate\.$"):
        trainer.train(
            recipe(learning_rate=1e38, gradient_clip_norm=0.0, warmup_steps=0),
            files,
            files,
            VOCABULARY,
            VOCABULARY,
        )


def test_pairs_that_fit_no_bucket_are_one_sentence(tmp_path):
    from pipeline.training import trainer

    long, short = (
        write_pairs(tmp_path / "long.gz", count=3, length=8),
        write_pairs(tmp_path / "short.gz", count=3),
    )
    with pytest.raises(
        ValueError, match="None of the 3 training pairs has at most 8 tokens: raise"
    ):
        trainer.train(recipe(), long, short, VOCABULARY, VOCABULARY)
    with pytest.raises(ValueError, match="None of the 3 eval pairs has at most 8 tokens: raise"):
        trainer.train(recipe(), short, long, VOCABULARY, VOCABULARY)


@pytest.mark.slow
@pytest.mark.parametrize("body", ["rnn", "transformer"])
def test_scheduled_sampling_trains_on_batches_of_any_length(tmp_path, body):
    from pipeline.training import trainer

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
    model, facts = trainer.train(made, files, files, VOCABULARY, VOCABULARY)
    assert facts["curve"][-1]["loss"] < facts["curve"][0]["loss"]
    assert 0.2 <= float(model.gold_probability) < 1.0


def test_the_recipe_reaches_the_model():
    from pipeline.training import trainer

    config = ModelConfig(
        head="softmax",
        cell="lstm",
        attention="dot",
        embedding_size=6,
        hidden_size=4,
        encoder_layers=2,
        coverage=False,
    )
    made = Recipe(
        name="x", data=DataConfig(), model=config, training=TrainingConfig(coverage_loss_weight=0.7)
    )
    built = trainer.build_model(made, 30, 40).get_config()
    for key in (
        "head",
        "cell",
        "attention",
        "embedding_size",
        "hidden_size",
        "encoder_layers",
        "coverage",
        "dropout",
    ):
        assert built[key] == getattr(config, key)
    assert (built["source_vocabulary_size"], built["target_vocabulary_size"]) == (30, 40)
    assert built["coverage_loss_weight"] == 0.0


@pytest.mark.parametrize(
    "model, training, expected",
    [
        (
            {
                "body": "transformer",
                "decoder_layers": 2,
                "attention_heads": 2,
                "feed_forward_size": 9,
                "encoder_layers": 2,
            },
            {"coverage_loss_weight": 0.3, "large_vocabulary_size": 600},
            {
                "decoder_layers": 2,
                "attention_heads": 2,
                "feed_forward_size": 9,
                "encoder_layers": 2,
                "coverage_loss_weight": 0.3,
            },
        ),
        (
            {
                "head": "joint_copy",
                "selective_read": True,
                "copy_tanh": False,
                "encoder": "cnn",
                "kernel_size": 5,
            },
            {"scheduled_sampling": "linear"},
            {
                "selective_read": True,
                "head_options": {"tanh": False},
                "encoder": "cnn",
                "kernel_size": 5,
                "scheduled_sampling": True,
            },
        ),
        (
            {
                "head": "pointer_softmax",
                "inverse_temperature": 2.0,
                "switch_activation": "noisy_tanh",
            },
            {},
            {
                "head_options": {"inverse_temperature": 2.0, "activation": "noisy_tanh"},
                "scheduled_sampling": False,
            },
        ),
        (
            {
                "head": "span_copy",
                "max_span": 3,
                "copying_context": "start",
                "attention": "none",
                "initial_range": 0.1,
            },
            {},
            {
                "head_options": {"max_span": 3, "copying_context": "start"},
                "attention": "none",
                "initial_range": 0.1,
            },
        ),
    ],
)
def test_bodies_and_the_options_of_heads_reach_the_model(model, training, expected):
    from pipeline.training import trainer

    config = ModelConfig(embedding_size=6, hidden_size=4, **model)
    made = Recipe(name="x", model=config, training=TrainingConfig(**training))
    built = trainer.build_model(made, 30, 1200)
    assert type(built).__name__ == (
        "TransformerSeq2Seq" if config.body == "transformer" else "RecurrentSeq2Seq"
    )
    assert {key: built.get_config()[key] for key in expected} == expected
    assert built.large_vocabulary_size == training.get("large_vocabulary_size", 0)
