"""The search space of a recipe's tuning: the values that trials may try, and a search's result."""

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypedDict

from pipeline.recipes.fields import RecipeError, check_value, choice, suggestion

_CHANGES_LOSS = "it changes the eval loss, by which trials are compared"
_CHANGES_COST = "it changes how a training is run, not what is learned"
#: Keys that no trial may change, and why.
FIXED = {
    "model.head": "other heads are compared by 'baseline.head'",
    "model.selective_read": "it belongs to one head, which the baseline may lack",
    "model.coverage": _CHANGES_LOSS,
    "training.coverage_loss_weight": _CHANGES_LOSS,
    "training.bucket_lengths": "it chooses the pairs that the eval loss is measured on",
    "training.corpus_weights": "'training.corpus_temperature' can be searched",
    "training.subword_sampling": "it changes the features that trials are trained on",
    "training.epochs": "'tuning.epochs' says how long a trial trains",
    "training.select_by": "it says how trials are compared",
    "training.keep": "it says how trials are compared",
    "training.select_pairs": "it says how trials are compared",
    "training.max_updates": _CHANGES_COST,
    "training.max_seconds": _CHANGES_COST,
    "training.ensemble": _CHANGES_COST,
    "training.seed": _CHANGES_COST,
    "training.deterministic": _CHANGES_COST,
    "training.workers": _CHANGES_COST,
}


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`; whole numbers if the key takes whole numbers.

    With scale `log` every order of magnitude is equally likely.
    """

    low: float
    high: float
    scale: str = choice("linear", "log", default="linear")


#: The value of a key that can be searched.
Value: TypeAlias = bool | int | float | str | tuple[int, ...]
#: From dotted key to the values to try.
Space: TypeAlias = dict[str, tuple[Value, ...] | Range]


class SearchResult(TypedDict):
    """The result of a search.

    Attributes:
        values: from dotted key to value, of the best trial.
        algorithm: how it searched.
        trials, failed: how many trials it made, and how many of them failed.
        measure: what was compared, for people.
        score: the best trial's measure.
    """

    values: dict[str, Value]
    algorithm: str
    trials: int
    failed: int
    measure: str
    score: float


def read(prefix: str, tree: Any, sections: Mapping[str, type[Any]]) -> Space:
    """Reads a search space.

    Args:
        prefix: the recipe's key that holds it, for messages.
        tree: dict from dotted key, or from section to dict from key, to a list of values or `{low,
            high, scale}`. For a key that is named in both ways the last one counts.
        sections: dict from the sections that can be searched to their dataclasses.

    Returns:
        Dict from dotted key to a tuple of values or a `Range`.

    Raises:
        RecipeError: an unknown or fixed key or impossible values; the sentence names the key.
    """
    if not isinstance(tree, dict):
        raise RecipeError(f"The recipe key '{prefix}' must be a section with keys of its own.")
    fields = {
        f"{name}.{field.name}": field
        for name, cls in sections.items()
        for field in dataclasses.fields(cls)
    }
    hints = {
        f"{name}.{key}": hint
        for name, cls in sections.items()
        for key, hint in typing.get_type_hints(cls).items()
    }
    space: Space = {}
    for key, values in _dotted(tree, sections):
        if key not in fields:
            raise RecipeError(
                f"The recipe key '{prefix}' names an unknown key '{key}'{suggestion(key, fields)} "
                f"It can name keys of the sections {' and '.join(sections)}, such as "
                "'training.learning_rate'."
            )
        if key in FIXED:
            raise RecipeError(f"The recipe key '{prefix}' cannot name '{key}': {FIXED[key]}.")
        read_values = _read_range if isinstance(values, dict) else _read_list
        space[key] = read_values(f"{prefix}.{key}", values, hints[key], fields[key].metadata)
    return space


def _dotted(tree: dict[str, Any], sections: Mapping[str, type[Any]]) -> Iterator[tuple[str, Any]]:
    for key, values in tree.items():
        if key in sections and isinstance(values, dict):
            yield from ((f"{key}.{inner}", of_inner) for inner, of_inner in values.items())
        else:
            yield key, values


def _read_list(
    key: str, values: Any, hint: Any, metadata: types.MappingProxyType[Any, Any]
) -> tuple[Value, ...]:
    if not isinstance(values, (list, tuple)) or not values:
        raise RecipeError(
            f"The recipe key '{key}' must be a list of values to try, or a range such as {{low = "
            f"1, high = 9}}; got {values!r}."
        )
    values = tuple(check_value(key, value, hint, metadata) for value in values)
    if len(set(values)) < len(values):
        raise RecipeError(f"The recipe key '{key}' names something twice: {list(values)!r}.")
    return values


def _read_range(
    key: str, values: dict[str, Any], hint: Any, metadata: types.MappingProxyType[Any, Any]
) -> Range:
    if hint not in (int, float):
        raise RecipeError(
            f"The recipe key '{key}' must be a list of values to try: only numbers have a range."
        )
    names = [field.name for field in dataclasses.fields(Range)]
    for name in values:
        if name not in names:
            raise RecipeError(
                f"The recipe has an unknown key '{key}.{name}'{suggestion(name, names)}"
            )
    for name in ("low", "high"):
        if name not in values:
            raise RecipeError(
                f"The recipe key '{key}' lacks '{name}': a range has 'low' and 'high'."
            )
    low, high = (
        check_value(f"{key}.{name}", values[name], hint, metadata) for name in ("low", "high")
    )
    of_scale = Range.__dataclass_fields__["scale"]
    scale = check_value(
        f"{key}.scale", values.get("scale", of_scale.default), str, of_scale.metadata
    )
    if low >= high:
        raise RecipeError(
            f"The recipe key '{key}.low' ({low}) must be below '{key}.high' ({high})."
        )
    if scale == "log" and low <= 0:
        raise RecipeError(
            f"The recipe key '{key}.low' must be above 0 for the scale \"log\"; got {low}."
        )
    return Range(low, high, scale)


def examples(values: tuple[Value, ...] | Range) -> Sequence[Value]:
    """Returns values of a key that represent all.

    For a list these are its values; for a range its ends and, for whole numbers, the one after
    `low`: a number that divides both that and `low` divides every one between the ends.
    """
    if not isinstance(values, Range):
        return values
    return (values.low, *([values.low + 1] if isinstance(values.low, int) else []), values.high)


def read_found(config: Mapping[str, Any]) -> SearchResult:
    """Returns what a search found.

    Args:
        config: keras-tuner's, of the best hyper-parameters: what TFX hands to a Trainer.
            `pipeline.entry_points.tuner` put the rest there.
    """
    values = config["values"]
    return {
        # Names of keras-tuner and of the facts have a slash; a recipe's keys have none.
        "values": {key: value for key, value in values.items() if "/" not in key},
        "algorithm": values["tuner/algorithm"],
        "trials": values["tuner/trials"],
        "failed": values["tuner/failed"],
        "measure": values["tuner/measure"],
        "score": values["tuner/score"],
    }


def describe(values: Mapping[str, Value]) -> str:
    """Returns values of a recipe's keys as text."""
    return ", ".join(
        f"{key} = {value:.4g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in values.items()
    )


def summary(found: SearchResult) -> str:
    """Returns the result of `read_found` as a sentence."""
    failed = f", {found['failed']} of them failed" if found["failed"] else ""
    return (
        f"Found by {found['trials']} trials ({found['algorithm']} search{failed}), with "
        f"{found['measure']} {found['score']:.4f}: {describe(found['values'])}."
    )
