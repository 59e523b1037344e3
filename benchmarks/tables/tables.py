"""All tables by name: what the campaigns list, and what the result files hold."""

import pathlib
from collections.abc import Iterable

from benchmarks.campaign.plan import Plan, PlanError, Table
from benchmarks.records import record
from benchmarks.records.record import TableRecord
from benchmarks.tables import measured, pictures, summaries, trained


class Tables:
    """The tables that a page may show.

    Args:
        plans: the campaigns.
        results: folder of the result files.
        summary_file: TOML file of the summaries.

    Attributes:
        plans: the tables by name.
        campaigns: the name of each table's campaign.
        records: the figures of the tables that are measured, on the newest stack.
        older: the figures on other stacks, the newest first, of tables with `by_stack`.
        summaries: by name.

    Raises:
        PlanError: two tables have one name.
        RecordError: a result file cannot be read.
    """

    def __init__(
        self,
        plans: Iterable[Plan],
        results: pathlib.Path = record.RESULTS,
        summary_file: pathlib.Path = summaries.SUMMARIES,
    ) -> None:
        self.plans: dict[str, Table] = {}
        self.campaigns: dict[str, str] = {}
        for plan in plans:
            for table in plan.tables:
                if table.name in self.plans:
                    raise PlanError(f"There are two tables of the name {table.name}.")
                self.plans[table.name] = table
                self.campaigns[table.name] = plan.name
        self.records: dict[str, TableRecord] = {}
        self.older: dict[str, list[TableRecord]] = {}
        for name, table in self.plans.items():
            if table.by_stack:
                found = record.read_by_stack(name, results)
            else:
                found = [one for one in [record.read(name, results)] if one]
            if found:
                self.records[name], *self.older[name] = found
        self.summaries = summaries.load(summary_file)

    def markdown(self, name: str) -> str:
        """Returns the table of a name as Markdown.

        Raises:
            KeyError: there is none.
        """
        if name in self.summaries:
            return summaries.table(self.summaries[name], self.plans, self.records)
        plan, found = self.plans[name], self.records.get(name)
        if not plan.rows:
            text = measured.table(plan, found)
        elif plan.transposed:
            text = trained.transposed(plan, found)
        else:
            text = trained.table(plan, found)
        if self.picture(name):
            text += f"\n![{plan.picture.title if plan.picture else name}](pictures/{name}.svg)\n"
        text += measured.on_older_stacks(plan, self.older.get(name, []))
        return f"{text}\nCommand: `{self.command(name)}`\n"

    def picture(self, name: str) -> str | None:
        """Returns the picture of a table as SVG, or None where there is none."""
        return pictures.svg(self.plans[name], self.records.get(name))

    def command(self, name: str) -> str:
        """Returns the command that makes a table's figures."""
        needs_data = self.plans[name].data or any(
            "{data}" in word for word in self.plans[name].command
        )
        data = " --data data" if needs_data else ""
        return f"python -m benchmarks.campaign {self.campaigns[name]}{data} --only {name}"
