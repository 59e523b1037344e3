"""Metrics for TensorFlow Model Analysis that are floats, merge across Beam workers, and so can gate
a push.

TFMA's own Bleu and Rouge return objects, which no threshold can be compared with. These sum the
statistics of `pipeline.metrics` over examples, wherever Beam runs them, and make one float of the
sum: the value is the one that `pipeline.metrics.scoring.score` gives for the same texts, to the
last bits of a float64.

A metric by training frequency or by length is several floats: the whole under its own name, and
each range under `word_f1_by_frequency/5-9`, so that a threshold of an EvalConfig can be set on
either.

Name them in an EvalConfig with `MetricConfig(class_name="CorpusBleu",
module="pipeline.evaluation.tfma_metrics")`. A value that is undefined (the fidelity of a test set
without placeholders) is NaN, which meets no threshold.
"""

import functools
import json
import math

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis.metrics import metric_types, metric_util

from pipeline.metrics import registry

SOURCE_FEATURE = "source"
#: What the signature `score` gives; where a metric needs it, the EvalConfig names it among
#: `preprocessing_function_names`.
SCORE_SIGNATURE = "score"
SCORE_OUTPUTS = ("log_probability", "token_count")
#: Between a metric's name and that of one of its buckets.
BUCKET = "/"
#: How often training saw the words of an example's texts, which `pipeline.evaluation.extractors`
#: adds: a JSON object.
TRAINING_COUNTS_FEATURE = "training_counts"


class _SumCombiner(beam.CombineFn):
    """Sums a metric's segment statistics;
    the accumulator is one float64 vector, or one Counter for NIST.

    The first of `keys` is that of the metric, the others are those of its buckets.
    """

    def __init__(self, keys, scoring_name, options, eval_config, model_name, output_name):
        self._keys = keys
        self._scoring_name = scoring_name
        self._options = options
        self._eval_config = eval_config
        self._model_name = model_name
        self._output_name = output_name
        self._metric = None

    def __getstate__(self):
        # A worker makes its own metric: sacrebleu's tokenizers hold caches that do not travel.
        return {**self.__dict__, "_metric": None}

    def _scoring_metric(self):
        if self._metric is None:
            self._training_counts = {}  # of the words of one example at a time
            options = {**self._options, "training_words": self._training_counts}
            self._metric = registry.create_metric(self._scoring_name, **options)
        return self._metric

    def create_accumulator(self):
        return self._scoring_metric().zero()

    def add_input(self, accumulator, element):
        metric = self._scoring_metric()
        labels, predictions, _ = next(
            metric_util.to_label_prediction_example_weight(
                element,
                eval_config=self._eval_config,
                model_name=self._model_name,
                output_name=self._output_name,
                example_weighted=False,
                flatten=False,
                squeeze=False,
            )
        )
        source = None
        if metric.needs_sources:
            source = _text(element.features.get(SOURCE_FEATURE), f"feature '{SOURCE_FEATURE}'")
        if metric.needs_training_words:
            counts = element.features.get(TRAINING_COUNTS_FEATURE)
            self._training_counts.clear()
            self._training_counts.update(
                json.loads(_text(counts, f"feature '{TRAINING_COUNTS_FEATURE}'"))
            )
        output = self._score(element) if metric.needs_scores else _text(predictions, "prediction")
        return metric.add(accumulator, metric.statistics(output, (_text(labels, "label"),), source))

    def _score(self, element):
        """Returns what the model's signature `score` says of the reference:
        log-probability, number of tokens.
        """
        given = element.get_transformed_features(self._model_name) or {}
        return [float(np.asarray(given[name]).reshape(-1)[0]) for name in SCORE_OUTPUTS]

    def merge_accumulators(self, accumulators):
        return functools.reduce(self._scoring_metric().add, accumulators, self.create_accumulator())

    def extract_output(self, accumulator):
        metric = self._scoring_metric()
        values = [metric.value(accumulator), *metric.by_bucket(accumulator).values()]
        return {
            key: math.nan if value is None else value
            for key, value in zip(self._keys, values, strict=True)
        }


class _SliceGateCombiner(_SumCombiner):
    """As `_SumCombiner`, for a threshold on slices:
    the best possible value where a slice can prove nothing.

    That is a slice of too few examples, or one without anything to measure. The accumulator is
    (sums, number of examples).
    """

    def __init__(self, min_slice_size, *arguments):
        super().__init__(*arguments)
        self._min_slice_size = min_slice_size

    def create_accumulator(self):
        return super().create_accumulator(), 0

    def add_input(self, accumulator, element):
        sums, examples = accumulator
        return super().add_input(sums, element), examples + 1

    def merge_accumulators(self, accumulators):
        sums, examples = zip(*accumulators)
        return functools.reduce(
            self._scoring_metric().add, sums, super().create_accumulator()
        ), sum(examples)

    def extract_output(self, accumulator):
        sums, examples = accumulator
        metric = self._scoring_metric()
        value = metric.value(sums) if examples >= self._min_slice_size else None
        if value is None:
            best = {"share": 1.0}.get(metric.unit, 100.0)
            value = 0.0 if metric.lower_is_better else best
        return {self._keys[0]: value}


class _TextMetric(metric_types.Metric):
    """A metric of `pipeline.metrics` in TFMA's form."""

    scoring_name = ""

    def __init__(self, name="", min_slice_size=None, **options):
        """Initializes the metric.

        Args:
            name: key under which TFMA reports it; the name in `pipeline.metrics` by default.
            min_slice_size: for thresholds on slices: a slice of fewer examples, or without anything
                to measure, has the best possible value. None gives every slice its own value, or
                NaN.
            **options: `language`, `tokenize`, `tokenization` and `database`, as in
                `pipeline.metrics.scoring.score`.
        """
        scoring_name = self.scoring_name
        make_combiner = _SumCombiner
        if min_slice_size is not None:
            make_combiner = functools.partial(_SliceGateCombiner, min_slice_size)
        metric = registry.create_metric(scoring_name, **options)
        features = [SOURCE_FEATURE] if metric.needs_sources else []
        features += [TRAINING_COUNTS_FEATURE] if metric.needs_training_words else []
        needs_scores = metric.needs_scores
        # What a slice must reach is one number.
        buckets = metric.buckets if min_slice_size is None else ()

        def create_computations(
            name, eval_config=None, model_names=None, output_names=None, **unused
        ):
            preprocessors = []
            if features:
                preprocessors = [metric_types.FeaturePreprocessor(feature_keys=features)]
            if needs_scores:
                several = [model_name for model_name in model_names or [] if model_name]
                preprocessors = [
                    metric_types.TransformedFeaturePreprocessor(
                        SCORE_OUTPUTS, model_names=several or None
                    )
                ]
            computations = []
            for model_name in model_names or [""]:
                for output_name in output_names or [""]:
                    keys = [
                        metric_types.MetricKey(
                            name=key_name, model_name=model_name, output_name=output_name
                        )
                        for key_name in (name, *(f"{name}{BUCKET}{bucket}" for bucket in buckets))
                    ]
                    combiner = make_combiner(
                        keys, scoring_name, options, eval_config, model_name, output_name
                    )
                    computations.append(
                        metric_types.MetricComputation(
                            keys=keys, preprocessors=preprocessors, combiner=combiner
                        )
                    )
            return computations

        if min_slice_size is not None:
            options = {**options, "min_slice_size": min_slice_size}
        super().__init__(create_computations, name=name or scoring_name, **options)


class CorpusBleu(_TextMetric):
    """Corpus BLEU, 0 to 100; equals sacrebleu's `corpus_bleu`. Reported as `bleu`."""

    scoring_name = "bleu"


class CorpusChrf(_TextMetric):
    """Corpus chrF2, 0 to 100; equals sacrebleu's `corpus_chrf`. Reported as `chrf`."""

    scoring_name = "chrf"


class BleuByLength(_TextMetric):
    """As `CorpusBleu`, and by reference length.

    Reported as `bleu_by_length`, `bleu_by_length/0-9`, ...
    """

    scoring_name = "bleu_by_length"


class CorpusNist(_TextMetric):
    """Corpus NIST, from 0 up; equals NLTK's `corpus_nist`. Reported as `nist`."""

    scoring_name = "nist"


class CorpusTer(_TextMetric):
    """Corpus TER; equals sacrebleu's `TER`. Reported as `ter`."""

    scoring_name = "ter"


class Rouge1(_TextMetric):
    """Mean ROUGE-1 F1, 0 to 100. Reported as `rouge1`."""

    scoring_name = "rouge1"


class Rouge2(_TextMetric):
    """Mean ROUGE-2 F1, 0 to 100. Reported as `rouge2`."""

    scoring_name = "rouge2"


class RougeL(_TextMetric):
    """Mean ROUGE-L F1, 0 to 100. Reported as `rougeL`."""

    scoring_name = "rougeL"


class Rouge1Recall(_TextMetric):
    """Mean ROUGE-1 recall, 0 to 100. Reported as `rouge1_recall`."""

    scoring_name = "rouge1_recall"


class Rouge2Recall(_TextMetric):
    """Mean ROUGE-2 recall, 0 to 100. Reported as `rouge2_recall`."""

    scoring_name = "rouge2_recall"


class RougeLRecall(_TextMetric):
    """Mean ROUGE-L recall, 0 to 100. Reported as `rougeL_recall`."""

    scoring_name = "rougeL_recall"


class ExactMatch(_TextMetric):
    """Share of the outputs that equal the reference, 0 to 1. Reported as `exact_match`."""

    scoring_name = "exact_match"


class TokenAccuracy(_TextMetric):
    """Share of the positions with the right token, 0 to 1. Reported as `token_accuracy`."""

    scoring_name = "token_accuracy"


class ExecutionAccuracy(_TextMetric):
    """Share of the SQL queries with the right answer, 0 to 1; needs the option `database`.

    Reported as `execution_accuracy`.
    """

    scoring_name = "execution_accuracy"


class PlaceholderFidelity(_TextMetric):
    """Share of the outputs that hold exactly the source's placeholders, 0 to 1.

    Reported as `placeholder_fidelity`.

    It is over the examples whose source has a placeholder, and reads the feature `source`.
    """

    scoring_name = "placeholder_fidelity"


class ProtectedFidelity(_TextMetric):
    """As `PlaceholderFidelity`, over placeholders, tags, URLs and options.

    Reported as `protected_fidelity`.
    """

    scoring_name = "protected_fidelity"


class CopyRate(_TextMetric):
    """Share of the output's words that stand in the source, 0 to 1; reads the feature `source`.

    Reported as `copy_rate`.
    """

    scoring_name = "copy_rate"


class CopyPrecision(_TextMetric):
    """Share of the output's words from the source that the reference holds, 0 to 1.

    Reported as `copy_precision`.
    """

    scoring_name = "copy_precision"


class RepetitionRate(_TextMetric):
    """Share of the outputs that stutter, 0 to 1. Reported as `repetition_rate`."""

    scoring_name = "repetition_rate"


class UnseenCopies(_TextMetric):
    """Share of the words to be copied, unseen in training, that were copied, 0 to 1.

    Reported as `unseen_copies`.

    It reads the features `source` and `training_counts`, as the next two read the latter.
    """

    scoring_name = "unseen_copies"


class RareWordRecall(_TextMetric):
    """Share of the references' rare words that the outputs hold, 0 to 1.

    Reported as `rare_word_recall`.
    """

    scoring_name = "rare_word_recall"


class WordF1ByFrequency(_TextMetric):
    """F1 of words, 0 to 1, and by frequency in training.

    Reported as `word_f1_by_frequency`, `word_f1_by_frequency/0`, ...
    """

    scoring_name = "word_f1_by_frequency"


class WordF1ByLength(_TextMetric):
    """F1 of words, 0 to 1, and by reference length.

    Reported as `word_f1_by_length`, `word_f1_by_length/0-9`, ...
    """

    scoring_name = "word_f1_by_length"


class TokenPerplexity(_TextMetric):
    """Perplexity of the references, for each of the model's tokens; reads its signature `score`.

    Reported as `perplexity`.
    """

    scoring_name = "perplexity"


class WordPerplexity(_TextMetric):
    """As `TokenPerplexity`, for each word. Reported as `word_perplexity`."""

    scoring_name = "word_perplexity"


def _text(value, what):
    """Returns the one text in an array of one string, however many axes of size 1 it has."""
    value = getattr(value, "values", value)  # of a sparse or variable-length feature
    array = np.asarray(value).reshape(-1)
    if value is None or array.size != 1:
        raise ValueError(f"The {what} must be one string for each example; got {value!r}.")
    item = array[0]
    return item.decode("utf-8") if isinstance(item, bytes) else str(item)


#: The class of each metric, by its name in `pipeline.metrics`.
CLASSES = {_metric.scoring_name: _metric for _metric in _TextMetric.__subclasses__()}
#: The names of the classes that read `TRAINING_COUNTS_FEATURE`.
CLASSES_OF_TRAINING_COUNTS = frozenset(
    _metric.__name__
    for name, _metric in CLASSES.items()
    if registry.metric_class(name).needs_training_words
)
for _metric in CLASSES.values():
    metric_types.register_metric(_metric)
