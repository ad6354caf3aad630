"""The timing study's grid of one machine: its first runs at one batch size, nothing fused, by precision and place."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from stepscope.report.data.spotlight import MIXED, Machine
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import PHASES, main_grid, ordered, precision_rank

PLAIN = "fp32"


@dataclass(frozen=True)
class TimingGrid:
    """Rows of the timing table, by precision, parameters and context."""

    rows: list[dict]

    @cached_property
    def precisions(self) -> list[str]:
        """All that the grid has, in their order."""
        return ordered([row["precision"] for row in self.rows], key=precision_rank)

    @cached_property
    def shown(self) -> list[str]:
        """The two with times that a chapter speaks of: fp32 and bf16, else the first two."""
        own = [name for name in self.precisions if any(self.timed(name, phase) for phase in PHASES)]
        usual = [name for name in (PLAIN, MIXED) if name in own]
        return usual if len(usual) == 2 else own[:2]

    @cached_property
    def contexts(self) -> list[float]:
        """Ascending."""
        return ordered([row["context"] for row in self.rows])

    @cached_property
    def sizes(self) -> list[dict]:
        """A row a size, by parameters: one that knows them, if any does."""
        found: dict[str, dict] = {}
        for row in sorted(self.rows, key=_parameters):
            found.setdefault(row["size"], row)
        return list(found.values())

    def timed(self, precision: str, phase: str = "step", context: float | None = None) -> list[dict]:
        """Those of a precision (and context) with a time of a phase, by parameters and context."""
        return [
            row
            for row in self.rows
            if row["precision"] == precision
            and context in (None, row["context"])
            and known(row.get(f"{phase}_median_ms"))
        ]

    def at(self, size: str, context: float, precision: str) -> dict | None:
        """The row of a place."""
        found = (
            row for row in self.rows if (row["size"], row["context"], row["precision"]) == (size, context, precision)
        )
        return next(found, None)

    def fullest_context(self, phase: str = "step") -> float | None:
        """The context at which most cells of the shown precisions have a time; of those with as many the longest."""
        counts = {each: sum(len(self.timed(name, phase, each)) for name in self.shown) for each in self.contexts}
        best = max(counts, key=lambda each: (counts[each], each), default=None)
        return best if best is not None and counts[best] else None


def _parameters(row: dict) -> float:
    return row["parameters"] if known(row.get("parameters")) else float("inf")


def timing_grid(machine: Machine) -> TimingGrid:
    """That of the machine which the document speaks of."""
    frame = machine.tables["timing"]
    own = frame[frame["hardware"] == machine.hardware] if len(frame) else frame
    return TimingGrid(main_grid(own).to_dict("records"))


def place(row: dict) -> str:
    """`2.7B at 512`."""
    return f"{row['size']} at {row['context']:,.0f}"


def cells_of(rows: Iterable[dict]) -> tuple[str, ...]:
    """Their names."""
    return tuple(row["cell"] for row in rows)
