"""Exports a trained model as a SavedModel that takes and returns raw text.

`docs/reference/signatures.md` lists the signatures. The Transform graph that made the training
features is part of the SavedModel. Only core and tf.text operations are used, so stock TensorFlow
Serving runs it.
"""

from collections.abc import Collection, Iterator

import keras
import tensorflow as tf
import tensorflow_transform as tft

from pipeline.export import extra_files, smaller_graph
from pipeline.export.serving_module import ServingModule
from pipeline.recipes.recipe import Recipe
from pipeline.training import exported_weights

SIGNATURES = (
    "serving_default",
    "serving_default_no_xla",
    "n_best",
    "n_best_no_xla",
    "explain",
    "score",
    "examples",
)
#: Those that `Evaluator` and `Reporter` ask of every model.
MEASURED = ("serving_default", "score")


def export_model(
    model: keras.Model,
    transform_output: tft.TFTransformOutput,
    recipe: Recipe,
    directory: str,
    signatures: Collection[str] = SIGNATURES,
) -> None:
    """Writes the SavedModel, its warm-up requests and its facts.

    Args:
        model: a trained body, such as `RecurrentSeq2Seq`.
        transform_output: the Transform graph of the features it was trained on.
        recipe: the `Recipe`; `decoding` fixes search and buckets.
        directory: where to write.
        signatures: names of those to write, `serving_default` among them.
    """
    module = ServingModule(model, transform_output, recipe)
    tf.saved_model.save(
        module, directory, signatures={name: module.signature(name) for name in signatures}
    )
    smaller_graph.shrink(directory)
    exported_weights.write_names(directory, model)
    extra_files.write(
        directory,
        recipe,
        signatures,
        warmup_requests(recipe, signatures),
        {"source_features": list(recipe.data.source_features)},
    )


def warmup_requests(recipe: Recipe, signatures: Collection[str]) -> Iterator[extra_files.Request]:
    """Yields one request for each pair of buckets, so that no client waits for a compilation.

    All signatures share the compiled search, but a session prepares its graph for each signature,
    which takes a second or two. So `n_best` and `score`, which the client and the web page use,
    have one request each.
    """

    def inputs(batch: int, length: int) -> dict[str, list[str]]:
        columns = {name: [" ".join(["O"] * length)] * batch for name in recipe.data.source_features}
        return {"source": [" ".join(["a"] * length)] * batch, **columns}

    sizes = list(extra_files.bucket_sizes(recipe.decoding))
    for size in sizes:
        yield "serving_default", inputs(*size)
    if "n_best" in signatures:
        yield "n_best", inputs(*sizes[0])
    if "score" in signatures:
        yield "score", {**inputs(*sizes[0]), "target": ["a"] * sizes[0][0]}
