"""The files of a Transform graph that the network reads: vocabularies, lexicon, numbers of ids."""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from pipeline.features import source_features
from pipeline.features.vocabulary_files import TARGET_VOCABULARY_FILE
from pipeline.lexicons import translation_lexicon
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.text import characters, tokenization


def read_vocabulary(transform_output: Any, name: str) -> list[str]:
    """Returns the tokens of a vocabulary, in the order of their ids.

    Args:
        transform_output: a `tft.TFTransformOutput`, which has its own copy of the file.
        name: `SOURCE_VOCABULARY_FILE`, `TARGET_VOCABULARY_FILE` or the file of a column's tags.
    """
    with tf.io.gfile.GFile(_path(transform_output, name)) as file:
        tokens: list[str] = file.read().splitlines()
    return tokens


def vocabulary_names(transform_output: Any, names: Iterable[str]) -> list[str]:
    """Returns which files of vocabularies the Transform graph has, of some names."""
    return [name for name in names if tf.io.gfile.exists(_path(transform_output, name))]


def count_characters(transform_output: Any) -> int:
    """Returns the number of character ids."""
    return len(read_vocabulary(transform_output, characters.CHARACTERS_FILE))


def encoder_feature_sizes(transform_output: Any, recipe: RecipeKeys) -> dict[str, int]:
    """Returns the number of ids, padding's 0 among them, of each extra input of the encoder."""
    sizes = {
        source_features.feature_name(name): len(
            read_vocabulary(transform_output, source_features.tags_file(name))
        )
        for name in recipe.data.source_features
    }
    if "case" in recipe.data.surface_features:
        sizes[source_features.feature_name("case")] = len(source_features.CASES)
    return sizes


def read_lexicon(
    transform_output: Any,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Returns the lexicon of translations whose rows a graph's `source_lexicon_rows` are.

    Returns:
        What `translation_lexicon.read_rows` does, by the target vocabulary.
    """
    vocabulary = read_vocabulary(transform_output, TARGET_VOCABULARY_FILE)
    # A word of the text that reads like a special token is not one.
    ids = {
        token: number
        for number, token in enumerate(vocabulary)
        if token not in tokenization.SPECIAL_TOKENS[:-1]
    }
    path = _path(transform_output, translation_lexicon.ROWS_FILE)
    return translation_lexicon.read_rows(path, ids, tokenization.UNK_ID)


def folder_of(transform_output: Any) -> str:
    """Returns the folder of the files that a Transform graph keeps beside itself."""
    return os.path.join(transform_output.transform_savedmodel_dir, "assets")


def _path(transform_output: Any, name: str) -> str:
    return os.path.join(folder_of(transform_output), name)
