"""Caches the answers of exported models in files for repeated runs."""

import functools
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pipeline.common.whole_files import write_text
from pipeline.export.served_model import Answer

if TYPE_CHECKING:
    from pipeline.export.served_model import ServedModel

_Result = TypeVar("_Result")


def compute_once(
    cache_directory: str | os.PathLike[str], kind: str, key: Any, compute: Callable[[], _Result]
) -> _Result:
    """Returns what `compute` returns, or what an earlier run computed under the same key.

    Args:
        cache_directory: folder of the files.
        kind: what they are called.
        key: what the result depends on; JSON must hold it, and the result.
        compute: computes the result.
    """
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    path = pathlib.Path(cache_directory) / f"{kind}-{digest}.json"
    if path.is_file():
        return cast(_Result, json.loads(path.read_text(encoding="utf-8")))
    result = compute()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(result, ensure_ascii=False))
    return result


class ExportedModel:
    """Exporter's `model` artifact, loaded when it is first asked, and then kept.

    Args:
        uri: its folder.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri

    @functools.cached_property
    def served(self) -> "ServedModel":
        """The model itself."""
        from pipeline.export.served_model import ServedModel

        return ServedModel(os.path.join(self.uri, "Format-Serving"))


def decode_once(
    model: ExportedModel,
    sources: Sequence[str],
    cache_directory: str | os.PathLike[str],
    features: Mapping[str, Sequence[str]],
) -> list[Answer]:
    """Returns an exported model's answers to texts.

    Args:
        model: the model.
        sources: the texts.
        cache_directory: folder for the answers.
        features: see `ServedModel.predict`.
    """

    def decode() -> list[Answer]:
        return model.served.predict(sources, features=features)

    key = [model.uri, sources, *([features] if features else [])]
    return compute_once(cache_directory, "answers", key, decode)


def score_once(
    model: ExportedModel,
    sources: Sequence[str],
    targets: Sequence[str],
    cache_directory: str | os.PathLike[str],
    features: Mapping[str, Sequence[str]],
) -> list[Sequence[float]]:
    """Returns (log-probability, number of tokens) of each target by an exported model.

    Args:
        model, sources, cache_directory, features: see `decode_once`.
        targets: a text for each source.
    """

    def score() -> list[Sequence[float]]:
        log_probability, tokens = model.served.score(sources, targets, features)
        return list(zip(log_probability.tolist(), tokens.tolist()))

    key = ["score", model.uri, sources, targets, *([features] if features else [])]
    return compute_once(cache_directory, "scores", key, score)
