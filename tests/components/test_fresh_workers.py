"""Steps in workers that have imported nothing, and folders in which an attempt has failed."""

import apache_beam as beam
import pytest
import tensorflow as tf
import tensorflow_text
from tfx.types import standard_artifacts

from components import earlier_attempts
from components.evaluator import executor as evaluator_executor
from components.text_transform import executor as transform_executor


class Splits(tf.Module):
    """A graph with an op of TensorFlow Text."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        return tensorflow_text.regex_split(texts, r"\s").to_tensor()


@pytest.mark.parametrize("module", [transform_executor, evaluator_executor])
def test_fresh_workers_have_the_ops(tmp_path, module):
    """Beam starts a process for the step, which knows no op but TensorFlow's own."""
    path = str(tmp_path / "model")
    tf.saved_model.save(Splits(), path)
    executor = module.Executor(
        module.Executor.Context(beam_pipeline_args=[], tmp_dir=str(tmp_path), unique_id="1")
    )
    executor._beam_pipeline_args = [
        "--direct_running_mode=multi_processing",
        "--direct_num_workers=1",
    ]
    with executor._make_beam_pipeline() as pipeline:
        _ = pipeline | beam.Create([path]) | beam.Filter(tf.saved_model.load)


def test_a_repeated_attempt_begins_with_empty_splits(tmp_path):
    examples = standard_artifacts.Examples()
    examples.uri = str(tmp_path)
    shard = tmp_path / "Split-train" / "data_tfrecord-00000-of-00003.gz"
    shard.parent.mkdir()
    shard.touch()
    (tmp_path / "other").touch()
    earlier_attempts.remove({"examples": [examples]}, "examples")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
