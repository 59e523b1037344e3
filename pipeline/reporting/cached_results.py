"""Caches the answers of exported models in files for repeated runs."""

import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from pipeline.common.whole_files import write_text
from pipeline.export.served_model import Answer

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


def decode_once(
    model_uri: str,
    sources: Sequence[str],
    cache_directory: str | os.PathLike[str],
    features: Mapping[str, Sequence[str]],
) -> list[Answer]:
    """Returns an exported model's answers to texts.

    Args:
        model_uri: Exporter's `model` artifact.
        sources: the texts.
        cache_directory: folder for the answers.
        features: see `ServedModel.predict`.
    """
    from pipeline.export.served_model import ServedModel

    def decode() -> list[Answer]:
        model = ServedModel(os.path.join(model_uri, "Format-Serving"))
        return model.predict(sources, features=features)

    key = [model_uri, sources, *([features] if features else [])]
    return compute_once(cache_directory, "answers", key, decode)


def score_once(
    model_uri: str,
    sources: Sequence[str],
    targets: Sequence[str],
    cache_directory: str | os.PathLike[str],
    features: Mapping[str, Sequence[str]],
) -> list[Sequence[float]]:
    """Returns (log-probability, number of tokens) of each target by an exported model.

    Args:
        model_uri, sources, cache_directory, features: see `decode_once`.
        targets: a text for each source.
    """
    from pipeline.export.served_model import ServedModel

    def score() -> list[Sequence[float]]:
        model = ServedModel(os.path.join(model_uri, "Format-Serving"))
        log_probability, tokens = model.score(sources, targets, features)
        return list(zip(log_probability.tolist(), tokens.tolist()))

    key = ["score", model_uri, sources, targets, *([features] if features else [])]
    return compute_once(cache_directory, "scores", key, score)
