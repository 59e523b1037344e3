"""The parts of the test split that the Evaluator measures each by itself.

A slice by a column of the data needs nothing: the column is a feature of the examples. The others, named in `COMPUTED`, are
made here out of the source, by an extractor that TFX's Evaluator finds under the name `custom_extractors`.
"""

import bisect
import json
import os

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tensorflow_model_analysis as tfma

from pipeline import configs, preprocessing, scoring
from pipeline.tokenization import Tokenizer

MODULE = __name__
COMPUTED = ("source_length", "unknown_words")
SOURCE_FEATURE = "source"


def custom_extractors(eval_shared_model, eval_config, tensor_adapter_config=None):
    """Returns TFMA's extractors, with one more that adds the computed features that slices are made of.

    Args:
        eval_shared_model: the candidate, or a list of it and its baseline: the candidate's vocabulary decides what is unknown.
        eval_config: a `tfma.EvalConfig`; its slicing specs name the features.
        tensor_adapter_config: as TFMA takes it.
    """
    extractors = tfma.default_extractors(
        eval_shared_model=eval_shared_model, eval_config=eval_config, tensor_adapter_config=tensor_adapter_config
    )
    models = eval_shared_model if isinstance(eval_shared_model, list) else [eval_shared_model]
    candidate = next(model for model in models if model.model_name != tfma.BASELINE_KEY)
    names = tuple(name for spec in eval_config.slicing_specs for name in spec.feature_keys if name in COMPUTED)
    added = tfma.extractors.Extractor(
        stage_name="ExtractSliceFeatures", ptransform=_AddFeatures(names, candidate.model_path)
    )
    # The last one makes slice keys of one example's features.
    return [*extractors[:-1], added, extractors[-1]]


class _AddFeatures(beam.PTransform):
    """Adds computed features to the extracts of each example."""

    def __init__(self, names, model_path):
        super().__init__()
        self._names = names
        self._model_path = model_path

    def expand(self, extracts):
        return extracts | beam.ParDo(_AddFeaturesFn(self._names, self._model_path))


class _AddFeaturesFn(beam.DoFn):
    def __init__(self, names, model_path):
        super().__init__()
        self._names = names
        self._model_path = model_path
        self._slicer = None

    def setup(self):
        self._slicer = SourceSlicer.of_model(self._model_path, needs_vocabulary="unknown_words" in self._names)

    def process(self, extracts):
        features = extracts[tfma.FEATURES_KEY]
        # A feature may be an array, or a sparse value of one.
        source = np.asarray(getattr(features[SOURCE_FEATURE], "values", features[SOURCE_FEATURE])).reshape(-1)[0]
        values = self._slicer.features(source.decode("utf-8"))
        added = {name: np.array([values[name].encode()]) for name in self._names}
        yield {**extracts, tfma.FEATURES_KEY: {**features, **added}}


class SourceSlicer:
    """Says which slices a source belongs to.

    Args:
        tokenizer: a `Tokenizer`.
        vocabulary: set of the tokens that the source vocabulary has.
    """

    def __init__(self, tokenizer, vocabulary=frozenset()):
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary

    @classmethod
    def of_model(cls, model_path, needs_vocabulary=True):
        """Returns that of an exported model, which holds its vocabulary and its recipe; a model that names no recipe has the default."""
        facts = os.path.join(model_path, "assets.extra", "verbatim.json")
        recipe = json.loads(_read(facts)).get("recipe") if tf.io.gfile.exists(facts) else None
        data = configs.recipe_from_dict(recipe).data if recipe else configs.DataConfig()
        vocabulary = ()
        if needs_vocabulary:
            vocabulary = _read(os.path.join(model_path, "assets", preprocessing.SOURCE_VOCABULARY_FILE)).split("\n")
        return cls(Tokenizer.of(data, "source"), frozenset(vocabulary))

    def features(self, source):
        """Returns the dict of computed features of a source, a string.

        `source_length` is the range of its number of tokens (`10-19`), and `unknown_words` whether the vocabulary lacks one of
        its words (`yes`, `no`); a placeholder that it lacks counts, for it can only be copied.
        """
        source = self._tokenizer.normalize(source)
        length = bisect.bisect_right(scoring.LENGTH_BUCKETS, self._tokenizer.count(source)) - 1
        unknown = any(word not in self._vocabulary for word in self._tokenizer.words(source))
        return {
            "source_length": scoring.bucket_names(scoring.LENGTH_BUCKETS)[length],
            "unknown_words": "yes" if unknown else "no",
        }


def _read(path):
    with tf.io.gfile.GFile(path) as file:
        return file.read()
