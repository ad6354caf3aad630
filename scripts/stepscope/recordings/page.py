"""The tables of a recording as one Markdown page, for a terminal, for GitHub and a browser."""

import re
from dataclasses import dataclass, field

import pandas as pd

from . import text


@dataclass(frozen=True)
class Style:
    """How tables are shown. sections: table → (heading, rows at most, of each phase). hidden: the
    columns for which a page is too narrow, or which another one says better. units: columns →
    (unit, how many of it the table's unit is, how a number is written), of which the first that
    fits counts. labels: of columns that are not called by their name and unit. words: what is
    called otherwise in headings and labels."""

    sections: dict[str, tuple[str, int]]
    hidden: str
    units: tuple[tuple[str, tuple[str, float, str]], ...]
    labels: dict[str, str]
    words: dict[str, str] = field(default_factory=dict)

    def unit(self, column: str) -> tuple[str, float, str]:
        """A column's row of `units`; the unit of one without is ""."""
        return next(unit for pattern, unit in self.units if re.fullmatch(pattern, column))

    def label(self, column: str) -> str:
        """A column's name with its unit."""
        unit, _, _ = self.unit(column)
        name = column.replace("_", " ")
        return self.labels.get(column, f"{name}, {unit}" if unit.strip("%") else name)

    def value(self, column: str, value: str | float | None) -> str:
        """A value of a column as text; a dash for none."""
        if pd.isna(value):
            return "–"
        if not isinstance(value, int | float):
            return str(value)
        unit, factor, form = self.unit(column)
        return f"{factor * value:{form}}" + " %" * (unit == "%")

    def called(self, words: str) -> str:
        """A heading or a label in these words."""
        for usual, own in self.words.items():
            words = words.replace(usual, own)
        return words

    def page(self, title: str, said: dict[str, str], tables: dict[str, pd.DataFrame]) -> str:
        """All tables that have rows. said: what stands above the title ("") or a table's."""
        parts = [f"# {text.markdown(title)}", said.get("", "")]
        for name, (heading, most) in self.sections.items():
            table = tables.get(name, pd.DataFrame())
            if not table.empty:
                by_phase = "phase" in table and name != "phases"
                few = (
                    table.groupby("phase", sort=False).head(most) if by_phase else table.head(most)
                )
                parts += [said.get(name, ""), f"## {self.called(heading)}", self.table(few)]
        return "\n\n".join(filter(None, parts)) + "\n"

    def table(self, table: pd.DataFrame) -> str:
        """A table of Markdown, without columns that say nothing."""
        shown = [
            column
            for column in table.columns.astype(str)
            if not re.fullmatch(self.hidden, column) and not table[column].isna().all()
        ]
        sides = ["---:" if pd.api.types.is_numeric_dtype(table[each]) else "---" for each in shown]
        lines = [[self.called(self.label(column)) for column in shown], sides]
        for row in table[shown].to_dict("records"):
            lines.append([text.markdown(self.value(str(key), row[key])) for key in row])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)
