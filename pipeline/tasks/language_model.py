"""The task `language_model`: how likely is each word of a stream of text, after those before it.

The functions are those of `pipeline.tasks.seq2seq`.
"""

PREPROCESSING_FN = "pipeline.features.language_model_preprocessing.preprocessing_fn"
COUNTS_OUTPUT = "counts"


def text_features():
    """Returns the names of the features of an example that are texts."""
    from pipeline.features.vocabulary_files import STREAM_SIDES

    return STREAM_SIDES


def plan_inputs(data_path, recipe):
    """Finds and checks the files behind a data path."""
    from pipeline.readers import text_streams

    return text_streams.plan_streams(data_path, recipe)


def evaluated_split(recipe):
    """Returns the split that the Evaluator measures: `eval` where no test file is given."""
    from pipeline.readers import text_streams

    return text_streams.evaluated_split(recipe.data)


def build_eval_config(recipe):
    """Returns the Evaluator's `tfma.EvalConfig`."""
    from pipeline.evaluation import perplexity

    return perplexity.build_eval_config(recipe)


def evaluator_module():
    """Returns None: perplexity needs no extractor."""
    return None


def train(recipe, fn_args, transform_output, kept=None, workers=None):
    """Trains a recipe's model for TFX's Trainer; returns it and the facts of its training.

    Raises:
        ValueError: several workers.
    """
    from pipeline.training import language_model_trainer

    if workers:
        raise ValueError("A language model is trained by one process: unset TF_CONFIG.")
    return language_model_trainer.train_transformed(recipe, fn_args, transform_output, kept)


def export_model(recipe, model, transform_output, directory):
    """Writes a trained model as a SavedModel."""
    from pipeline.export import language_model_export

    language_model_export.export_model(model, transform_output, recipe, directory)


def keep_training_counts(directory, vocabulary):
    """Does nothing: a language model is measured by what it gives each word, rare or not."""


def collect(recipe, *arguments):
    """Measures a run's models; arguments and result as in `pipeline.reporting.results.collect`."""
    from pipeline.reporting import language_model_results

    return language_model_results.collect(recipe, *arguments)


def describe_use(recipe):
    """Returns the `pipeline.reporting.model_card.ModelUse` of a recipe's model."""
    from pipeline.reporting.model_card import ModelUse

    limits = (
        "It writes likely text, not true text.",
        "Text must be tokenized as the training text is: words are what white space parts.",
    )
    return ModelUse({}, limits)


def paths_of(recipe, outputs):
    """Returns no paths: nothing of a stream is ever turned away, and there is no lexicon."""
    return {}
