"""The card of a pushed model: its data, its quality and its limits (Mitchell et al., 2019).

A card is made when a run has measured its model, that is after the push. It is beside the version's
folder, as `model_card_VERSION.json` and `.md`: a version that is being served is not touched, and
servers only read folders named by numbers.
"""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, cast

from pipeline.common.whole_files import write_text
from pipeline.metrics import registry
from pipeline.metrics.base import MetricResult
from pipeline.recipes import search_space
from pipeline.reporting import score_tables
from pipeline.reporting.facts import MetricFacts, RunFacts, SliceFacts, metric_result

# In the text; the JSON has them all.
_MOST_SLICES = 20
_MEASURED_ON = (
    "The metrics hold for texts like those of the test split; for other texts, measure "
    "with `verbatim evaluate` first."
)


@dataclasses.dataclass(frozen=True)
class ModelUse:
    """The card's text on a model's use, from its task.

    Attributes:
        languages: `source_language` and `target_language`, where the task has them.
        limits: what one must know before trusting the model, a sentence each.
    """

    languages: dict[str, str]
    limits: tuple[str, ...]


class CardModel(TypedDict):
    """The card's facts of the model itself."""

    task: str
    copy_mechanism: str
    parameters: int | None
    training_seconds: float | None
    updates: int | None
    tuning: Mapping[str, Any]
    versions: dict[str, str]


class ModelCard(TypedDict):
    """A card.

    Attributes:
        name, version, description: the model's.
        model: its head and its training.
        data: languages, files and counts.
        metrics: of the model.
        baselines: metrics by other system.
        p_values: of the model against its baseline, by metric.
        slices: quality by slice of the test split.
        gate: why the model was pushed, one sentence.
        limits: what one must know before trusting the model.
        licence: of the data and of the software.
        recipe: the whole recipe.
    """

    name: str
    version: str
    description: str
    model: CardModel
    data: dict[str, Any]
    metrics: dict[str, MetricFacts]
    baselines: dict[str, dict[str, MetricFacts]]
    p_values: dict[str, float | None]
    slices: list[SliceFacts]
    gate: str
    limits: list[str]
    licence: dict[str, str]
    recipe: dict[str, Any]


def write_model_card(
    models_directory: str | os.PathLike[str],
    version: str | int,
    facts: RunFacts,
    use: ModelUse,
) -> str:
    """Writes the card of a version.

    Args:
        models_directory: the folder that holds the version's folder, on this machine or in a
            bucket.
        version: its name, a number.
        facts: the facts of the run, with `recipe` and `systems`.
        use: what the recipe's task says of it.

    Returns:
        The path of the Markdown file.
    """
    card = make_card(version, facts, use)
    path = f"{str(models_directory).rstrip('/')}/model_card_{version}"
    _write(f"{path}.json", json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    _write(f"{path}.md", to_markdown(card))
    return f"{path}.md"


def make_card(version: str | int, facts: RunFacts, use: ModelUse) -> ModelCard:
    """Returns the card; arguments as for `write_model_card`."""
    recipe, system = facts["recipe"], facts["systems"][0]
    data, counts = recipe["data"], facts["counts"]
    others = facts["systems"][1:]
    return {
        "name": recipe["name"],
        "version": str(version),
        "description": recipe["description"],
        "model": {
            "task": recipe["task"],
            "copy_mechanism": system["name"],
            "parameters": system.get("parameters"),
            "training_seconds": system.get("seconds"),
            "updates": system.get("updates"),
            "tuning": facts.get("tuning", {}),
            "versions": facts["versions"],
        },
        "data": {
            **use.languages,
            **{key: list(data[key]) for key in ("train_files", "eval_files", "test_files")},
            "counts": counts,
        },
        "metrics": system["metrics"],
        "baselines": {other["name"]: other["metrics"] for other in others},
        "p_values": facts["comparison"],
        "slices": facts.get("slices", []),
        "gate": facts["blessing_reason"],
        "limits": [_MEASURED_ON, *use.limits],
        "licence": {
            "data": recipe.get("licence")
            or (
                "The recipe does not say (key `licence`); the conditions of the data's licences "
                "apply to the model's outputs."
            ),
            "software": "The program that made and serves this model is licensed under Apache-2.0.",
        },
        "recipe": recipe,
    }


def to_markdown(card: ModelCard) -> str:
    """Returns a card as Markdown."""
    lines = [f"# Model card: {card['name']}, version {card['version']}", ""]
    lines += [card["description"], ""] if card["description"] else []
    lines += ["## Model", "", *_model_lines(card["model"])]
    lines += ["", "## Data", "", *_data_lines(card["data"])]
    lines += ["", "## Metrics", "", *_metrics_table(card), "", card["gate"]]
    if card["slices"]:
        lines += ["", "### Slices of the test split", "", *_slices_table(card["slices"])]
    lines += ["", "## Limits", "", *(f"- {limit}" for limit in card["limits"])]
    licence = (f"- {key.capitalize()}: {text}" for key, text in card["licence"].items())
    lines += ["", "## Licence", "", *licence]
    recipe = json.dumps(card["recipe"], indent=1, ensure_ascii=False)
    lines += ["", "## Recipe", "", "```json", recipe, "```", ""]
    return "\n".join(lines)


def _model_lines(model: CardModel) -> list[str]:
    lines = [f"- Task: {model['task']}; copy mechanism: {model['copy_mechanism']}"]
    if model["parameters"]:
        lines.append(f"- {model['parameters']:,} parameters")
    if model["training_seconds"]:
        updates = f" and {model['updates']:,} updates" if model["updates"] else ""
        lines.append(f"- Trained for {model['training_seconds']:.0f} s{updates}")
    if model["tuning"]:
        tuning = search_space.summary(cast(search_space.SearchResult, model["tuning"]))
        lines.append(f"- Hyper-parameters: {_inline(tuning)}")
    versions = ", ".join(f"{name} {version}" for name, version in model["versions"].items())
    return [*lines, f"- Made with {versions}"]


def _data_lines(data: Mapping[str, Any]) -> list[str]:
    lines = []
    if "source_language" in data:
        lines.append(f"- From `{data['source_language']}` to `{data['target_language']}`")
    for key in ("train_files", "eval_files", "test_files"):
        if data[key]:
            lines.append(
                f"- {key.partition('_')[0]}: {', '.join(f'`{name}`' for name in data[key])}"
            )
    counts = data["counts"]
    if counts.get("kept") is not None:
        lines.append(
            f"- {counts['read']:,} records read, {counts['kept']:,} kept, {counts['rejected']:,} "
            "rejected"
        )
    if new := counts.get("recombined"):
        lines.append(f"- {new:,} new training pairs made of those kept (`data.recombinations`)")
    sizes = counts.get("by_split") or counts.get("words_by_split") or {}
    if sizes:
        unit = "pairs" if "by_split" in counts else "words"
        lines.append(
            f"- {unit} by split: " + ", ".join(f"{name} {size:,}" for name, size in sizes.items())
        )
    for reason, count in (counts.get("by_reason") or {}).items():
        lines.append(f"- rejected, {_inline(reason)}: {count:,}")
    return lines


def _metrics_table(card: ModelCard) -> list[str]:
    systems = {card["model"]["copy_mechanism"]: card["metrics"], **card["baselines"]}
    names = list(dict.fromkeys(name for metrics in systems.values() for name in metrics))
    with_p = bool(card["p_values"])
    header = ["metric", *systems, *(["p-value"] if with_p else [])]
    rows = [header, ["---"] * len(header)]
    for name in names:
        row = [registry.LABELS.get(name, name)]
        for metrics in systems.values():
            row.append(_cell(name, metrics[name]) if name in metrics else "–")
        if with_p:
            p_value = card["p_values"].get(name)
            row.append("–" if p_value is None else f"{p_value:.3g}")
        rows.append(row)
    signatures = [
        f"- {registry.LABELS.get(name, name)}: `{facts['signature']}`"
        for name, facts in card["metrics"].items()
        if facts.get("signature")
    ]
    lines = _table(rows)
    if any(facts.get("low") is not None for facts in card["metrics"].values()):
        lines += ["", "In brackets: 95 % bootstrap interval over segments."]
    return [*lines, *(["", "Signatures:", "", *signatures] if signatures else [])]


def _cell(name: str, facts: MetricFacts) -> str:
    result = metric_result(name, facts)
    text = score_tables.format_value(result)
    if result.low is not None:
        text += (
            f" [{score_tables.format_value(result, result.low).removesuffix(' %')}, "
            f"{score_tables.format_value(result, result.high)}]"
        )
    return text


def _slices_table(slices: Sequence[SliceFacts]) -> list[str]:
    names = list(dict.fromkeys(name for one in slices for name in one["metrics"]))
    rows = [
        ["slice", "pairs", *(registry.LABELS.get(name, name) for name in names)],
        ["---"] * (len(names) + 2),
    ]
    for one in slices[:_MOST_SLICES]:
        values = (one["metrics"].get(name) for name in names)
        cells = (
            score_tables.format_value(
                MetricResult(name, value, unit=registry.unit_and_direction(name)[0])
            )
            for name, value in zip(names, values)
        )
        rows.append([one["slice"], str(one["n"]), *cells])
    more = len(slices) - _MOST_SLICES
    return [*_table(rows), *(["", f"{more} more slices are in the JSON."] if more > 0 else [])]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(_inline(cell) for cell in row) + " |" for row in rows]


def _inline(text: str) -> str:
    """Returns a text that comes from data as plain text in a line of Markdown."""
    text = " ".join(text.split())
    return "".join(
        f"\\{character}" if character in "\\`*_|<>[]#" else character for character in text
    )


def _write(path: str, text: str) -> None:
    # What is not valid text, such as a lone surrogate, came from the data.
    write_text(path, text.encode("utf-8", errors="replace").decode("utf-8"))
