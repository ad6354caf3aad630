"""What cells are expected to cost on a machine: by what was measured there before, else by the formulas of cost.py.

The time of a cell is that of its own record; else that of the nearest record of its study, times the ratio of what the
formula gives for both; else the formula, at rates that follow from the ceilings that were measured. The same records
say whether a cell fits, and the files beside them what a trace or a snapshot takes. `record` here is the content of a
cell's record.json. Standard library only.
"""

import json
import math
import statistics
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from stepscope.axes import modes_up_to, option
from stepscope.config import cost
from stepscope.config.grid import Cell
from stepscope.machine.labels import read_records

SAME, SIMILAR, CEILINGS, FORMULA, UNKNOWN = BASES = ("same", "similar", "ceilings", "formula", "unknown")
"""What an estimate of time is made of, the best first."""
SAID = {
    SAME: "records of the same cells",
    SIMILAR: "records of similar cells, scaled by FLOP",
    CEILINGS: "FLOP and the measured ceilings",
    FORMULA: "FLOP and another machine's rates",
}
# What cells take over what the formula alone expects of them, at least and at most. Three small runs on a processor of
# which nothing was known took 0.5, 1.2 and 2.6 times as long; the last while other programs used it.
SPREAD = (0.5, 3.0)
_SHAPE = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")
# What of a spec decides most on how long a cell takes beside its steps, such as a compiler.
_WAY = ("implementation", "operation", "probe", "profiler", "nsys_trace", "first", "attention", "compile")


@dataclass(frozen=True)
class Estimate:
    """What a cell is expected to cost.

    seconds: None where nothing is known. basis: one of BASES. peak: bytes of memory by the closed form, 0 where there
    is none. fits: whether it fits into the machine's memory; None where that is not known. recorded: bytes of its trace
    or snapshot.
    """

    cell: Cell
    seconds: float | None
    basis: str
    peak: int
    fits: bool | None
    recorded: int


@dataclass(frozen=True)
class Known:
    """What is known of a machine before a run.

    records: cell → its record, of all cells that were measured there, in today's grids or not. recorded: cell → bytes
    of its trace or snapshot. capacity: bytes of memory of the GPU, or of the machine where the device is a CPU; None if
    unknown.
    """

    device: str
    records: Mapping[str, dict]
    recorded: Mapping[str, int] = field(default_factory=dict)
    capacity: int | None = None


def estimates(cells: Iterable[Cell], known: Known) -> list[Estimate]:
    """What each of a machine's cells is expected to cost, in their order."""
    found = ceilings(known.records.values())
    at = cost.rates(known.device, found)
    whole = {name: record for name, record in known.records.items() if is_whole(record)}
    times = Nearest(whole, at)
    files = Nearest({name: whole[name] for name in known.recorded if name in whole}, at)
    basis = CEILINGS if found else FORMULA
    return [_estimate(cell, known, at, basis, times, files) for cell in cells]


def _estimate(cell: Cell, known: Known, at: cost.Rates, basis: str, times: "Nearest", files: "Nearest") -> Estimate:
    own = known.records.get(cell.name)
    own = own if own and own["spec"] == cell.spec else None
    peak = cost.peak_bytes(cell)
    fits = _fits(cell.spec, peak, known.capacity) if own is None else has_fitted(own)
    runs = cell if fits is not False else _as_far_as_it_fits(cell, known.capacity)
    if own:
        seconds, basis = own["provenance"]["duration_s"], SAME
    elif runs is None:
        seconds = at.start[cell.study]
    elif near := times.to(runs.spec):
        ratio = cost.seconds(runs, at) / cost.spec_seconds(near[1]["spec"], at)
        seconds, basis = near[1]["provenance"]["duration_s"] * ratio, SIMILAR
    elif is_opaque(cell.spec):
        seconds, basis = None, UNKNOWN
    else:
        seconds = cost.seconds(runs, at)
    of_files = files.to(cell.spec)
    recorded = known.recorded.get(cell.name) if own else None
    if recorded is None:
        recorded = known.recorded[of_files[0]] if of_files else cost.recorded_bytes(cell.spec)
    return Estimate(cell, seconds, basis, peak, fits, recorded)


def _fits(spec: dict, peak: int, capacity: int | None) -> bool | None:
    """Whether a peak by the closed form fits. With checkpoints a cell needs less, how much the form does not say."""
    if capacity is None or not peak:
        return None
    return True if peak <= capacity else None if option(spec, "checkpoint") else False


def _as_far_as_it_fits(cell: Cell, capacity: int | None) -> Cell | None:
    """What runs of a cell that does not fit: of the timing study the modes that do, of others nothing but the start."""
    if cell.study != "timing" or capacity is None:
        return None
    lighter = modes_up_to(option(cell.spec, "mode"))[-2::-1]
    found = (replace(cell, spec=cell.spec | {"mode": mode}) for mode in lighter)
    return next((one for one in found if cost.peak_bytes(one) <= capacity), None)


def is_opaque(spec: dict) -> bool:
    """Whether a spec names a model whose shape it does not say, so that no formula holds."""
    return "model" in spec and "d_model" not in spec


def ceilings(records: Iterable[dict]) -> dict[str, float]:
    """Operations a second of a large matrix product by precision, as measured; those of one thread on a CPU."""
    found = {}
    for record in records:
        spec = record["spec"]
        if spec["study"] == "ceilings" and "order" in spec and (median := _median(record["summary"])):
            threads = spec["threads"] if spec["device"] == "cpu" else 1
            found[spec["precision"]] = 2 * spec["order"] ** 3 / median / threads
    return found


def _median(summary: dict) -> float | None:
    """Seconds: the geometric mean of the processes' medians, or the median of a record from before there were any."""
    medians = [one["median"] for one in summary.get("processes", [summary]) if one.get("median")]
    return statistics.geometric_mean(medians) if medians else None


def statuses(part: object) -> set[str]:
    """Every status that stands anywhere in a record's summary."""
    if isinstance(part, dict):
        own = {part["status"]} if isinstance(part.get("status"), str) else set()
        return own.union(*map(statuses, part.values()))
    return set().union(*map(statuses, part)) if isinstance(part, list) else set()


def is_whole(record: dict) -> bool:
    """Whether all of a cell ran, so that its time says something of others."""
    return statuses(record["summary"]) <= {"ok"}


def has_fitted(record: dict) -> bool:
    """Whether a cell had memory enough when it was measured."""
    return "oom" not in statuses(record["summary"])


class Nearest:
    """Finds the record that says most of a spec: of its study, and as much of the same way, shape and precision as
    there is; among these the one that the formula gives the nearest time."""

    def __init__(self, records: Mapping[str, dict], at: cost.Rates):
        self._at = at
        self._groups: dict[tuple, list[tuple[float, str]]] = {}
        self._records = records
        for name, record in records.items():
            by_formula = cost.spec_seconds(record["spec"], at)
            for group in _groups(record["spec"]):
                self._groups.setdefault(group, []).append((by_formula, name))
        for members in self._groups.values():
            members.sort()

    def to(self, spec: dict) -> tuple[str, dict] | None:
        """(name, record) of the nearest; None if the study has none."""
        members = next((self._groups[group] for group in _groups(spec) if group in self._groups), None)
        if members is None:
            return None
        wanted = cost.spec_seconds(spec, self._at)
        at = bisect_left(members, (wanted, ""))
        _, name = min(members[max(at - 1, 0) : at + 1], key=lambda one: abs(math.log(one[0] / wanted)))
        return name, self._records[name]


def _groups(spec: dict) -> list[tuple]:
    """The groups that a spec belongs to, the closest first; none of them holds two models of unknown shape."""
    study = (spec["study"], spec.get("model"))
    way, shape = (tuple(str(spec.get(key)) for key in keys) for keys in (_WAY, _SHAPE))
    precision = spec["precision"]
    return [
        (*study, "way, shape, precision", way, shape, precision),
        (*study, "way, shape", way, shape),
        (*study, "way, precision", way, precision),
        (*study, "way", way),
        study,
    ]


# All cells together ---------------------------------------------------------------------------------------------------


def total_seconds(found: Iterable[Estimate]) -> float:
    """Seconds of the cells, one after another; those of unknown time count as the mean of the others."""
    every = [one.seconds for one in found]
    known = [seconds for seconds in every if seconds is not None]
    return len(every) * statistics.fmean(known) if known else 0.0


def at_either_end(found: Iterable[Estimate], factor: float) -> list[Estimate]:
    """The same cells, where those of which no record says anything take `factor` times as long."""
    return [
        replace(one, seconds=one.seconds * factor) if one.basis == FORMULA and one.seconds else one for one in found
    ]


def shares(found: Iterable[Estimate]) -> dict[str, tuple[int, float]]:
    """Basis → (cells, seconds) that rest on it, in the order of BASES; only those that occur."""
    by_basis: dict[str, list[float]] = {}
    for one in found:
        by_basis.setdefault(one.basis, []).append(one.seconds or 0.0)
    return {basis: (len(by_basis[basis]), sum(by_basis[basis])) for basis in BASES if basis in by_basis}


def against(expected: Mapping[str, Estimate], took: Mapping[str, float | None]) -> str:
    """One line: how long cells took together, held against what was expected of those of which both are known."""
    both = {name: seconds for name, seconds in took.items() if seconds and name in expected and expected[name].seconds}
    total = sum(filter(None, took.values()))
    count = f"{len(took):,} {'cell' if len(took) == 1 else 'cells'}"
    if not both:
        return f"{count} took {_minutes(total)}, of which nothing was expected"
    planned = sum(expected[name].seconds for name in both)
    of = "" if len(both) == len(took) else f" for {len(both):,} of them"
    ratio = sum(both.values()) / planned
    return f"{count} took {_minutes(total)}; the plan expected {_minutes(planned)}{of} ({ratio:.2f} times that)"


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.1f} min"


# What is there --------------------------------------------------------------------------------------------------------


def read_known(label: str, device: str, parts: Mapping[str, str | None], results: Path, capacity: int | None) -> Known:
    """What the results of a label say. parts: study → what its cells record besides samples, such as a trace.

    Without `capacity` it is the memory that the records' machine had, where one says.
    """
    names = [
        str(path.parent.relative_to(results))
        for study in parts
        for path in (results / label / study).rglob("record.json")
    ]
    records = {name: record for name, record in read_records(results, names).items() if _is_usable(record)}
    recorded = {
        name: size
        for name in records
        if (part := parts[name.split("/")[1]]) and (size := _size_of(results / name / part))
    }
    memory = "gpu_memory_bytes" if device == "cuda" else "host_memory_bytes"
    seen = [record["provenance"].get("hardware", {}).get(memory) for record in records.values()]
    return Known(device, records, recorded, capacity or max(filter(None, seen), default=None))


def _is_usable(record: dict) -> bool:
    """Whether a record has what is read here; a damaged one is named when the tables are made."""
    try:
        spec, _ = record["spec"], _median(record["summary"])
        return record["provenance"]["duration_s"] > 0 and cost.spec_seconds(spec) > 0 and bool(spec["precision"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def _size_of(folder: Path) -> int:
    """Bytes of the files in a folder; 0 if it is not there."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def seconds_taken(folder: Path) -> float | None:
    """How long a cell took, by its record; None where it does not say."""
    try:
        return float(json.loads((folder / "record.json").read_bytes())["provenance"]["duration_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
