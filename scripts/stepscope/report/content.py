"""What the report says, before it is Markdown or HTML: page one, chapters, sections of data, method."""

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import pandas as pd

from stepscope.report.agreement import agreement_findings, agreement_table
from stepscope.report.chapters import chapters
from stepscope.report.data.machines import labels
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit import formatting
from stepscope.report.kit.chapter import Chapter
from stepscope.report.kit.finding import Finding, by_machine
from stepscope.report.kit.order import column, machine_labels, precision_rank
from stepscope.report.kit.web_table import AXES
from stepscope.report.machine import incomplete_box, machine_table, overview, sizes_table
from stepscope.report.studies import section_of
from stepscope.tables.reader import Tables
from stepscope.tables.registry import COLLECTED, STUDIES

FRONT = "page_one"  # of the comparisons: it opens the report and is no section of the data page


@dataclass(frozen=True)
class Content:
    """Each part is made when it is first asked for, and once for both back ends."""

    tables: Tables
    comparisons: tuple[str, ...]
    title: str
    command: str
    partial: bool

    @cached_property
    def machine(self) -> Machine:
        return Machine(self.tables)

    @cached_property
    def labels(self) -> list[str]:
        return labels(self.tables)

    @cached_property
    def front(self) -> dict | None:
        """What page one is filled with; None where it has nothing to say."""
        return section_of(FRONT).context(self.tables) if FRONT in self._sections else None

    @cached_property
    def chapters(self) -> list[Chapter]:
        return chapters(self.machine)

    @cached_property
    def sections(self) -> list[str]:
        """The data page's, in their order."""
        return [name for name in self._sections if name != FRONT]

    @cached_property
    def _sections(self) -> dict[str, ModuleType]:
        every = {name: section_of(name) for name in (*self.tables.studies, *self.comparisons)}
        return {name: section for name, section in every.items() if _applies(section, self.tables)}

    def section(self, name: str) -> dict:
        """What the section's template is filled with."""
        return self._sections[name].context(self.tables)

    def findings(self, name: str) -> list[tuple[str, list[str]]]:
        """by_machine() of the section's sentences."""
        own = machine_labels(column(self.tables[name], "hardware"))
        alone = own[0] if len(own) == 1 < len(self.labels) else ""
        return by_machine(self._sections[name].findings(self.tables), self.labels, alone)

    @cached_property
    def axes(self) -> dict[str, list[str]]:
        """What the data page's tables can be filtered by: axis → its values as tables show them, in their order."""
        frames = [self.tables[study] for study in self.tables.studies]
        every = {name: pd.concat([column(frame, name) for frame in frames]).dropna() for name in AXES if frames}
        found = {name: sorted(values.unique(), key=_ORDERS.get(name)) for name, values in every.items()}
        return {name: [_shown(value) for value in values] for name, values in found.items() if len(values) > 1}

    @cached_property
    def agreement(self) -> dict:
        """What several studies say of one point: sentences by machine, and the table behind them."""
        found = by_machine(agreement_findings(self.tables), self.labels)
        return {"findings": found, "table_of_points": agreement_table(self.tables)}

    @cached_property
    def run(self) -> dict:
        """What ran and on what, for the method's template."""
        return {
            "overview": overview(self.tables),
            "machine": machine_table(self.tables),
            "sizes": sizes_table(self.tables),
        }

    @cached_property
    def box(self):
        """What a partial report lacks; None in a whole one."""
        return incomplete_box(self.tables) if self.partial else None

    def told(self, finding: Finding) -> str:
        """A finding's sentences in a chapter, which speaks of page one's machine unless it says another."""
        other = len(self.labels) > 1 and finding.hardware not in ("", self.machine.hardware)
        return f"On {finding.hardware}: {finding.text}" if other else finding.text

    def chapter_of(self, name: str) -> Chapter | None:
        """The chapter of that name, or else the first one that has the section of that name among its data."""
        by_name = [chapter for chapter in self.chapters if chapter.name == name]
        return next(iter([*by_name, *(chapter for chapter in self.chapters if name in chapter.data)]), None)


def tidy_tables(section: str) -> list[str]:
    """Names of the tables behind a section; none for one that compares studies."""
    return [table.name for table in (STUDIES | COLLECTED).get(section, ())]


_ORDERS = {"precision": precision_rank}


def _shown(value: object) -> str:
    return formatting.count(value) if formatting.known(value) else str(value)


def _applies(section: ModuleType, tables: Tables) -> bool:
    """Whether a section has something to say; most have always."""
    return section.applies(tables) if hasattr(section, "applies") else True
