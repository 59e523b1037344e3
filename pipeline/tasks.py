"""What differs between the tasks of a recipe, `seq2seq` and `language_model`: the one place that branches by `recipe.task`.

(Two more choices live with the components that make them, because they travel as settings: the preprocessing function in
`components/text_transform`, and the counted features in `components/vocabulary`.)
Modules of the other task, and TFX, are imported where they are needed.
"""

from pipeline.recipe_choices import LANGUAGE_MODEL


def is_language_model(recipe):
    """Whether a recipe's task is `language_model`."""
    return recipe.task == LANGUAGE_MODEL


def plan_inputs(data_path, recipe):
    """Finds and checks the files behind a data path; the plan has `units` and `ignored_files`.

    Raises:
        pipeline.readers.DataError: they cannot be used; one sentence.
    """
    from pipeline import text_streams
    from pipeline.readers import planning

    if is_language_model(recipe):
        return text_streams.plan_streams(data_path, recipe)
    return planning.plan_inputs(data_path, recipe.data)


def example_gen(data_path, recipe):
    """Returns the component that reads the data."""
    if is_language_model(recipe):
        from components.text_example_gen.component import TextExampleGen

        return TextExampleGen(data_path=data_path, recipe_json=recipe.to_json())
    from components.parallel_text_example_gen.component import ParallelTextExampleGen

    return ParallelTextExampleGen(data_path=data_path, recipe_json=recipe.to_json())


def counts_output(recipe):
    """Returns the name of that component's output that says how many records were read, kept and turned away."""
    return "counts" if is_language_model(recipe) else "rejects"


def evaluated_split(recipe):
    """Returns the split that the Evaluator measures."""
    from pipeline import text_streams

    return text_streams.evaluated_split(recipe.data) if is_language_model(recipe) else "test"


def build_eval_config(recipe):
    """Returns the Evaluator's `tfma.EvalConfig`."""
    from pipeline import evaluation, perplexity

    return (perplexity if is_language_model(recipe) else evaluation).build_eval_config(recipe)


def compares_with_last_blessed(recipe):
    """Whether the Evaluator needs the last blessed model too."""
    if is_language_model(recipe):
        return recipe.language_model.max_perplexity_change is not None
    return recipe.evaluation.compares_with_last_blessed


def evaluator_module(recipe):
    """Returns the name of the module with the Evaluator's `custom_extractors`, or None where the task has none."""
    if is_language_model(recipe):
        return None
    from pipeline import extractors

    return extractors.MODULE


def train(recipe, fn_args, transform_output, kept=None, workers=None):
    """Trains a recipe's model for TFX's Trainer; returns it and the facts of its training.

    Args:
        recipe: a `Recipe`.
        fn_args: TFX's.
        transform_output: a `tft.TFTransformOutput`.
        kept: its `checkpoints.Checkpoints`.
        workers: the `data_parallel.Workers` to train with, if any.

    Raises:
        ValueError: several workers and a language model.
    """
    from pipeline import language_model_trainer, trainer

    if not is_language_model(recipe):
        return trainer.train_transformed(recipe, fn_args, transform_output, kept, workers)
    if workers:
        raise ValueError("A language model is trained by one process: unset TF_CONFIG.")
    return language_model_trainer.train_transformed(recipe, fn_args, transform_output, kept)


def export_model(recipe, model, transform_output, directory):
    """Writes a trained model as a SavedModel."""
    from serving import export, language_model_export

    export_as = (language_model_export if is_language_model(recipe) else export).export_model
    export_as(model, transform_output, recipe, directory)


def collect(recipe, *arguments):
    """Measures a run's models; arguments and result as in `pipeline.results.collect`."""
    from pipeline import language_model_results, results

    return (language_model_results if is_language_model(recipe) else results).collect(recipe, *arguments)


def paths_of(recipe, outputs):
    """Returns, for a run's facts, the paths of what was turned away, `"rejects"` (no text of a stream ever is), and of the `"lexicon"`."""
    import os

    from pipeline import translation_lexicon

    if is_language_model(recipe):
        return {}
    paths = {"rejects": os.path.join(outputs["ParallelTextExampleGen"]["rejects"], "rejects.tsv")}
    if recipe.lexicon.kind != "none":
        paths["lexicon"] = os.path.join(outputs["Lexicon"]["lexicon"], translation_lexicon.LEXICON_FILE)
    return paths
