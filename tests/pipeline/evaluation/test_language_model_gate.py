"""What stops a push of a language model: its perplexity."""

import pytest

tf = pytest.importorskip("tensorflow")
tfma = pytest.importorskip("tensorflow_model_analysis")

from pipeline.evaluation import gate
from pipeline.recipes.recipe import recipe_from_dict


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
