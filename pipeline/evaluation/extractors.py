"""Extractors of the Evaluator: large batches, and additional features; and the model it reads.

They add the features of slices, and how often training saw an example's words.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2

from pipeline.evaluation import slicing
from pipeline.evaluation.sum_combiner import TRAINING_COUNTS_FEATURE
from pipeline.evaluation.tfma_metrics import CLASSES_OF_TRAINING_COUNTS
from pipeline.export import shared_model
from pipeline.features import training_counts

MODULE = __name__
#: Examples in a batch of a model: many, so that texts of similar length can be decoded together.
BATCH_SIZE = 512


#: TFMA's extracts of one or several examples.
Extracts = dict[str, Any]


def custom_eval_shared_model(
    eval_saved_model_path: str,
    model_name: str,
    eval_config: config_pb2.EvalConfig,
    **settings: Any,
) -> tfma.types.EvalSharedModel:
    """Returns TFMA's model, which leaves a loaded candidate for the Reporter.

    TFX's Evaluator finds this function by its name.

    Args:
        eval_saved_model_path: folder of the SavedModel.
        model_name: its name in the configuration.
        eval_config: a `tfma.EvalConfig`.
        **settings: others of `tfma.default_eval_shared_model`.
    """
    if model_name != tfma.BASELINE_KEY:
        settings["custom_model_loader"] = tfma.types.ModelLoader(
            functools.partial(shared_model.load_and_leave, eval_saved_model_path),
            tags=[tf.saved_model.SERVING],
        )
    return tfma.default_eval_shared_model(
        eval_saved_model_path=eval_saved_model_path,
        model_name=model_name,
        eval_config=eval_config,
        **settings,
    )


def custom_extractors(
    eval_shared_model: tfma.types.MaybeMultipleEvalSharedModels,
    eval_config: config_pb2.EvalConfig,
    tensor_adapter_config: Any = None,
) -> list[tfma.extractors.Extractor]:
    """Returns TFMA's extractors and ours.

    Ours make larger batches, and add features where slices or metrics need them. TFX's Evaluator
    finds this function by its name.

    Args:
        eval_shared_model: the candidate, or a list of it and its baseline: the candidate's
            vocabulary decides what is unknown.
        eval_config: a `tfma.EvalConfig`; its slices and metrics decide which features are needed.
        tensor_adapter_config: as TFMA takes it.
    """
    extractors = tfma.default_extractors(
        eval_shared_model=eval_shared_model,
        eval_config=eval_config,
        tensor_adapter_config=tensor_adapter_config,
    )
    models = eval_shared_model if isinstance(eval_shared_model, list) else [eval_shared_model]
    candidate = next(model for model in models if model.model_name != tfma.BASELINE_KEY)
    names = [
        name
        for spec in eval_config.slicing_specs
        for name in spec.feature_keys
        if name in slicing.COMPUTED
    ]
    classes = {metric.class_name for spec in eval_config.metrics_specs for metric in spec.metrics}
    if classes & CLASSES_OF_TRAINING_COUNTS:
        names.append(TRAINING_COUNTS_FEATURE)
    larger = tfma.extractors.Extractor(
        stage_name="MakeLargerBatches", ptransform=MakeLargerBatches(BATCH_SIZE)
    )
    if not names:
        return [larger, *extractors]
    added = tfma.extractors.Extractor(
        stage_name="ExtractAddedFeatures",
        ptransform=_AddFeatures(tuple(names), candidate.model_path),
    )
    # The last one makes slice keys of one example's features.
    return [larger, *extractors[:-1], added, extractors[-1]]


class MakeLargerBatches(beam.PTransform):
    """Puts the examples of several batches into one.

    TFX lets Beam choose the size, which is the number of examples that a model answers in a second.
    That is small for decoding, and a model that pads to a fixed number of rows needs as long for a
    few rows as for all.

    Args:
        size: examples of a batch; the last of a bundle may have fewer.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def expand(self, extracts: beam.PCollection) -> beam.PCollection:
        return (
            extracts
            | "SplitBatches" >> beam.FlatMap(_split)
            | "BatchExamples"
            >> beam.BatchElements(min_batch_size=self._size, max_batch_size=self._size)
            | "MergeBatches" >> beam.Map(_merge)
        )


def _split(extracts: Extracts) -> list[pyarrow.RecordBatch]:
    batch = extracts[tfma.ARROW_RECORD_BATCH_KEY]
    return [batch.slice(row, 1) for row in range(batch.num_rows)]


def _merge(rows: list[pyarrow.RecordBatch]) -> Extracts:
    (batch,) = pyarrow.Table.from_batches(rows).combine_chunks().to_batches()
    return {tfma.ARROW_RECORD_BATCH_KEY: batch}


class _AddFeatures(beam.PTransform):
    """Adds features to the extracts of each example."""

    def __init__(self, names: tuple[str, ...], model_path: str) -> None:
        super().__init__()
        self._names = names
        self._model_path = model_path

    def expand(self, extracts: beam.PCollection) -> beam.PCollection:
        return extracts | beam.ParDo(_AddFeaturesFn(self._names, self._model_path))


class _AddFeaturesFn(beam.DoFn):
    def __init__(self, names: tuple[str, ...], model_path: str) -> None:
        super().__init__()
        self._names = names
        self._model_path = model_path
        self._counts: Mapping[str, int] | None = None

    def setup(self) -> None:
        self._slicer = slicing.SourceSlicer.of_model(
            self._model_path, needs_vocabulary="unknown_words" in self._names
        )
        if TRAINING_COUNTS_FEATURE in self._names:
            self._counts = training_counts.read(self._model_path)
            if self._counts is None:
                raise ValueError(
                    f"The model {self._model_path} lacks {training_counts.FILE}: export it anew."
                )

    def process(self, extracts: Extracts) -> Iterator[Extracts]:
        features = extracts[tfma.FEATURES_KEY]
        source = _text(features["source"])
        values = self._slicer.features(source)
        if self._counts is not None:
            texts = [source, _text(features["target"]), *_outputs(extracts[tfma.PREDICTIONS_KEY])]
            words = {word for text in texts for word in self._slicer.tokenizer.words(text)}
            counts = {word: self._counts[word] for word in words if word in self._counts}
            values[TRAINING_COUNTS_FEATURE] = json.dumps(counts)
        added = {name: np.array([values[name].encode()]) for name in self._names}
        yield {**extracts, tfma.FEATURES_KEY: {**features, **added}}


def _text(feature: Any) -> str:
    """Returns the text in a feature, which may be an array, or a sparse value of one."""
    item: bytes = np.asarray(getattr(feature, "values", feature)).reshape(-1)[0]
    return item.decode("utf-8")


def _outputs(predictions: Mapping[str, Any]) -> list[str]:
    """Returns the output of each model.

    Predictions are its dict of outputs, or, of several models, a dict of such.
    """
    if "text" in predictions:
        return [_text(predictions["text"])]
    return [_text(of_model["text"]) for of_model in predictions.values()]
