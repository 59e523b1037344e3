"""Exports a trained language model as a SavedModel that takes raw text.

`docs/reference/signatures.md` lists the signatures. As for the other models, the Transform graph
that made the training features is part of the SavedModel, inputs are padded to buckets, and only
core and tf.text operations are used.
"""

from collections.abc import Iterator

import keras
import tensorflow as tf
import tensorflow_transform as tft

from pipeline.export import extra_files, smaller_graph
from pipeline.export.language_model_module import LanguageModelModule
from pipeline.recipes.recipe import Recipe
from pipeline.training import exported_weights

# The method behind each signature; `serving_default` answers requests that name no signature.
SIGNATURES = {
    "serving_default": "continue_text",
    "continue": "continue_text",
    "continue_no_xla": "continue_text_no_xla",
    "score": "score",
    "score_stream": "score_stream",
}


def export_model(
    model: keras.Model, transform_output: tft.TFTransformOutput, recipe: Recipe, directory: str
) -> None:
    """Writes the SavedModel, its warm-up requests and its facts.

    Args:
        model: a trained `LanguageModel`.
        transform_output: the Transform graph of the features it was trained on.
        recipe: the `Recipe`.
        directory: where to write.
    """
    module = LanguageModelModule(model, transform_output, recipe)
    signatures = {name: getattr(module, method) for name, method in SIGNATURES.items()}
    tf.saved_model.save(module, directory, signatures=signatures)
    smaller_graph.shrink(directory)
    exported_weights.write_names(directory, model)
    extra_files.write(directory, recipe, SIGNATURES, warmup_requests(recipe), {"task": recipe.task})


def warmup_requests(recipe: Recipe) -> Iterator[extra_files.Request]:
    """Yields one request for each pair of buckets, and one for each signature that people use."""

    def inputs(batch: int, length: int) -> dict[str, list[str]]:
        return {"text": [" ".join(["a"] * length)] * batch}

    sizes = list(extra_files.bucket_sizes(recipe.decoding))
    for size in sizes:
        yield "continue", inputs(*size)
    for signature in ("serving_default", "score"):
        yield signature, inputs(*sizes[0])
