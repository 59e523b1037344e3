"""TFX's BulkInferrer with an exported model."""

import json

import pytest

from tests.pipeline.export.test_units_served import ROWS, copy_all
from tests.pipeline.export.tiny_models import export_tiny, make_recipe

pytestmark = pytest.mark.slow


def test_bulk_inferrer_reads_the_signature_of_examples(tmp_path, monkeypatch):
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2
    from tfx.components.bulk_inferrer import executor
    from tfx.proto import bulk_inferrer_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    from keras_models import decoding

    monkeypatch.setattr(decoding, "decode", copy_all)
    recipe = make_recipe(data={"tokenization": "text"})
    names = ("serving_default", "examples")
    exported = export_tiny(tmp_path, recipe, ROWS, ["greet"], ["and"], names, train=False)
    model = standard_artifacts.Model()
    model.uri = str(tmp_path / "artifact")
    (tmp_path / "artifact").mkdir()
    exported.rename(tmp_path / "artifact" / "Format-Serving")

    sources = ["greet %(name)s!", "greet ada"]
    examples = standard_artifacts.Examples()
    examples.uri = str(tmp_path / "examples")
    examples.split_names = json.dumps(["train"])
    (tmp_path / "examples" / "Split-train").mkdir(parents=True)
    path = str(tmp_path / "examples" / "Split-train" / "data.gz")
    with tf.io.TFRecordWriter(path, options="GZIP") as writer:
        for source in sources:
            value = tf.train.Feature(bytes_list=tf.train.BytesList(value=[source.encode()]))
            example = tf.train.Example(features=tf.train.Features(feature={"source": value}))
            writer.write(example.SerializeToString())

    result = standard_artifacts.InferenceResult()
    result.uri = str(tmp_path / "result")
    spec = bulk_inferrer_pb2.ModelSpec(model_signature_name=["examples"])
    executor.Executor().Do(
        {"examples": [examples], "model": [model]},
        {"inference_result": [result]},
        {
            "model_spec": proto_utils.proto_to_json(spec),
            "data_spec": proto_utils.proto_to_json(bulk_inferrer_pb2.DataSpec()),
        },
    )
    files = [str(path) for path in (tmp_path / "result").iterdir()]
    texts = []
    for record in tf.data.TFRecordDataset(files, compression_type="GZIP").as_numpy_iterator():
        outputs = prediction_log_pb2.PredictionLog.FromString(record).predict_log.response.outputs
        texts.append(tf.make_ndarray(outputs["text"]).item().decode())
        assert tf.make_ndarray(outputs["tokens"]).shape[0] == 1
    assert sorted(texts) == sorted(sources)
