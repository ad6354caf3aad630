"""The first steps of a process beside its own late ones: nothing here is compared between processes."""

from dataclasses import dataclass

import pandas as pd

from stepscope.report.data.warmup import Setting, SizeRuns, Warmups
from stepscope.tables.columns import LAUNCHES
from stepscope.tables.warmup import FEWEST, PHASES, STEADY_FROM

LATE_FROM = min(STEADY_FROM)  # a step's index, from which on steps count as late
WHOLE = "step"


@dataclass(frozen=True)
class Process:
    """The steps of a process that was not profiled, from its first one on. times: ms, a row a step, a column a phase
    and one for the whole `step`. slow_host: whether its host was slow. limited_by: what limits its point's late steps.
    """

    size: str
    cell: str
    warmup: int
    times: pd.DataFrame
    slow_host: bool = False
    limited_by: str | None = None

    @property
    def is_slowed(self) -> bool:
        """Whether its steps are as slow as its host was."""
        return self.slow_host and self.limited_by == LAUNCHES

    def at(self, step: int, phase: str = WHOLE) -> float:
        """Ms of a step, counted from 0."""
        return float(self.times.loc[step, phase])

    def late(self, phase: str = WHOLE) -> float:
        """Median of the late steps, ms."""
        return float(self.times.loc[LATE_FROM:, phase].median())

    @property
    def lates(self) -> int:
        """How many late steps there are."""
        return len(self.times.loc[LATE_FROM:])

    def ratio(self, step: int) -> float:
        """A step over the late ones."""
        return self.at(step) / self.late()

    def excess(self, step: int, phase: str = WHOLE) -> float:
        """What a step takes longer than the late ones, ms."""
        return self.at(step, phase) - self.late(phase)

    def is_above_late_ones(self, step: int) -> bool:
        """Whether a step took longer than every late one."""
        return self.at(step) > float(self.times.loc[LATE_FROM:, WHOLE].max())


def main_setting(warmups: Warmups, hardware: str) -> Setting | None:
    """The setting of a machine in which most sizes were measured, the first of equals; None without one."""
    measured = [setting for setting in warmups.of(hardware) if setting.measured]
    return max(measured, key=lambda setting: len(setting.measured), default=None)


def processes(warmups: Warmups, point: SizeRuns) -> list[Process]:
    """The processes of a size that have a first, a second and FEWEST late steps, by their warm-up steps."""
    samples = warmups.samples(point)
    found = []
    for row in point.measured:
        own = samples[samples["cell"] == row["cell"]]
        wide = own.pivot_table(index="step", columns="phase", values="seconds") * 1e3
        wide = wide.reindex(columns=list(PHASES[WHOLE])).dropna()
        wide[WHOLE] = wide.sum(axis=1)
        if {0, 1} <= set(wide.index) and len(wide.loc[LATE_FROM:]) >= FEWEST:
            host = row.get("slow_host") is True, row.get("step_steady_limited_by")
            found.append(Process(point.size, row["cell"], int(row["warmup"]), wide, *host))
    return found


def chance_of_at_least(count: int, chances: list[float]) -> float:
    """The probability that at least `count` of independent events happen, which have these (Poisson binomial)."""
    of_number = [1.0]  # probability of 0, 1, … events among those seen
    for chance in chances:
        kept = [each * (1 - chance) for each in of_number] + [0.0]
        more = [0.0] + [each * chance for each in of_number]
        of_number = [a + b for a, b in zip(kept, more, strict=True)]
    return sum(of_number[count:])
