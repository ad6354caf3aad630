"""The cells of the plan: their records and samples, and the table that says what each is and where
it comes from."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pandas import DataFrame, Series

from stepscope.axes import BUILT, is_step, option
from stepscope.measure.found import BESIDE, STATUSES
from stepscope.model.shape import ModelShape
from stepscope.recordings.text import ERROR, last_error

from . import records
from .schema import PLACE

MISSING, NOT_MEASURED = "missing", "not measured"
# What a spec says of how a cell is measured, not of what: where results of another run are used it
# may differ.
BUDGET = ("processes", "warmup", "steps", "max_steps", "max_seconds", "seed", "threads", "device")
OF_PLAN = ("cells", "variants")  # tables with rows of what was not measured, too


class PlanError(ValueError):
    """The plan cannot be used; the message is one line."""


@dataclass(frozen=True)
class MeasuredCell:
    """A cell of the plan with its record, {} where it is missing."""

    name: str
    spec: dict
    command: str
    code: str
    record: dict = field(default_factory=dict)
    analysis: dict[str, DataFrame] = field(default_factory=dict)  # tables that it left
    folder: Path = Path()
    is_foreign: bool = False  # whether its machine's results are those of another run
    refused: str = NOT_MEASURED  # or why what is there cannot be used

    @cached_property
    def place(self) -> dict:
        """machine, study, size, context, batch, precision, options and mode, as tables have
        them."""
        machine, study, size, *rest = self.name.split("/")
        precision = None if study == "ladder" else self.spec.get("precision")
        # Mode and batch have columns of their own.
        chosen = [part for part in rest if "=" in part and not part.startswith(("mode=", "batch="))]
        return {
            "machine": machine,
            "study": study,
            "size": size,
            "context": self.spec.get("context"),
            "batch": self.spec.get("batch"),
            "precision": BUILT if is_step(self.spec) else precision,
            "options": " ".join(chosen),
            "mode": option(self.spec, "mode") if "context" in self.spec else None,
        }

    @property
    def key(self) -> dict:
        """machine and cell, which stand in front of the rows of most tables."""
        return {"machine": self.place["machine"], "cell": self.name}

    @property
    def hardware(self) -> dict:
        """What the record says of the machine; empty where it is missing."""
        return self.record["provenance"]["hardware"] if self.record else {}

    @property
    def summary(self) -> dict:
        """What the record says of the cell as a whole; empty where it is missing."""
        return self.record.get("summary", {})

    @cached_property
    def shape(self) -> ModelShape | None:
        """The shape of its model; None for a model of one's own, and where no model runs."""
        return ModelShape.of(self.spec) if "d_model" in self.spec else None

    @cached_property
    def variants(self) -> dict[str, dict]:
        """What its spec says of each of several variants, by their names."""
        return {one["name"]: one for one in self.spec.get("variants") or ()}

    @property
    def own_model(self) -> dict:
        """What the record says of a model, or a step, of one's own; empty for a size."""
        return self.summary.get("model") or self.summary.get("built", {}).get("step") or {}

    @property
    def built_in(self) -> str:
        """The type of a model of one's own that is built in another than fp32, else ""."""
        dtype = (self.own_model.get("dtype") or "").replace("torch.", "")
        return "" if dtype == "float32" else dtype

    def statuses(self) -> dict[str, tuple[str, str]]:
        """Variant: (status, reason)."""
        found = self.summary.get("variants") or {"step": self.summary}
        return {
            name: (one.get("status", "ok"), one.get("reason") or "") for name, one in found.items()
        }

    def status(self) -> tuple[str, str]:
        """(status, reason): `ok` if any variant is, else the worst; each that is not says why."""
        if not self.record:
            return MISSING, self.refused
        found = self.statuses()
        said = []
        for name, (status, why) in found.items():
            if why:
                said.append(f"{name}: {status}: {why}" if len(found) > 1 else why)
        if is_step(self.spec):  # what could not be captured is its own file's business
            for one in self.summary.get("statuses", []):
                if one["mode"] in BESIDE and one["status"] != "ok":
                    variant = f"{one['variant']}: " if len(found) > 1 else ""
                    said.append(f"{variant}{one['mode']}: {one['status']}: {one['reason']}")
        each = {status for status, _ in found.values()}
        return "ok" if "ok" in each else max(each, key=STATUSES.index), "; ".join(said)


def came_after(cell: MeasuredCell) -> dict[str, str]:
    """Variant → the one that it comes after, where this did not run the nearest before it that did;
    "" of the first."""
    statuses = cell.statuses()
    found: dict[str, str] = {}
    for name, variant in cell.variants.items():
        before = variant.get("after", "")
        has_run = statuses.get(before, ("ok", ""))[0] == "ok"
        found[name] = before if has_run else found.get(before) or before
    return found


def of_study(cells: list[MeasuredCell], *studies: str) -> list[MeasuredCell]:
    """The cells of these studies."""
    return [cell for cell in cells if cell.place["study"] in studies]


def told(cells: list[MeasuredCell], *way: str) -> list[dict]:
    """Rows that the cells' records hold at a place in their summaries, with `key` and devices."""
    found = []
    for cell in cells:
        part: Any = cell.summary
        for name in way:
            part = part.get(name) or {}
        front = cell.key | {"devices": option(cell.spec, "devices")}
        found += [front | row for row in part]
    return found


def precision_of(cell: MeasuredCell, variant: str) -> str:
    """The precision that a variant of a cell runs in."""
    if is_step(cell.spec):
        return BUILT
    own = cell.spec | cell.variants.get(variant, {})
    return own.get("precision", "fp32")


def places(cells: list[MeasuredCell]) -> DataFrame:
    """The places of cells by their names, without the mode: rows of one may have several."""
    rows = [cell.place for cell in cells]
    return DataFrame(rows, [cell.name for cell in cells], PLACE).drop(columns="mode")


def read(plan_path: Path, results: Path) -> tuple[list[MeasuredCell], DataFrame, dict[str, str]]:
    """(cells in the plan's order, their samples, refused cells: why); what is refused counts as
    missing.

    The samples are records.parsed(), of the studies whose samples become series. Raises PlanError.
    """
    found, contents, refused = [], {}, {}
    for cell in _planned(plan_path, results):
        try:
            cell = _measured(cell)
            if cell.record:
                content = records.content(cell.folder, cell.record["samples_sha256"])
                if cell.place["study"] in records.SAMPLED:
                    contents[cell.name] = content
        except records.Damaged as error:
            refused[cell.name] = str(error)
        found.append(cell)
    samples, damaged = records.parsed(contents)
    refused |= damaged
    sampled = contents.keys() - refused
    refused |= _too_few([cell for cell in found if cell.name in sampled], samples)
    return *without(found, samples, refused), refused


def without(
    cells: list[MeasuredCell], samples: DataFrame, refused: Mapping[str, str]
) -> tuple[list[MeasuredCell], DataFrame]:
    """(the cells, their samples), as if those that are refused were missing: each says why."""
    found = []
    for cell in cells:
        if cell.name in refused:
            cell = replace(cell, record={}, refused=refused[cell.name])
        found.append(cell)
    return found, samples[~samples["cell"].isin(list(refused))]


def _too_few(cells: list[MeasuredCell], samples: DataFrame) -> dict[str, str]:
    """Cells that lack processes or steps which their spec asks for, of what is ok: why."""
    by = ["cell", "variant", "process"]
    sizes = samples[~samples["warmup"]].groupby(by).size()
    counts = sizes.groupby(by[:2]).agg(list).to_dict()
    found = {}
    for cell in cells:
        processes, steps = cell.spec.get("processes", 1), cell.spec.get("steps", 1)
        if cell.place["study"] == "ceilings":  # a sustained series lasts its seconds
            steps = 1
        for variant, (status, _) in cell.statuses().items():
            own = counts.get((cell.name, variant), [])
            if status == "ok" and (len(own) != processes or min(own) < steps):
                said = f"{variant} has {sum(own)} samples of {len(own)} processes"
                asked = f"the spec asks for {processes} processes of {steps} steps or more"
                found[cell.name] = f"samples.csv is damaged: {said}, {asked}"
    return found


def _planned(path: Path, results: Path) -> list[MeasuredCell]:
    """The cells of a plan without what was measured. Raises PlanError."""
    try:
        plan = json.loads(path.read_text())
        machines = plan.get("machines", {})
        found = []
        for study in plan["studies"].values():
            for entry in study["cells"]:
                name = entry["cell"]
                of_machine = machines.get(name.partition("/")[0], {})
                found.append(
                    MeasuredCell(
                        name,
                        entry["spec"],
                        entry["command"],
                        entry["code"],
                        folder=results / name,
                        is_foreign=of_machine.get("how") == "there",
                    )
                )
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlanError(
            f"{path} is no plan of this workflow ({error!r}); delete it and run again"
        ) from None


def _measured(cell: MeasuredCell) -> MeasuredCell:
    """The cell with its record. Raises Damaged where it is not the plan's."""
    try:
        record = records.read_record(cell.folder)
    except FileNotFoundError:
        said = last_error(cell.folder / "measure.log")
        why = f"{NOT_MEASURED}: {said.removeprefix(ERROR)}" if said else NOT_MEASURED
        return replace(cell, refused=why)
    spec = record["spec"]
    may_differ = {"study", *(BUDGET if cell.is_foreign else ())}
    for key in sorted({*spec, *cell.spec} - may_differ):
        there, planned = spec.get(key), cell.spec.get(key)
        if there != planned:
            said = f"{key} is {there!r:.200} there, {planned!r:.200} in the plan"
            raise records.Damaged(f"record.json is of another spec: {said}")
    if cell.is_foreign:  # its budget may be another than the plan's, and so may its command
        cell = replace(cell, spec=spec, command=record["provenance"]["command"])
    records.check(record, cell.name, cell.spec)
    return replace(cell, record=record, analysis=records.analysis(cell.folder))


def rows(cells: list[MeasuredCell]) -> Iterator[dict]:
    """The table `cells`."""
    for cell in cells:
        status, reason = cell.status()
        own = {"cell": cell.name, "command": cell.command, "status": status, "reason": reason}
        measured = _provenance(cell) if cell.record else {}
        yield measured | cell.place | own


def _provenance(cell: MeasuredCell) -> dict:
    """What the record says of where the cell was measured, by what, and how the GPU fared: columns
    of the table, and more."""
    record, hardware, telemetry = cell.record, cell.hardware, cell.record["telemetry"]
    origin = record["provenance"]
    trace = cell.summary.get("trace") or {}
    return {
        **hardware,
        **telemetry,
        **origin,
        **origin["versions"],
        "code": record["code"],
        "is_current": record["code"] == cell.code,
        "commit": origin.get("git_commit"),
        "memory": hardware.get("gpu_memory_bytes") or hardware.get("host_memory_bytes"),
        "threads": origin["settings"].get("threads"),
        "profiler": trace.get("profiler"),
        "profiler_version": trace.get("version"),
        "processes": cell.spec.get("processes", 1),
        "throttle": "; ".join(telemetry.get("throttle") or []),
    }


def untaken(cells: list[MeasuredCell], tables: Mapping[str, DataFrame]) -> list[str]:
    """The studies of which cells were measured, but not one is in a table of what was found: what
    they found would be in no report."""
    found = [tables[name] for name in tables if name not in OF_PLAN]
    taken = set().union(*(rows.get("cell", ()) for rows in found))
    is_taken: Counter[str] = Counter()
    for cell in cells:
        if cell.status()[0] == "ok":
            is_taken[cell.place["study"]] += cell.name in taken
    return [study for study, count in is_taken.items() if not count]


def mixed(cells: DataFrame) -> Iterator[str]:
    """A line for each label whose cells were measured on several GPUs, processors, drivers or
    versions of torch. cells: the table as it is read."""
    for machine, own in cells.groupby("machine", sort=False):
        for name in ("gpu", "cpu", "driver", "torch"):
            each = own[own[name] != ""].drop_duplicates(name)
            if len(each) > 1:
                said = ", ".join(each[name] + " (" + each["cell"] + ")")
                yield f"{machine}: measured with several of {name}: {said}"


def mapped(rows: DataFrame, cells: list[MeasuredCell], value: Callable, *columns: str) -> Series:
    """value(cell, *row[columns]) for each row, with the rows' index."""
    by_name = {cell.name: cell for cell in cells}
    asked = rows[["cell", *columns]].itertuples(index=False)
    return Series([value(by_name[name], *given) for name, *given in asked], rows.index)


def beside(rows: DataFrame, others: DataFrame, by: list[str], column: str) -> Series:
    """A column of the first of the others that has the same values in `by`, with the rows' index;
    NaN where there is none."""
    known = others.drop_duplicates(by).set_index(by)[column]
    return rows[by].join(known, on=by)[column]
