"""Files beside a SavedModel: the model's facts, and warm-up requests."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypedDict

import keras
import tensorflow as tf

from pipeline.common.whole_files import whole_file
from pipeline.recipes.recipe import Recipe
from pipeline.recipes.sections import DecodingConfig
from serving.own_version import own_version

EXTRA_DIRECTORY = "assets.extra"
FACTS_FILE = "verbatim.json"
WARMUP_FILE = "tf_serving_warmup_requests"

#: A signature's name, and lists of strings by the name of its input.
Request = tuple[str, Mapping[str, Sequence[str]]]


class ModelFacts(TypedDict, total=False):
    """The facts of an exported model, as `verbatim.json` holds them.

    Attributes:
        name: the model's name when served.
        head: the recipe's `model.head`.
        signatures: the names of its signatures.
        task: the recipe's, if it is not `seq2seq`.
        source_features: columns of tags that its signatures take.
        batch_buckets, length_buckets: sizes that decoding is padded to.
        compilations: the most compilations.
        versions: of this package, TensorFlow and Keras.
        recipe: the whole recipe, as a dict.
    """

    name: str
    head: str
    signatures: list[str]
    task: str
    source_features: list[str]
    batch_buckets: list[int]
    length_buckets: list[int]
    compilations: int
    versions: dict[str, str]
    recipe: dict[str, Any]


def write(
    directory: str,
    recipe: Recipe,
    signatures: Iterable[str],
    requests: Iterable[Request],
    own_facts: ModelFacts,
) -> None:
    """Writes the files beside a SavedModel.

    Args:
        directory: the SavedModel's folder.
        recipe: the `Recipe`.
        signatures: the names of its signatures.
        requests: requests that a server runs before the version answers.
        own_facts: facts that only models of this kind have.
    """
    extra = os.path.join(directory, EXTRA_DIRECTORY)
    tf.io.gfile.makedirs(extra)
    write_warmup(os.path.join(extra, WARMUP_FILE), recipe.name, requests)
    config = recipe.decoding
    facts: ModelFacts = {
        "name": recipe.name,
        "head": recipe.model.head,
        "signatures": list(signatures),
        **own_facts,
        "batch_buckets": list(config.batch_buckets),
        "length_buckets": list(config.length_buckets),
        "compilations": len(config.batch_buckets) * len(config.length_buckets),
        "versions": {
            "verbatim-text": own_version(),
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
        },
        "recipe": recipe.to_dict(),
    }
    with whole_file(os.path.join(extra, FACTS_FILE)) as file:
        json.dump(facts, file, indent=1)


def write_warmup(path: str, name: str, requests: Iterable[Request]) -> None:
    """Writes requests that a server runs before the version answers.

    Args:
        path: the file.
        name: the model's name.
        requests: the requests.
    """
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    with tf.io.TFRecordWriter(path) as writer:
        for signature, inputs in requests:
            request = predict_pb2.PredictRequest()
            request.model_spec.name = name
            request.model_spec.signature_name = signature
            for key, texts in inputs.items():
                request.inputs[key].CopyFrom(tf.make_tensor_proto(texts))
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=request)
            )
            # Inputs are a map, whose order would change from process to process.
            writer.write(log.SerializeToString(deterministic=True))


def bucket_sizes(config: DecodingConfig) -> Iterator[tuple[int, int]]:
    """Yields each pair of a batch bucket and a length bucket."""
    for batch in config.batch_buckets:
        for length in config.length_buckets:
            yield batch, length
