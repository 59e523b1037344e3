"""The report as a page: one HTML file that needs no network, script, font or image file.

Sources, references and outputs come from data and models and are not trusted. The template escapes
everything, and the page's content security policy allows no script and no connection, as a second
protection.
"""

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Literal, cast

import jinja2

import serving
from pipeline.common.errors import VerbatimError
from pipeline.metrics import registry
from pipeline.recipes import search_space
from pipeline.recipes.choices import DEFAULT_PLACEHOLDERS
from pipeline.reporting import breakdowns, charts, maps, rows, samples
from pipeline.reporting.facts import RunFacts, SystemFacts, completed, flatten
from pipeline.text.tokenization import Tokenizer

TEMPLATES_DIRECTORY = pathlib.Path(__file__).parent / "templates"
# Its base.css is both pages'.
WEB_DIRECTORY = pathlib.Path(serving.__file__).parent / "web"
MAX_HEAT_MAPS = 6
# Wins, and as many losses.
MAX_EXTREMES = 10
_EXTREMES: tuple[tuple[Literal["wins", "losses"], str], ...] = (
    ("wins", "Largest wins"),
    ("losses", "Largest losses"),
)


class ReportError(VerbatimError, ValueError):
    """A report that cannot be made; its message is one sentence for the user."""


@dataclasses.dataclass(frozen=True)
class Figure:
    """A chart with its title and with what its axes show."""

    title: str
    x: str
    y: str
    chart: charts.Chart


@dataclasses.dataclass(frozen=True)
class SampleList:
    """Samples under a title."""

    title: str
    samples: list[samples.ShownSample]


@dataclasses.dataclass(frozen=True)
class SentenceList:
    """Sentences of language models under a title."""

    title: str
    sentences: list[samples.ShownSentence]


def render_report(facts: RunFacts) -> str:
    """Returns the page of a run or of a comparison.

    Raises:
        ReportError: the facts do not have the form of `pipeline.reporting.facts.RunFacts`.
    """
    try:
        facts = completed(facts)
        view = {
            "facts": facts,
            "systems": [{"segmentation": None, **system} for system in facts["systems"]],
            "metrics": rows.metric_rows(
                facts["systems"], facts["comparison"], facts["comparisons"]
            ),
            "charts": charts.loss_charts(facts["systems"]),
            "breakdowns": breakdown_figures(facts["systems"]),
            "sizes": _size_against_quality(facts["systems"]),
            "slices": rows.slice_table(facts["slices"]),
            "wins_and_losses": _wins_and_losses(facts),
            "sentences": _sentences(facts),
            "recipe_differences": facts["recipe_differences"],
            # Whether the models are language models, whose heat maps read differently.
            "of_streams": any(
                "log_perplexity_by_frequency" in system for system in facts["systems"]
            ),
            "heat_maps": [maps.drawn_map(one) for one in facts["heat_maps"][:MAX_HEAT_MAPS]],
            "samples": samples.shown_samples(
                samples.differing_first(facts["samples"]), tokenizer=_tokenizer(facts)
            ),
            "sample_count": len(facts["samples"]),
            "counts": rows.count_rows(facts["counts"]),
            "stages": rows.bars(
                {
                    stage["name"] + (" (cached)" if stage.get("cached") else ""): stage["seconds"]
                    for stage in facts["stages"]
                }
            ),
            "recipe": list(flatten(facts["recipe"])),
            "tuning": _tuning(facts),
        }
        return _environment().get_template("report.html.jinja").render(view)
    except (
        LookupError,
        TypeError,
        AttributeError,
        ValueError,
        ArithmeticError,
        RecursionError,
        jinja2.UndefinedError,
    ) as error:
        raise ReportError(
            f"The facts of the report do not have the expected form: {error!r}."
        ) from error


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([TEMPLATES_DIRECTORY, WEB_DIRECTORY]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=_number, seconds=_seconds, decimals=_decimals)
    return environment


def _number(value: float | None) -> str:
    """Returns a count with thin spaces between thousands: 12 345."""
    return "" if value is None else f"{value:,}".replace(",", "\u202f")


def _decimals(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def breakdown_figures(systems: Sequence[SystemFacts]) -> list[Figure]:
    """Returns the charts of quality by a word's frequency in training and by length."""
    return [
        Figure(breakdown.chart_title, breakdown.x, breakdown.y, chart)
        for breakdown in breakdowns.CHARTS
        if (chart := charts.category_chart(systems, breakdown))
    ]


def _size_against_quality(systems: Sequence[SystemFacts]) -> list[Figure]:
    """Returns the chart of the first metric against the number of parameters, in a list.

    There is none for two systems, which show no trend.
    """
    if len(systems) < 3:
        return []
    name = next(
        (
            name
            for name in systems[0]["metrics"]
            if all(name in system["metrics"] for system in systems)
        ),
        None,
    )
    if name is None:
        return []
    sized = []
    for index, system in enumerate(systems):
        value = system["metrics"][name]["value"]
        if value is not None and (size := system.get("parameters")):
            sized.append(charts.SizedSystem(index, system["name"], size, float(value)))
    if len(sized) < 3:
        return []
    label = registry.LABELS.get(name, name)
    chart = charts.scatter_chart(sized, label)
    return [Figure("Parameters against quality", "parameters, logarithmic", label, chart)]


def _tokenizer(facts: RunFacts) -> Tokenizer:
    """Returns the tokenizer that finds the placeholders of a run's texts."""
    data = facts["recipe"].get("data", {})
    return Tokenizer(
        dialects=data.get("placeholders", DEFAULT_PLACEHOLDERS),
        own_patterns=data.get("placeholder_patterns", ()),
    )


def _tuning(facts: RunFacts) -> str:
    found = facts["tuning"]
    return search_space.summary(cast(search_space.SearchResult, found)) if found else ""


def _wins_and_losses(facts: RunFacts) -> list[SampleList]:
    if len(facts["systems"]) < 2:
        return []
    return [
        SampleList(title, samples.shown_samples(facts[key], MAX_EXTREMES, _tokenizer(facts)))
        for key, title in _EXTREMES
        if facts[key]
    ]


def _sentences(facts: RunFacts) -> list[SentenceList]:
    return [
        SentenceList(title, [samples.shown_sentence(one) for one in sentences[:MAX_EXTREMES]])
        for key, title in _EXTREMES
        if (sentences := facts["sentences"].get(key))
    ]
