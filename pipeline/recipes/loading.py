"""Recipes by name or from a TOML file, with overrides by `--set`.

Each key has a default in `pipeline.recipes.sections`, a TOML file of this folder (or the user's
own) changes some of them, and `--set section.key=value` changes one more. An unknown key or an
impossible value is a `RecipeError` whose sentence names the key.
"""

import dataclasses
import os
import pathlib
import sys
from collections.abc import Iterable
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from pipeline.recipes.fields import RecipeError, suggestion
from pipeline.recipes.recipe import Recipe, recipe_from_dict

RECIPES_DIRECTORY = pathlib.Path(__file__).parent


def available_recipes() -> list[str]:
    """Returns the names of the recipes that come with Verbatim."""
    return sorted(path.stem for path in RECIPES_DIRECTORY.glob("*.toml"))


def load_recipe(name_or_path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> Recipe:
    """Reads a recipe by name (`localization_en_fr`) or from a `.toml` file, then applies overrides.

    Args:
        name_or_path: a name from `available_recipes()`, or the path of a TOML file.
        overrides: strings `section.key=value`; the value is TOML, or plain text.

    Returns:
        A `Recipe`.

    Example:
        >>> from pipeline.recipes.loading import load_recipe
        >>> recipe = load_recipe("translation", ["model.head=joint_copy", "training.epochs=3"])
        >>> recipe.model.head, recipe.training.epochs
        ('joint_copy', 3)

    Raises:
        RecipeError: the recipe is missing, unreadable, or has an unknown key or impossible value.
    """
    path = pathlib.Path(name_or_path)
    if path.suffix != ".toml":
        path = RECIPES_DIRECTORY / f"{name_or_path}.toml"
        if not path.is_file():
            raise RecipeError(
                "There is no recipe named "
                f"'{name_or_path}'{suggestion(str(name_or_path), available_recipes())} The recipes "
                f"are: {', '.join(available_recipes())}; or give the path of a .toml file."
            )
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecipeError(f"The recipe file {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"The recipe file {path} is not valid TOML: {error}.") from None
    tree.setdefault("name", path.stem)
    for override in overrides:
        _apply_override(tree, override)
    return recipe_from_dict(tree)


def with_database_path(recipe: Recipe, data_path: str) -> Recipe:
    """Returns the recipe with its database, lexicons and glossary resolved relative to the data.

    Their paths become absolute, or addresses.

    Args:
        recipe: a `Recipe`.
        data_path: the data path, absolute or an address: a folder, or one or two files in it.
    """
    is_folder = recipe.data.train_files or "://" in data_path or os.path.isdir(data_path)
    folder = data_path if is_folder else os.path.dirname(data_path.split(",")[0])

    def beside(path: str) -> str:
        return (
            path if not path or os.path.isabs(path) or "://" in path else os.path.join(folder, path)
        )

    def preset(path: str) -> str:
        # A name is no folder, and stays.
        folders = [place for place in (beside(path), path) if path and os.path.isdir(place)]
        return os.path.abspath(folders[0]) if folders else path

    data, evaluation, model = recipe.data, recipe.evaluation, recipe.model
    return dataclasses.replace(
        recipe,
        data=dataclasses.replace(
            data, dictionary=beside(data.dictionary), copy_lexicon=beside(data.copy_lexicon)
        ),
        model=dataclasses.replace(
            model,
            preset=preset(model.preset),
            source_vectors=beside(model.source_vectors),
            target_vectors=beside(model.target_vectors),
        ),
        decoding=dataclasses.replace(recipe.decoding, glossary=beside(recipe.decoding.glossary)),
        evaluation=dataclasses.replace(evaluation, database=beside(evaluation.database)),
    )


def _apply_override(tree: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    key = key.strip()
    if not separator or not key:
        raise RecipeError(
            f"--set needs section.key=value, for example model.head=softmax; got '{override}'."
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    *sections, last = key.split(".")
    for section in sections:
        tree = tree.setdefault(section, {})
        if not isinstance(tree, dict):
            raise RecipeError(f"--set {override}: '{section}' is a value, not a section.")
    tree[last] = value
