"""The report of a run: a page that a person opens, beside the facts that a machine can read.

`write_report` turns the facts into `DIR/report/index.html`. The facts lie beside it as
`facts.json`, and `verbatim report DIR` renders them again.
"""

import json
import os
import pathlib
from typing import cast

from pipeline.common.whole_files import write_text
from pipeline.reporting.facts import RunFacts, completed
from pipeline.reporting.page import ReportError, render_report

_HOW_TO_MEND = "repeat the run, or the comparison, that wrote them"


def write_report(directory: str | os.PathLike[str], facts: RunFacts) -> pathlib.Path:
    """Writes `report/index.html` and `report/facts.json` below a run's folder.

    Args:
        directory: the run's folder; made if missing.
        facts: what the run found; every key may be missing, and its part of the page is then left
            out.

    Returns:
        The path of `index.html`.

    Raises:
        ReportError: the folder cannot be written, or the facts do not have their form.
    """
    page = render_report(facts)
    content = json.dumps(completed(facts), indent=1, ensure_ascii=False, allow_nan=False)
    folder = pathlib.Path(directory) / "report"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / "facts.json", content + "\n")
        write_text(folder / "index.html", page)
    except OSError as error:
        raise ReportError(f"The report cannot be written to {folder}: {error.strerror}.") from None
    return folder / "index.html"


def load_facts(run_directory: str | os.PathLike[str]) -> RunFacts:
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
        render_report(cast(RunFacts, facts))
    except ReportError as error:
        raise ReportError(
            f"The facts of the report, {path}, do not have the expected form; {_HOW_TO_MEND}."
        ) from error
    return cast(RunFacts, facts)
