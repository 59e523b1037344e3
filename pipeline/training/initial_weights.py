"""A network's first weights, taken from another model: by name, and by word where words differ."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
from numpy.typing import NDArray

from pipeline.common import progress
from pipeline.features import source_features, vocabulary_files
from pipeline.recipes.recipe_keys import RecipeKeys
from pipeline.text import characters
from pipeline.training.initial_model import InitialModel, InitialModelError
from pipeline.training.trainer_outputs import InitialFacts


class _Entries(NamedTuple):
    """Which vocabulary numbers the entries along an axis of a weight."""

    file: str
    axis: int


_TAGS = re.compile(r"source_(.+)_embedding/embeddings")


def entries_of(name: str, is_language_model: bool = False) -> _Entries | None:
    """Returns which vocabulary an axis of a weight belongs to; None where none does."""
    target = vocabulary_files.TARGET_VOCABULARY_FILE
    known = {
        "source_embedding/embeddings": _Entries(vocabulary_files.SOURCE_VOCABULARY_FILE, 0),
        "target_embedding/embeddings": _Entries(target, 0),
        "head/vocabulary/kernel": _Entries(target, 1),
        "head/vocabulary/bias": _Entries(target, 0),
        "composition/embeddings": _Entries(characters.CHARACTERS_FILE, 0),
        "word_embedding/embeddings": _Entries(vocabulary_files.SOURCE_VOCABULARY_FILE, 0),
    }
    if is_language_model:
        known["embedding/embeddings"] = _Entries(target, 0)
    if name in known:
        return known[name]
    tags = _TAGS.fullmatch(name)
    return _Entries(source_features.tags_file(tags[1]), 0) if tags else None


# The keys that decide what a network is made of. A key that only changes how it is trained, such as
# dropout, is not among them.
_NETWORK_KEYS = (
    *("task", "model.head", "model.body", "model.cell", "model.encoder", "model.attention"),
    *("model.hidden_size", "model.embedding_size", "model.encoder_layers", "model.decoder_layers"),
    *("model.attention_heads", "model.feed_forward_size", "model.kernel_size"),
    *("model.input_feeding", "model.selective_read", "model.composition", "model.ngram_buckets"),
    *("model.feature_size", "data.units", "data.source_units", "data.tokenization"),
    *("data.source_tokenization", "data.lowercase", "data.source_features"),
    *("data.rare_words", "data.unicode_form"),
    *("data.surface_features", "language_model.recurrent_layers", "language_model.tie_weights"),
    *("model.tie_embeddings", "model.decoder", "model.preset", "model.norm_first"),
)
# What a recipe has that was written before there was such a key.
_DEFAULTS: Mapping[str, Any] = dataclasses.asdict(RecipeKeys(name="defaults"))


def check_recipe(recipe: Mapping[str, Any], initial: Mapping[str, Any], path: str) -> None:
    """Checks, before any work, that a recipe's network can start from a model's weights.

    Args:
        recipe: the recipe that is to be trained, as a dict.
        initial: the model's.
        path: the model's folder.

    Raises:
        InitialModelError: they differ in a key that decides what the network is made of.
    """
    if initial.get("training", {}).get("ensemble", 1) > 1:
        raise InitialModelError(
            f"The model {path} of training.initialize_from is an ensemble, whose members' weights "
            "belong to several networks: name a model with training.ensemble = 1."
        )
    for key in _NETWORK_KEYS:
        ours, theirs = _value(recipe, key), _value(initial, key)
        if ours != theirs:
            raise InitialModelError(
                f"The model {path} of training.initialize_from has {key} = {_shown(theirs)} and "
                f"this recipe has {_shown(ours)}: set {key} to the model's value, or leave "
                "training.initialize_from out."
            )


def take(
    model: keras.Model,
    initial: InitialModel,
    words: Mapping[str, Sequence[str]],
    is_language_model: bool = False,
) -> InitialFacts:
    """Gives a network another model's weights, and reports how many.

    A weight that belongs to a word of the vocabulary goes to the same word; a word that the other
    model does not know keeps its first weights.

    Args:
        model: the network, with its first weights.
        initial: the other model.
        words: the network's own vocabularies, as `InitialModel.words` has them.
        is_language_model: whether it is one.

    Returns:
        What was taken.

    Raises:
        InitialModelError: the networks are not made of the same weights.
    """
    variables = model.trainable_variables
    ours, theirs = (
        [_plain(name) for name in names]
        for names in ((variable.path for variable in variables), initial.names)
    )
    if ours != theirs:
        differing = sorted(set(ours) ^ set(theirs))
        raise InitialModelError(
            f"The model {initial.path} of training.initialize_from has other weights than this "
            f"recipe's network ({', '.join(differing[:3])}): give the two recipes the same section "
            "model."
        )
    known: dict[str, tuple[int, int]] = {}
    for variable, name, value in zip(variables, ours, initial.weights, strict=True):
        entries = entries_of(name, is_language_model)
        if entries and entries.file in words and entries.file in initial.words:
            sides = words[entries.file], initial.words[entries.file]
            sizes = variable.shape[entries.axis], value.shape[entries.axis]
            if sizes == tuple(map(len, sides)):
                first = keras.ops.convert_to_numpy(variable.value)
                value, known[entries.file] = _by_word(first, value, entries.axis, *sides)
            elif sides[0] != sides[1]:
                raise InitialModelError(
                    f"The rows of {name} are numbered by a hash of {entries.file}, which differs "
                    f"from that of the model {initial.path} of training.initialize_from: only a "
                    "training on the same data can start from it."
                )
        if tuple(variable.shape) != value.shape:
            raise InitialModelError(
                f"The weight {name} has the shape {tuple(variable.shape)} here and {value.shape} "
                f"in the model {initial.path} of training.initialize_from: give the two recipes "
                "the same sizes."
            )
        variable.assign(value)
    said = ", ".join(
        f"{found:,} of {total:,} entries of {file}" for file, (found, total) in known.items()
    )
    progress.say(
        f"{len(variables)} weights start from those of {initial.path}"
        + (f": {said}." if said else ".")
    )
    return {"path": initial.path, "weights": len(variables), "words": known}


def _by_word(
    first: NDArray[Any],
    other: NDArray[Any],
    axis: int,
    words: Sequence[str],
    other_words: Sequence[str],
) -> tuple[NDArray[Any], tuple[int, int]]:
    """Returns a weight whose entries are the other model's where it knows the word.

    Args:
        first: the weight as it is.
        other: the other model's.
        axis: the one that the words number.
        words, other_words: the entries of both, by id. Special tokens, which come first, stand at
            the same place in both.

    Returns:
        The weight, how many words were known, and how many there are.
    """
    places = {word: number for number, word in reversed(list(enumerate(other_words)))}
    known = [number for number, word in enumerate(words) if word in places]
    merged = np.moveaxis(first.copy(), axis, 0)
    merged[known] = np.moveaxis(other, axis, 0)[[places[words[number]] for number in known]]
    return np.moveaxis(merged, 0, axis), (len(known), len(words))


def _plain(name: str) -> str:
    """Returns a weight's name without the numbers that Keras gives to layers of the same kind."""
    return re.sub(r"(gru|lstm|rnn|t5_layer_norm)_\d+(?=/)", r"\1", name)


def _value(recipe: Mapping[str, Any], key: str) -> Any:
    value: Any = recipe
    default: Any = _DEFAULTS
    for part in key.split("."):
        default = default[part]
        value = value.get(part, default) if isinstance(value, Mapping) else default
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)
