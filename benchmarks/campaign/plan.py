"""What a campaign runs and shows: tables with rows, read from a TOML file.

A file of `benchmarks/campaigns/` has a list `tables`; what stands before it are defaults of all its
tables. A row is a recipe with overrides, run once for each seed, or a command of its own; a table
of speed has one command that measures all of its rows. `benchmarks.tables` shows the rows in the
order of the file, with the document's figures beside ours.
"""

import dataclasses
import pathlib
import re
import sys
from collections.abc import Mapping
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from benchmarks.variants import VARIANTS

CAMPAIGNS = pathlib.Path(__file__).parents[1] / "campaigns"
#: What may stand in braces in a command.
PLACES = ("data", "runs", "output", "seed", "json")
#: The kinds of pictures.
PICTURES = ("bars", "growth", "losses")
_NAME = re.compile(r"[A-Za-z0-9_+.]+(-[A-Za-z0-9_+.]+)*")


class PlanError(Exception):
    """A list of runs that cannot be used; its message is one sentence."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A system of a table.

    Attributes:
        name: unique in its table; part of the names of folders and files.
        label: what the table calls it; the name by default.
        variant: a name out of `benchmarks.variants.VARIANTS`, whose overrides come first.
        set: further overrides, as `verbatim run --set` takes them.
        recipe, data: instead of the table's.
        command: what to run instead of `verbatim run`; it writes the same JSON into `{json}`.
            `{data}`, `{runs}`, `{output}` and `{seed}` stand for the folders of the corpora, of
            all runs and of this one, and for the seed.
        shares: the name of a row in whose folders this one works, because it decodes with the same
            trained model.
        system: the number of the system among those of the run.
        paper: the document's figures, by metric, in the unit that the table shows.
        note: a few words, such as why there is no figure.
    """

    name: str
    label: str = ""
    variant: str = ""
    set: tuple[str, ...] = ()
    recipe: str = ""
    data: str | None = None
    command: tuple[str, ...] = ()
    shares: str = ""
    system: int = 0
    paper: dict[str, float] = dataclasses.field(default_factory=dict)
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Column:
    """A column of a table of speed: where its cells come from, and how they are written.

    Attributes:
        key: of the rows' labels or figures.
        title: of the column; the key by default.
        digits: after the point.
        spread: whether the smallest and largest round are shown.
        percent: whether the figure is a share.
    """

    key: str
    title: str = ""
    digits: int = 1
    spread: bool = False
    percent: bool = False


@dataclasses.dataclass(frozen=True)
class Picture:
    """What is drawn of a table.

    Attributes:
        kind: `bars` of the rows; `growth`, curves of figures by a size on logarithmic scales;
            `losses`, the learning curves of each row's first seed.
        title: what it shows.
        figures: the columns that are drawn; bars have one.
        label: the column that names a bar, or holds the sizes of a curve.
        group: the column whose values have bars or curves of their own.
    """

    kind: str = "bars"
    title: str = ""
    figures: tuple[str, ...] = ()
    label: str = ""
    group: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table: the runs that make it, and what it shows.

    Attributes:
        name: unique among all campaigns; that of its result file and of its markers.
        title: what it shows, in a few words.
        source: the document's name, and its table's or figure's.
        recipe: of all rows.
        data: the corpus' path below the folder of the corpora; "" for made-up data.
        made_from: the corpus that `verbatim fetch` has, if `data` is made of one.
        split: what is measured, such as `development`.
        paper_split: what the document measures.
        seeds: of each row.
        set: overrides of all rows.
        metrics: the columns, by name.
        against: the row against which the others are tested; "" for none.
        rows: in the order of the table.
        command: measures the whole table and writes its result file into `{json}`; `rows` then
            only say what is shown.
        alone: whether nothing else may run meanwhile, because speed is measured.
        by_stack: whether each stack has a result file of its own, because speed depends on it.
        columns: of a table of speed.
        picture: what is drawn beside the table; None for nothing.
        transposed: whether the table has a row for each metric, and a column for each system.
    """

    name: str
    title: str = ""
    source: str = ""
    recipe: str = ""
    data: str = ""
    made_from: str = ""
    split: str = ""
    paper_split: str = ""
    seeds: tuple[int, ...] = (1, 2, 3)
    set: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    against: str = ""
    rows: tuple[Row, ...] = ()
    command: tuple[str, ...] = ()
    alone: bool = False
    by_stack: bool = False
    columns: tuple[Column, ...] = ()
    picture: Picture | None = None
    transposed: bool = False

    def row(self, name: str) -> Row:
        """Returns the row of a name."""
        return next(row for row in self.rows if row.name == name)


@dataclasses.dataclass(frozen=True)
class Plan:
    """A campaign: a name and its tables."""

    name: str
    tables: tuple[Table, ...]


def load(name_or_path: str) -> Plan:
    """Reads a campaign by its name, or from a TOML file.

    Raises:
        PlanError: there is no such campaign, or it cannot be used.
    """
    path = pathlib.Path(name_or_path)
    if path.suffix != ".toml":
        path = CAMPAIGNS / f"{name_or_path}.toml"
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        known = ", ".join(sorted(path.stem for path in CAMPAIGNS.glob("*.toml")))
        raise PlanError(
            f"The campaign {path} cannot be read: {error.strerror}. The campaigns are: {known}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"The campaign {path} is not valid TOML: {error}.") from None
    tables = tree.pop("tables", [])
    if not tables:
        raise PlanError(f"The campaign {path} has no [[tables]].")
    plan = Plan(path.stem, tuple(_table({**tree, **table}, path) for table in tables))
    names = [table.name for table in plan.tables]
    if len(set(names)) < len(names):
        raise PlanError(f"The campaign {path} has two tables of one name.")
    return plan


def load_all() -> list[Plan]:
    """Reads every campaign that is committed."""
    return [load(str(path)) for path in sorted(CAMPAIGNS.glob("*.toml"))]


def _table(tree: Mapping[str, Any], path: pathlib.Path) -> Table:
    where = f"{path}, table {tree.get('name', '?')}"
    rows = tuple(
        _of(Row, row, f"{where}, row {row.get('name', '?')}") for row in tree.get("rows", ())
    )
    columns = tuple(_of(Column, column, f"{where}, columns") for column in tree.get("columns", ()))
    drawn = tree.get("picture")
    picture = _of(Picture, drawn, f"{where}, picture") if drawn else None
    table = _of(Table, {**tree, "rows": rows, "columns": columns, "picture": picture}, where)
    check(table, where)
    return table


def _of(kind: type[Any], tree: Mapping[str, Any], where: str) -> Any:
    """Returns a dataclass of the values that TOML holds, whose lists become tuples."""
    known = {field.name: field for field in dataclasses.fields(kind)}
    if unknown := sorted(set(tree) - set(known)):
        raise PlanError(f"{where}: there is no key {unknown[0]}; the keys are {', '.join(known)}.")
    values = {
        key: tuple(value) if isinstance(value, list) else value for key, value in tree.items()
    }
    for key, value in values.items():
        default = known[key].default
        expected = type(default) if default not in (dataclasses.MISSING, None) else None
        if expected and type(value) is not expected:
            raise PlanError(f"{where}: {key} is {value!r}, which is no {expected.__name__}.")
    try:
        return kind(**values)
    except TypeError:
        raise PlanError(f"{where}: its name is missing.") from None


def check(table: Table, where: str) -> None:
    """Refuses a table that cannot be run.

    Raises:
        PlanError: it cannot.
    """
    names = [row.name for row in table.rows]
    for name in (table.name, *names):
        if not _NAME.fullmatch(name):
            raise PlanError(f"{where}: the name {name!r} would make no good file name.")
    if len(set(names)) < len(names):
        raise PlanError(f"{where}: two rows have one name.")
    for row in table.rows:
        if row.variant and row.variant not in VARIANTS:
            raise PlanError(f"{where}: there is no variant {row.variant}.")
        if row.shares and row.shares not in names[: names.index(row.name)]:
            raise PlanError(f"{where}: {row.name} shares the folder of {row.shares}, no row above.")
        if not (row.command or row.recipe or table.recipe or table.command):
            raise PlanError(f"{where}: the row {row.name} has neither recipe nor command.")
    for command in (table.command, *(row.command for row in table.rows)):
        for word in command:
            if unknown := set(re.findall(r"\{(.*?)\}", word)) - set(PLACES):
                raise PlanError(f"{where}: {{{unknown.pop()}}} stands for nothing in a command.")
    if table.picture and table.picture.kind not in PICTURES:
        raise PlanError(f"{where}: there is no kind of picture {table.picture.kind}.")
    if table.against and table.against not in names:
        raise PlanError(f"{where}: there is no row {table.against} to test against.")
    if table.by_stack and not table.command:
        raise PlanError(f"{where}: by_stack is for a table that a command measures as a whole.")
    if not table.rows and not table.command:
        raise PlanError(f"{where}: it has neither rows nor a command.")
