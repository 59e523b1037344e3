"""The report of a run: one HTML file that a person opens, from facts that a machine can read.

`write_report` turns the facts into `DIR/report/index.html`, which needs nothing else: no network,
no script, no font, no image file. The facts lie beside it as `facts.json`, and `verbatim report
DIR` renders them anew.

Sources, references and outputs come from data and models and are not trusted: the template escapes
everything, and the page's content security policy allows no script and no connection, should
something slip through.
"""

import json
import math
import os
import pathlib

import jinja2

import serving
from pipeline.common.errors import VerbatimError
from pipeline.metrics import registry, resampling
from pipeline.metrics.base import MetricResult
from pipeline.recipes import search_space
from pipeline.reporting import charts, score_tables
from pipeline.text.tokenization import JOINER, placeholders

TEMPLATES_DIRECTORY = pathlib.Path(__file__).parent / "templates"
WEB_DIRECTORY = pathlib.Path(serving.__file__).parent / "web"  # its base.css is both pages'
MAX_SAMPLES = 20
MAX_HEAT_MAPS = 6
MAX_EXTREMES = 10  # wins, and losses
MAX_SLICES = 60
TOLD_APART = (
    2.0  # a word that one language model holds for so much likelier than the other is marked
)

_HOW_TO_MEND = "repeat the run, or the comparison, that wrote them"

_DEFAULTS = {
    "title": "Verbatim run",
    "recipe": {},
    "tuning": {},
    "versions": {},
    "counts": {},
    "systems": [],
    "comparison": {},
    "comparisons": {},
    "samples": [],
    "wins": [],
    "losses": [],
    "sentences": {},
    "heat_maps": [],
    "slices": [],
    "blessed": None,
    "blessing_reason": "",
    "note": "",
    "recipe_differences": [],
    "stages": [],
}


class ReportError(VerbatimError, ValueError):
    """A report that cannot be made; its message is one sentence for the user."""


def write_report(directory, facts):
    """Writes `report/index.html` and `report/facts.json` below a run's folder.

    Args:
        directory: the run's folder; made if missing.
        facts: a dict; every key may be missing, and its part of the page is then left out.
            title: str.
            recipe: the recipe as nested dicts, with the values that a search found.
            tuning: what `pipeline.recipes.search_space.read_found` returns, or nothing where there
                was no search.
            versions: dict from package to version.
            counts: {"read", "kept", "rejected": int, "by_reason": {reason: int}, "by_split":
                {split: int}}.
            systems: list of {"name": str, "metrics": {name: `MetricResult.to_dict()`, at least
                "value"}, "curves": [{"epoch": int, "seconds": float, "loss": float, "eval_loss":
                float, ...}], "parameters": int, "seconds": float, "by_length": [{"words": str,
                "bleu": float or None, "reference_length": int}], "by_frequency": [{"seen": str,
                "f1": float or None, "reference_words": int}], or, of a language model,
                "log_perplexity_by_frequency": [{"seen": str, "log_perplexity": float or None,
                "words": int}], "segmentation": what `segmentation_scores.of_answers` returns, or
                None}; the first is the run's own model, the second its baseline.
            comparison: {metric: p-value of the first system against the second}.
            comparisons: for more than two systems: {system: {metric: p-value of the first system
                against it}}.
            samples: list of {"source", "reference": str, "outputs": {system: {"text": str,
                "tokens": [str], "copied_from": [int], "copy_probability": [float], "source_tokens":
                [str]}}}; positions as in the signature `serving_default`: -1 for a token that was
                not copied.
            wins, losses: like samples, where the first system gains or loses most against the
                second, with "gain" in chrF.
            sentences: of two language models, what
                `pipeline.evaluation.perplexity_of_text.extremes` returns.
            slices: what `pipeline.evaluation.gate.read_slices` returns.
            note: one sentence on how far the systems can be compared.
            recipe_differences: list of {"key": str, "values": a text for each system}.
            heat_maps: list of {"source_tokens": [S], "tokens": [T], "attention": [T][S],
                "copy_probability": [T], "copied_from": [T]}.
            blessed: bool or None. blessing_reason: one sentence.
            stages: list of {"name": str, "seconds": float}.

    Returns:
        The path of `index.html`.

    Raises:
        ReportError: the folder cannot be written, or the facts do not have this form.
    """
    page = render_report(facts)
    facts = _plain({**_DEFAULTS, **facts})
    folder = pathlib.Path(directory) / "report"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(
            folder / "facts.json",
            json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        )
        return _write(folder / "index.html", page)
    except OSError as error:
        raise ReportError(f"The report cannot be written to {folder}: {error.strerror}.") from None


def load_facts(run_directory):
    """Returns the facts that `write_report` stored in a run's folder.

    Raises:
        ReportError: there are none, they cannot be read, or no page can be made of them.
    """
    path = pathlib.Path(run_directory) / "report" / "facts.json"
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReportError(
            f"There is no report in {run_directory}: {path} does not exist; give the --output "
            "folder of a finished run."
        ) from None
    except OSError as error:
        raise ReportError(
            f"The facts of the report, {path}, cannot be read: {error.strerror}."
        ) from None
    except (ValueError, RecursionError) as error:
        raise ReportError(
            f"The facts of the report, {path}, are not valid JSON: {error}; {_HOW_TO_MEND}."
        ) from None
    if not isinstance(facts, dict):
        raise ReportError(
            f"The facts of the report, {path}, must be one JSON object; {_HOW_TO_MEND}."
        )
    try:
        render_report(facts)
    except ReportError as error:
        raise ReportError(
            f"The facts of the report, {path}, do not have the expected form; {_HOW_TO_MEND}."
        ) from error
    return facts


def render_report(facts):
    """Returns the page as a string; `facts` as in `write_report`.

    Raises:
        ReportError: the facts do not have the form that `write_report` states.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([TEMPLATES_DIRECTORY, WEB_DIRECTORY]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=_number, seconds=_seconds, decimals=_decimals)
    try:
        facts = _plain({**_DEFAULTS, **facts})
        view = {
            "facts": facts,
            "systems": [{"segmentation": None, **system} for system in facts["systems"]],
            "metrics": _metric_rows(facts["systems"], facts["comparison"], facts["comparisons"]),
            "charts": charts.loss_charts(facts["systems"]),
            "breakdowns": _breakdowns(facts["systems"]),
            "sizes": _size_against_quality(facts["systems"]),
            "slices": _slices(facts["slices"]),
            "wins_and_losses": [
                {"title": title, "samples": _samples(facts[key], shown=MAX_EXTREMES)}
                for key, title in (("wins", "Largest wins"), ("losses", "Largest losses"))
                if facts[key] and len(facts["systems"]) > 1
            ],
            "sentences": [
                {
                    "title": title,
                    "sentences": [
                        _sentence(sentence) for sentence in facts["sentences"][key][:MAX_EXTREMES]
                    ],
                }
                for key, title in (("wins", "Largest wins"), ("losses", "Largest losses"))
                if facts["sentences"].get(key)
            ],
            "recipe_differences": facts["recipe_differences"],
            "heat_maps": [_heat_map(heat_map) for heat_map in facts["heat_maps"][:MAX_HEAT_MAPS]],
            "samples": _samples(_differing_first(facts["samples"])),
            "sample_count": len(facts["samples"]),
            "counts": _counts(facts["counts"]),
            "stages": _bars({stage["name"]: stage["seconds"] for stage in facts["stages"]}),
            "recipe": list(flatten(facts["recipe"])),
            "tuning": search_space.summary(facts["tuning"]) if facts["tuning"] else "",
        }
        return environment.get_template("report.html.jinja").render(view)
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


def _plain(value):
    """Returns a value as JSON has it:
    NumPy's numbers and arrays as Python's, bytes as text, NaN as None.
    """
    if isinstance(value, dict):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        # A lone surrogate cannot be written as UTF-8.
        return value.encode("utf-8", errors="replace").decode("utf-8")
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _write(path, text):
    """Writes a file in one step, so that no reader ever sees half of it."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
    return path


def _number(value):
    """Returns a count with thin spaces between thousands: 12 345."""
    return "" if value is None else f"{value:,}".replace(",", "\u202f")


def _decimals(value, digits=3):
    return "" if value is None else f"{value:.{digits}f}"


def _seconds(value):
    if value is None:
        return ""
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _breakdowns(systems):
    """Returns the charts of quality by a word's frequency in training and by sentence length."""
    found = [
        {
            "title": title,
            "x": x,
            "y": y,
            "chart": charts.category_chart(systems, key, category, value, weight),
        }
        for title, x, y, key, category, value, weight in (
            (
                *(
                    "By word frequency",
                    "times that training saw the word",
                    "F1 of words",
                    "by_frequency",
                ),
                *("seen", "f1", "reference_words"),
            ),
            (
                *("By length", "words of the reference", "BLEU", "by_length"),
                *("words", "bleu", "reference_length"),
            ),
            (
                *("By length", "words of the reference", "F1 of words", "f1_by_length"),
                *("words", "f1", "reference_words"),
            ),
            (
                *("By word frequency", "times that training saw the word", "log perplexity"),
                *("log_perplexity_by_frequency", "seen", "log_perplexity", "words"),
            ),
        )
    ]
    return [breakdown for breakdown in found if breakdown["chart"]]


def _size_against_quality(systems):
    """Returns the chart of the first metric against the number of parameters, in a list;
    none for two systems, which show no trend.
    """
    if len(systems) < 3:
        return []
    shared = (
        name
        for name in systems[0]["metrics"]
        if all(name in system["metrics"] for system in systems)
    )
    name = next(shared, None)
    points = [
        (index, system["name"], system["parameters"], float(system["metrics"][name]["value"]))
        for index, system in enumerate(systems)
        if name and system.get("parameters") and system["metrics"][name]["value"] is not None
    ]
    if len(points) < 3:
        return []
    label = registry.LABELS.get(name, name)
    chart = charts.scatter_chart(points, label)
    return [
        {
            "title": "Parameters against quality",
            "x": "parameters, logarithmic",
            "y": label,
            "chart": chart,
        }
    ]


def _slices(slices):
    """Returns the table of metrics by slice: {"metrics":
    labels, "rows": [{"name", "n", "cells"}], "left_out": int}.
    """
    names = list(dict.fromkeys(name for one in slices for name in one["metrics"]))
    rows = []
    for one in slices[:MAX_SLICES]:
        cells = []
        for name in names:
            value, before = one["metrics"].get(name), one["last_blessed"].get(name)
            result = _metric_result(name, {"value": value})
            cells.append(
                {
                    "value": score_tables.format_value(result),
                    "last_blessed": None
                    if before is None
                    else score_tables.format_value(result, before),
                }
            )
        rows.append({"name": one["slice"], "n": one["n"], "cells": cells})
    return {
        "metrics": [registry.LABELS.get(name, name) for name in names],
        "rows": rows,
        "left_out": max(0, len(slices) - MAX_SLICES),
    }


def _metric_rows(systems, p_values, comparisons=None):
    """Returns a row of the headline table for each metric."""
    names = list(dict.fromkeys(name for system in systems for name in system["metrics"]))
    rows = [_metric_row(name, systems, p_values.get(name)) for name in names]
    for name, row in zip(names, rows):
        for system, cell in zip(systems, row["cells"]):
            p_value = (comparisons or {}).get(system["name"], {}).get(name)
            cell["versus"] = None if p_value is None else _versus(name, systems[0], system, p_value)
    return rows


def _versus(name, first, system, p_value):
    """Returns how a system compares with the first on a metric:
    p-value, and `better` or `worse` where that is clear.
    """
    results = [_metric_result(name, one["metrics"].get(name)) for one in (system, first)]
    return {"p_value": _p_value(p_value), "side": resampling.verdict(*results, p_value)}


def _p_value(value):
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def _metric_row(name, systems, p_value):
    results = [_metric_result(name, system["metrics"].get(name)) for system in systems]
    known = [result for result in results if result is not None and result.value is not None]
    lower_is_better = bool(known) and known[0].lower_is_better
    best = None
    if name not in registry.NEUTRAL and len({result.value for result in known}) > 1:
        best = (min if lower_is_better else max)(result.value for result in known)
    row = {
        "label": registry.LABELS.get(name, name),
        "lower_is_better": lower_is_better,
        "signature": next((result.signature for result in known if result.signature), ""),
        "n": next((result.details["n"] for result in known if "n" in result.details), None),
        "cells": [],
        "p_value": None if p_value is None else _p_value(p_value),
        "winner": None,
        "whiskers": _whiskers(results, systems),
    }
    for result in results:
        cell = {"value": "–", "interval": "", "best": False}
        if result is not None:
            cell["value"] = score_tables.format_value(result)
            cell["best"] = result.value is not None and result.value == best
            if result.low is not None and result.high is not None:
                low, high = (
                    score_tables.format_value(result, end) for end in (result.low, result.high)
                )
                cell["interval"] = f"{low.removesuffix(' %')} – {high}"
        row["cells"].append(cell)
    # The p-value compares the first two systems, so the win goes to one of them, whatever a third
    # may reach.
    if len(results) > 1:
        row["winner"] = {"better": 0, "worse": 1}.get(resampling.verdict(*results[:2], p_value))
    return row


def metric_results(system):
    """Returns a system's metrics, as its facts have them, as a dict of `MetricResult`."""
    return {name: _metric_result(name, facts) for name, facts in system["metrics"].items()}


def _metric_result(name, facts):
    if facts is None:
        return None
    factory_unit, lower_is_better = registry.unit_and_direction(name)
    return MetricResult(
        name=name,
        value=facts.get("value"),
        low=facts.get("low"),
        high=facts.get("high"),
        signature=facts.get("signature") or "",
        details=facts.get("details") or {},
        unit=facts.get("unit") or factory_unit,
        lower_is_better=facts.get("lower_is_better", lower_is_better),
    )


def _whiskers(results, systems):
    """Returns points and intervals on a common line 0 to 100, for a small drawing beside the
    numbers.
    """
    ends = [
        end
        for result in results
        if result is not None and result.value is not None
        for end in (result.value, result.low, result.high)
        if end is not None
    ]
    if not ends or max(ends) == min(ends):
        return []
    low, width = min(ends), max(ends) - min(ends)

    def place(value):
        return round(4 + 92 * (value - low) / width, 2)

    return [
        {
            "system": system["name"],
            "value": place(result.value),
            "low": None if result.low is None else place(result.low),
            "high": None if result.high is None else place(result.high),
            "index": index,
        }
        for index, (system, result) in enumerate(zip(systems, results))
        if result is not None and result.value is not None
    ]


_CELL_WIDTH, _CELL_HEIGHT, _CHARACTER = (
    30,
    26,
    7.3,
)  # user units of the heat map; a character of its 12 px font


def _heat_map(facts):
    """Returns the geometry of one heat map: rows are output tokens, columns are source tokens."""
    source_tokens = _strip_padding(facts["source_tokens"])
    tokens = _strip_padding(facts["tokens"])
    source_tokens = [_without_joiner(token) for token in source_tokens]
    text, source_text = _join_tokens(tokens), _join_tokens(_strip_padding(facts["source_tokens"]))
    tokens = [_without_joiner(token) for token in tokens]
    sources = [_shorten(token) for token in source_tokens]
    labels = [_shorten(token) for token in tokens]
    left = 14 + _CHARACTER * max((len(label) for label in labels), default=0)
    top = 16 + _CHARACTER * 0.78 * max((len(label) for label in sources), default=0)
    copy_x = left + _CELL_WIDTH * len(sources) + 14
    rows = []
    for row, token in enumerate(tokens):
        origin = facts["copied_from"][row]
        copied = 0 <= origin < len(source_tokens)
        probability = facts["copy_probability"][row] or 0.0
        cells = []
        for column, source in enumerate(source_tokens):
            weight = facts["attention"][row][column] or 0.0
            cells.append(
                {
                    "x": left + _CELL_WIDTH * column,
                    "shade": round(min(1.0, max(0.0, weight)), 3),
                    "label": f"{100 * weight:.0f}" if weight >= 0.05 else "",
                    "strength": _strength(weight),
                    "copied": copied and column == origin,
                    "title": f"“{token}” looks at “{source}” with {weight:.3f}"
                    + (
                        f"; copied from it, probability {probability:.3f}"
                        if copied and column == origin
                        else ""
                    ),
                }
            )
        rows.append(
            {
                "y": top + _CELL_HEIGHT * row,
                "label": labels[row],
                "token": token,
                "cells": cells,
                "copied": copied,
                "origin": source_tokens[origin] if copied else "",
                "shade": round(min(1.0, max(0.0, probability)), 3),
                "strength": _strength(probability),
                "percent": f"{100 * probability:.0f}",
                "probability": f"{probability:.3f}",
            }
        )
    columns = [
        {"x": left + _CELL_WIDTH * (column + 0.5), "label": sources[column], "token": token}
        for column, token in enumerate(source_tokens)
    ]
    return {
        "name": facts.get("system", ""),
        "text": text,
        "source": source_text,
        "width": math.ceil(copy_x + _CELL_WIDTH + 46),
        "height": math.ceil(top + _CELL_HEIGHT * len(rows) + 4),
        "left": left,
        "top": top,
        "copy_x": copy_x,
        "cell_width": _CELL_WIDTH,
        "cell_height": _CELL_HEIGHT,
        "columns": columns,
        "rows": rows,
    }


def _strip_padding(tokens):
    tokens = list(tokens)
    while tokens and not tokens[-1]:
        tokens.pop()
    return tokens


def _without_joiner(token):
    """Returns a token as a label;
    the joiner is in few fonts, so where it stands alone an undertie stands for it.
    """
    return token.replace(JOINER, "") or ("\u203f" if token else "")


def _strength(shade):
    """Returns the class of a label over a shade:
    from where on it needs the other text colour, by page colour.
    """
    return "strong" if shade >= 0.78 else "medium" if shade >= 0.57 else ""


def _shorten(token, limit=22):
    return token if len(token) <= limit else token[: limit - 1] + "…"


def _join_tokens(tokens):
    return "".join(piece["space"] + piece["text"] for piece in _pieces(tokens))


def _pieces(tokens):
    """Returns for each token its text without joiner, and the space that goes before it."""
    pieces = []
    touching = True  # nothing goes before the first token
    for index, token in enumerate(tokens):
        space = "" if touching or token.startswith(JOINER) else " "
        touching = token.endswith(JOINER)
        pieces.append({"text": token.replace(JOINER, ""), "space": space, "index": index})
    return [piece for piece in pieces if piece["text"]]


def _differing_first(samples):
    return sorted(
        samples,
        key=lambda sample: len({output["text"] for output in sample["outputs"].values()}) <= 1,
    )


def _samples(samples, shown=MAX_SAMPLES):
    """Returns the first samples as they are shown."""
    return [
        {
            "gain": sample.get("gain"),
            "source": sample["source"],
            "reference": sample["reference"],
            "outputs": [
                _sample_output(name, output, sample["source"], sample["reference"])
                for name, output in sample["outputs"].items()
            ],
        }
        for sample in samples[:shown]
    ]


def _sample_output(name, output, source, reference):
    tokens = _strip_padding(output.get("tokens") or [])
    copied_from = output.get("copied_from") or []
    probabilities = output.get("copy_probability") or []
    source_tokens = _strip_padding(output.get("source_tokens") or [])
    pieces = _pieces(tokens) if tokens else [{"text": output["text"], "space": "", "index": None}]
    for piece in pieces:
        index = piece.pop("index")
        piece["title"] = ""
        if index is not None and index < len(copied_from) and copied_from[index] >= 0:
            origin = copied_from[index]
            piece["title"] = f"copied from source token {origin + 1}"
            if origin < len(source_tokens):
                piece["title"] += f", “{source_tokens[origin]}”"
            if index < len(probabilities) and probabilities[index] is not None:
                piece["title"] += f", probability {probabilities[index]:.2f}"
    wanted, found = sorted(placeholders(source)), sorted(placeholders(output["text"]))
    return {
        "name": name,
        "pieces": pieces,
        "exact": output["text"].strip() == reference.strip(),
        "broken": bool(wanted or found) and wanted != found,
    }


def _sentence(sentence):
    """Returns a sentence that two language models scored, with what they gave the words that tell
    them apart.
    """
    pieces = []
    for word, (own, other) in zip(sentence["words"], sentence["probabilities"], strict=True):
        ahead = own >= TOLD_APART * other
        apart = ahead or other >= TOLD_APART * own
        title = (
            f"“{word.strip() or 'line end'}”: probability {own:.2g} against {other:.2g}"
            if apart
            else ""
        )
        pieces.append({"text": word.strip() or "¶", "title": title, "ahead": ahead})
    return {"gain": sentence["gain"], "pieces": pieces}


def _counts(counts):
    """Returns the headline numbers of the data, and bars of splits and of reasons for rejection."""
    return {
        "numbers": [
            (key, counts[key])
            for key in ("read", "kept", "rejected")
            if counts.get(key) is not None
        ],
        "rejected_share": counts["rejected"] / counts["read"]
        if counts.get("read") and "rejected" in counts
        else None,
        "splits": _bars(counts.get("by_split") or {}),
        "reasons": _bars(
            dict(sorted((counts.get("by_reason") or {}).items(), key=lambda item: -item[1]))
        ),
    }


def _bars(values):
    largest = max((value or 0 for value in values.values()), default=0)
    return [
        {
            "name": name,
            "value": value,
            "percent": round(100 * (value or 0) / largest, 1) if largest else 0,
        }
        for name, value in values.items()
    ]


def flatten(tree, prefix=""):
    """Yields (dotted key, value as text) of nested dicts, such as a recipe."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)
