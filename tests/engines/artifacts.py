"""The artifacts of a run, so that those of two runs can be compared."""

import hashlib
import io
import json
import math
import pathlib
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

#: What differs from run to run wherever it runs: times, places, and the order in which TensorFlow
#: names the parts of a graph. What a graph does is compared by its outputs.
_VARYING = re.compile(
    r"saved_model\.pb|fingerprint\.pb|keras_metadata\.pb|.*tfevents.*|eval_config\.json"
    r"|model_card.*|report/.*"
)
_METRICS = re.compile(r"metrics-.*\.tfrecord")
#: Of the Evaluator's metrics, whose scores are float32: XLA adds in another order where an engine
#: makes batches of another size.
_RELATIVE_TOLERANCE = 1e-6
_VALUE = re.compile(r"(?<=value: )-?\d[-+.\de]*")


def differing(expected: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Returns the names of what two runs did not write alike.

    Args:
        expected: what `digests` or `of_components` returned for one of them.
        found: the same for the other.
    """
    return sorted(
        key
        for key in {**expected, **found}
        if key not in expected or key not in found or not _alike(expected[key], found[key])
    )


def _alike(expected: str, found: str) -> bool:
    """Returns whether two digests are equal, or two texts of metrics but for rounding."""
    return _VALUE.split(expected) == _VALUE.split(found) and all(
        math.isclose(float(first), float(second), rel_tol=_RELATIVE_TOLERANCE)
        for first, second in zip(_VALUE.findall(expected), _VALUE.findall(found), strict=True)
    )


def digests(output: pathlib.Path) -> dict[str, str]:
    """Returns a digest of each file of a run's artifacts, and of its answers and metrics.

    Sharded examples count as one set of records, whatever their order and number of shards.
    Statistics, schemas and anomalies are messages whose features may stand in any order. The
    Evaluator's metrics are their text instead of a digest, so that `differing` can compare numbers.
    """
    found = of_components(output / "pipeline")
    for path in (output / "metrics.json", *sorted((output / "outputs").glob("*"))):
        content = _content(path.name, path.read_bytes())
        found[str(path.relative_to(output))] = hashlib.sha256(content).hexdigest()
    return found


def of_components(root: pathlib.Path) -> dict[str, str]:
    """Returns a digest of each file of the last artifacts below a root: see `digests`."""
    found = {}
    for folder in _newest(root):
        component, key = folder.parts[-3:-1]
        for name, content in _files(folder):
            if not _VARYING.fullmatch(name.rpartition("/")[2]) and not _VARYING.fullmatch(name):
                is_metrics = _METRICS.fullmatch(name.rpartition("/")[2])
                digest = content.decode() if is_metrics else hashlib.sha256(content).hexdigest()
                found[f"{component}/{key}/{name}"] = digest
    return found


def _newest(root: pathlib.Path) -> list[pathlib.Path]:
    """Returns the last folder of each artifact."""
    folders: dict[pathlib.Path, pathlib.Path] = {}
    found = [folder for folder in root.glob("*/*/*") if folder.name.isdigit()]
    for folder in sorted(found, key=lambda folder: int(folder.name)):
        folders[folder.parent] = folder
    return sorted(folders.values())


def _files(folder: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """Yields (name, content) of each file, and the sorted records of each folder of shards."""
    import tensorflow as tf

    shards: dict[pathlib.Path, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".gz" and "-of-" in path.name:
            shards.setdefault(path.parent, []).append(str(path))
        elif _METRICS.fullmatch(path.name):
            yield name, _metrics(path)
        else:
            yield name, _content(path.name, path.read_bytes())
    for parent, paths in shards.items():
        records = tf.data.TFRecordDataset(paths, compression_type="GZIP").as_numpy_iterator()
        digest = sorted(hashlib.sha256(_example(record)).hexdigest() for record in records)
        yield parent.relative_to(folder).as_posix(), "\n".join(digest).encode()


def _metrics(path: pathlib.Path) -> bytes:
    """Returns the text of the Evaluator's metrics, a message for each slice."""
    import tensorflow as tf
    from tensorflow_model_analysis.proto import metrics_for_slice_pb2

    records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    found = [str(metrics_for_slice_pb2.MetricsForSlice.FromString(record)) for record in records]
    return "\n".join(sorted(found)).encode()


def _example(record: bytes) -> bytes:
    """Returns a tf.Example with its features in order, which serialization does not promise."""
    import tensorflow as tf

    features = tf.train.Example.FromString(record).features.feature
    return repr([(name, str(features[name])) for name in sorted(features)]).encode()


def _content(name: str, content: bytes) -> bytes:
    """Returns what of a file does not depend on time and place."""
    return _READERS[name](content).encode() if name in _READERS else content


def _untimed(content: bytes) -> str:
    """Returns JSON without seconds."""

    def kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in pairs if key != "seconds"}

    return json.dumps(json.loads(content, object_pairs_hook=kept))


def _weights(content: bytes) -> str:
    """Returns a digest of a Keras model's weights; an archive has times, too."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return hashlib.sha256(archive.read("model.weights.h5")).hexdigest()


def _schema(content: bytes) -> str:
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    return _sorted_features(text_format.Parse(content, schema_pb2.Schema()))


def _sorted_features(schema: Any) -> str:
    schema.feature.sort(key=lambda feature: feature.name)
    return str(schema)


def _anomalies(content: bytes) -> str:
    from tensorflow_metadata.proto.v0 import anomalies_pb2

    anomalies = anomalies_pb2.Anomalies.FromString(content)
    found = sorted((name, str(anomalies.anomaly_info[name])) for name in anomalies.anomaly_info)
    return f"{found} {_sorted_features(anomalies.baseline)}"


def _statistics(content: bytes) -> str:
    """Returns what does not depend on how examples were divided among workers.

    The sketches of quantiles do; the last bits of means and deviations, too.
    """
    from tensorflow_metadata.proto.v0 import statistics_pb2

    found = []
    for dataset in statistics_pb2.DatasetFeatureStatisticsList.FromString(content).datasets:
        for feature in dataset.features:
            texts, numbers = feature.string_stats, feature.num_stats
            common = texts.common_stats if feature.HasField("string_stats") else None
            common = common or numbers.common_stats
            shape = (common.num_non_missing, common.min_num_values, common.max_num_values)
            found.append(
                f"{dataset.num_examples} {feature.path.step} {feature.type} {shape} {texts.unique} "
                f"{texts.avg_length:.4g} {numbers.mean:.6g} {numbers.min} {numbers.max}"
            )
    return "\n".join(sorted(found))


_READERS = {
    "history.json": _untimed,
    "metrics.json": _untimed,
    "model.keras": _weights,
    "schema.pbtxt": _schema,
    "SchemaDiff.pb": _anomalies,
    "FeatureStats.pb": _statistics,
}
