"""The recorded cells that the chapter speaks of, and the one step whose story it tells."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stepscope.report.data.memory import Memory
from stepscope.report.data.spotlight import MIXED, Machine
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit.finding import Number
from stepscope.report.kit.order import precision_rank
from stepscope.report.kit.sizes import Unit, unit_of


@dataclass(frozen=True)
class Recorded:
    """rows: a machine's first runs at neutral options. row: the largest step that fits, in the chapter's precision."""

    memory: Memory
    hardware: str
    rows: list[dict]
    row: dict

    @property
    def unit(self) -> Unit:
        """What the chapter's sizes are given in: the unit that suits the peak."""
        return unit_of([self.memory.requested(self.row)])

    def sizes(self, rows: Iterable[dict], **values: float) -> dict[str, Number]:
        """These bytes by name, of these cells, in the chapter's unit."""
        return numbers(rows, lambda value: self.unit.text(value, 3), **values)

    def of(self, kind: str) -> list[dict]:
        """The measured cells of a mode: `step` or `inference`."""
        return [row for row in self.rows if row["status"] == "ok" and mode(row) == kind and self.memory.summary(row)]

    def at(self, row: dict, **other) -> dict | None:
        """The measured cell at a row's point but for these fields, such as its precision or mode."""
        wanted = {name: row[name] for name in ("size", "context", "batch", "precision")} | {"mode": mode(row)} | other
        cells = [*self.of("step"), *self.of("inference")]
        return next((each for each in cells if all(_field(each, name) == wanted[name] for name in wanted)), None)


def _field(row: dict, name: str) -> object:
    return mode(row) if name == "mode" else row[name]


def recorded(machine: Machine) -> Recorded | None:
    """None unless a whole step was recorded and fitted."""
    memory = Memory(machine.tables)
    rows = [row for row in memory.first_runs(memory.all) if row["hardware"] == machine.hardware and not row["options"]]
    steps = [row for row in rows if row["status"] == "ok" and mode(row) == "step" and memory.summary(row)]
    if not steps:
        return None
    known = {row["precision"] for row in steps}
    wanted = [machine.reference.precision if machine.reference else MIXED, *sorted(known, key=precision_rank)]
    precision = next(each for each in wanted if each in known)
    own = [row for row in steps if row["precision"] == precision]
    return Recorded(memory, machine.hardware, rows, max(own, key=memory.requested))


def place(row: dict) -> str:
    """`2.7B at context 512`."""
    return f"{row['size']} at context {row['context']:,.0f}"


def cells(rows: Iterable[dict]) -> tuple[str, ...]:
    return tuple(row["cell"] for row in rows)


def numbers(rows: Iterable[dict], show: Callable[[object], str], **values: object) -> dict[str, Number]:
    """These values by name, of these cells."""
    names = cells(rows)
    return {name: Number(value, names, show) for name, value in values.items()}
