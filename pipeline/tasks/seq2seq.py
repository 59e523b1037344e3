"""The task `seq2seq`: texts out of texts, learned from pairs."""

import os

PREPROCESSING_FN = "pipeline.features.preprocessing.preprocessing_fn"
#: The output of the component that reads the data which says how many records were read, kept and
#: turned away.
COUNTS_OUTPUT = "rejects"


def text_features():
    """Returns the names of the features of an example that are texts."""
    from pipeline.features.vocabulary_files import SIDES

    return SIDES


def plan_inputs(data_path, recipe):
    """Finds and checks the files behind a data path; the plan has `units` and `ignored_files`.

    Raises:
        pipeline.readers.DataError: they cannot be used; one sentence.
    """
    from pipeline.readers import planning

    return planning.plan_inputs(data_path, recipe.data)


def evaluated_split(recipe):
    """Returns the split that the Evaluator measures."""
    return "test"


def build_eval_config(recipe):
    """Returns the Evaluator's `tfma.EvalConfig`."""
    from pipeline.evaluation import gate

    return gate.build_eval_config(recipe)


def evaluator_module():
    """Returns the name of the module with the Evaluator's `custom_extractors`, or None where the
    task has none.
    """
    from pipeline.evaluation import extractors

    return extractors.MODULE


def train(recipe, fn_args, transform_output, kept=None, workers=None):
    """Trains a recipe's model for TFX's Trainer; returns it and the facts of its training.

    Args:
        recipe: a `Recipe`.
        fn_args: TFX's.
        transform_output: a `tft.TFTransformOutput`.
        kept: its `checkpoints.Checkpoints`.
        workers: the `data_parallel.Workers` to train with, if any.
    """
    from pipeline.training import trainer

    return trainer.train_transformed(recipe, fn_args, transform_output, kept, workers)


def export_model(recipe, model, transform_output, directory):
    """Writes a trained model as a SavedModel."""
    from pipeline.export import seq2seq_export

    seq2seq_export.export_model(model, transform_output, recipe, directory)


def keep_training_counts(directory, vocabulary):
    """Writes how often the training text has each word beside an exported model, for the metrics
    that ask how rare a word is.

    Args:
        directory: the SavedModel's folder.
        vocabulary: the folder of the Vocabulary artifact.
    """
    from pipeline.features import training_counts, vocabulary_files

    training_counts.write(directory, vocabulary_files.read_training_counts(vocabulary))


def collect(recipe, *arguments):
    """Measures a run's models; arguments and result as in `pipeline.reporting.results.collect`."""
    from pipeline.reporting import results

    return results.collect(recipe, *arguments)


def describe_use(recipe):
    """Returns the `pipeline.reporting.model_card.ModelUse` of a recipe's model."""
    from pipeline.reporting.model_card import ModelUse

    limits = [
        f"A source of more than {recipe.decoding.length_buckets[-1]} tokens is refused.",
        "Outputs are not checked for truth: words may be wrong, left out or added, and what is "
        "copied may stand in the wrong place.",
    ]
    if recipe.decoding.keep_protected:
        limits.append(
            "An output holds each placeholder, tag, URL and option exactly as often as its "
            "source, as far as the copy mechanism "
            "can output it."
        )
    else:
        limits.append("Placeholders, tags, URLs and options of the source may be lost or invented.")
    if recipe.data.lowercase:
        limits.append("All text is lower-cased.")
    if recipe.data.tokenization == "whitespace":
        limits.append(
            "Sources must be tokenized as the training data are: tokens are what white space parts."
        )
    languages = {key: getattr(recipe.data, key) for key in ("source_language", "target_language")}
    return ModelUse(languages, tuple(limits))


def paths_of(recipe, outputs):
    """Returns, for a run's facts, the paths of what was turned away, `"rejects"`, and of the
    `"lexicon"`.
    """
    from pipeline.lexicons import translation_lexicon

    paths = {"rejects": os.path.join(outputs["ParallelTextExampleGen"]["rejects"], "rejects.tsv")}
    if recipe.lexicon.kind != "none":
        paths["lexicon"] = os.path.join(
            outputs["Lexicon"]["lexicon"], translation_lexicon.LEXICON_FILE
        )
    return paths
