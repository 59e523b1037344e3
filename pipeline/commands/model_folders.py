"""What a user may have meant by `--model` if the folder contains no model."""

import itertools
import pathlib
from collections.abc import Iterator

from pipeline.commands.command_error import CommandError

# How far below a folder to search for models: a run has them at models/NAME.
_DEPTH = 2


def check(directory: str) -> None:
    """Refuses a folder that has no model itself but models below it, and names them.

    Other errors of the folder are left to the code that loads the model.

    Raises:
        CommandError: the folder is that of a run, or of several models.
    """
    path = pathlib.Path(directory)
    if not path.is_dir() or _is_model(path):
        return
    models = list(itertools.islice(_models_below(path, _DEPTH), 4))
    if not models:
        return
    shown = [str(model) for model in models[:3]]
    more = ", or another" if len(models) > len(shown) else ""
    raise CommandError(
        f"The model folder {path} contains no version; did you mean {' or '.join(shown)}{more}?"
    )


def _is_model(path: pathlib.Path) -> bool:
    """Whether a folder is a SavedModel or contains numbered ones."""
    if (path / "saved_model.pb").is_file():
        return True
    return any(
        child.name.isdigit() and (child / "saved_model.pb").is_file() for child in _children(path)
    )


def _models_below(path: pathlib.Path, depth: int) -> Iterator[pathlib.Path]:
    for child in _children(path):
        if _is_model(child):
            yield child
        elif depth > 1:
            yield from _models_below(child, depth - 1)


def _children(path: pathlib.Path) -> list[pathlib.Path]:
    try:
        return sorted(child for child in path.iterdir() if child.is_dir())
    except OSError:
        return []
