"""The cells of the plan: their records and samples, and the table that says what each is and where
it comes from."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from stepscope.axes import option
from stepscope.config.studies import STUDIES
from stepscope.measure.found import STATUSES
from stepscope.model.shape import ModelShape
from stepscope.results import records

MISSING, NOT_MEASURED = "missing", "not measured"
# What a spec says of how a cell is measured, not of what: where results of another run are used it
# may differ.
BUDGET = ("processes", "warmup", "steps", "max_steps", "max_seconds", "seed", "threads", "device")

Rows = pd.DataFrame | Iterable[Mapping]
OF_PROCESS = ["cell", "variant", "process"]


class PlanError(ValueError):
    """The plan cannot be used; the message is one line."""


@dataclass(frozen=True)
class MeasuredCell:
    """A cell of the plan with its record, {} where it is missing, and the text of its
    samples.csv."""

    name: str
    spec: dict
    command: str
    code: str
    record: dict = field(default_factory=dict)
    content: bytes = b""
    folder: Path = Path()
    refused: str = ""  # why what is there cannot be used

    @cached_property
    def place(self) -> dict:
        """machine, study, size, context, batch, precision, options and mode, as tables have
        them."""
        machine, study, size, *rest = self.name.split("/")
        named = [part for part in rest if "=" in part]
        # These two have columns of their own.
        chosen = [part for part in named if not part.startswith(("mode=", "batch="))]
        return {
            "machine": machine,
            "study": study,
            "size": size,
            "context": self.spec.get("context"),
            "batch": self.spec.get("batch"),
            "precision": None if study == "ladder" else self.spec.get("precision"),
            "options": " ".join(chosen),
            "mode": option(self.spec, "mode") if "context" in self.spec else None,
        }

    @property
    def gpu(self) -> str | None:
        """The driver's name of the GPU that it was measured on; None without one."""
        return self.record["provenance"]["hardware"].get("gpu") if self.record else None

    @property
    def card(self) -> str | None:
        """The UUID of that GPU: one of several of its kind."""
        return self.record["provenance"]["hardware"].get("gpu_uuid") if self.record else None

    @property
    def values(self) -> list[dict]:
        """What the record names besides times: quantity, unit, value and place of each."""
        return self.summary.get("values", [])

    @property
    def summary(self) -> dict:
        """What the record says of the cell as a whole; empty where it is missing."""
        return self.record.get("summary", {})

    @cached_property
    def shape(self) -> ModelShape | None:
        """The shape of its model; None for a model of one's own, and where no model runs."""
        return ModelShape.of(self.spec) if "d_model" in self.spec else None

    @property
    def own_model(self) -> dict:
        """What the record says of a model of one's own; empty for a size."""
        return self.summary.get("model") or {}

    def statuses(self) -> dict[str, tuple[str, str]]:
        """Variant: (status, reason)."""
        found = self.summary.get("variants") or {"step": self.summary}
        return {
            name: (one.get("status", "ok"), one.get("reason") or "") for name, one in found.items()
        }

    def status(self) -> tuple[str, str]:
        """(status, reason): `ok` if any variant is, else the worst; each that is not says why."""
        if not self.record:
            return MISSING, self.refused or NOT_MEASURED
        found = self.statuses()
        said = []
        for name, (status, why) in found.items():
            if why:
                said.append(f"{name}: {status}: {why}" if len(found) > 1 else why)
        each = {status for status, _ in found.values()}
        worst = max(each, key=STATUSES.index)
        return "ok" if "ok" in each else worst, "; ".join(said)


def precision_of(cell: MeasuredCell, variant: str) -> str:
    """The precision that a variant of a cell runs in."""
    own = {one["name"]: one.get("precision", "fp32") for one in cell.spec.get("variants", [])}
    return cell.spec.get("precision") or own.get(variant, "fp32")


def read(plan_path: Path, results: Path) -> tuple[list[MeasuredCell], pd.DataFrame, dict[str, str]]:
    """(cells in the plan's order, their samples, refused cells: why); what is refused counts as
    missing.

    The samples have `cell` beside their own columns; they are those of the studies whose
    samples become series. Raises PlanError.
    """
    planned, foreign = _planned(plan_path, results)
    found, refused = [], {}
    for cell in planned:
        is_foreign = cell.name.partition("/")[0] in foreign
        try:
            cell = _measured(cell, is_foreign)
        except records.Damaged as error:
            refused[cell.name] = str(error)
        found.append(cell)
    studies = [study.name for study in STUDIES if study.samples_are_series]
    sampled = [cell for cell in found if cell.record and cell.place["study"] in studies]
    samples, damaged = records.parsed({cell.name: cell.content for cell in sampled})
    refused |= _too_few(sampled, samples)
    return *without(found, samples, refused | damaged), refused | damaged


def without(
    cells: list[MeasuredCell], samples: pd.DataFrame, refused: Mapping[str, str]
) -> tuple[list[MeasuredCell], pd.DataFrame]:
    """(the cells, their samples), as if those that are refused were missing: each says why."""
    found = []
    for cell in cells:
        if cell.name in refused:
            cell = replace(cell, record={}, content=b"", refused=refused[cell.name])
        found.append(cell)
    return found, samples[~samples["cell"].isin(list(refused))]


def _too_few(cells: list[MeasuredCell], samples: pd.DataFrame) -> dict[str, str]:
    """Cells that lack processes or steps which their spec asks for, where all is ok: why."""
    counts: dict[str, dict[str, list[int]]] = {}
    if len(samples):
        kept = samples[samples["warmup"].astype(str) != "True"]
        sizes = kept.groupby(OF_PROCESS, observed=True).size().reset_index(name="count")
        for row in sizes.to_dict("records"):
            of_cell = counts.setdefault(str(row["cell"]), {})
            of_cell.setdefault(str(row["variant"]), []).append(int(row["count"]))
    found = {}
    for cell in cells:
        processes, steps = cell.spec.get("processes", 1), cell.spec.get("steps", 1)
        if cell.place["study"] == "ceilings":  # a sustained series lasts its seconds
            steps = 1
        of_cell = counts.get(cell.name, {"no variant": []})
        for name, of_each in of_cell.items():
            status, _ = cell.statuses().get(name, ("ok", ""))
            is_enough = len(of_each) == processes and min(of_each) >= steps
            if status == "ok" and cell.status()[0] == "ok" and not is_enough:
                said = f"{name} has {sum(of_each)} samples of {len(of_each)} processes"
                asked = f"the spec asks for {processes} processes of {steps} steps or more"
                found[cell.name] = f"samples.csv is damaged: {said}, {asked}"
    return found


def _planned(path: Path, results: Path) -> tuple[list[MeasuredCell], set[str]]:
    """(cells of a plan without what was measured, labels of machines whose results are those of
    another run). Raises PlanError."""
    try:
        plan = json.loads(path.read_text())
        machines = plan.get("machines", {})
        foreign = {name for name, machine in machines.items() if machine.get("how") == "there"}
        cells = [
            MeasuredCell(
                entry["cell"],
                entry["spec"],
                entry["command"],
                entry["code"],
                folder=results / entry["cell"],
            )
            for study in plan["studies"].values()
            for entry in study["cells"]
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PlanError(
            f"{path} is no plan of this workflow ({error!r}); delete it and run again"
        ) from None
    return cells, foreign


def _measured(cell: MeasuredCell, is_foreign: bool) -> MeasuredCell:
    """The cell with its record and samples. Raises Damaged where they are not the plan's."""
    try:
        record = records.read_record(cell.folder)
    except FileNotFoundError:
        return cell
    difference = _difference(record["spec"], cell.spec, BUDGET if is_foreign else ())
    if difference:
        raise records.Damaged(f"record.json is of another spec: {difference}")
    records.check(record, cell.name, record["spec"] if is_foreign else cell.spec)
    content = records.content(cell.folder, record["samples_sha256"])
    if is_foreign:  # its budget may be another than the plan's, and so may its command
        command = record["provenance"]["command"]
        cell = replace(cell, spec=record["spec"], command=command)
    return replace(cell, record=record, content=content)


def _difference(found: Mapping, expected: Mapping, without: tuple[str, ...]) -> str:
    """The first key in which two specs differ, with both values; empty where they agree."""
    for key in sorted({*found, *expected} - {*without, "study"}):
        if found.get(key) != expected.get(key):
            return f"{key} is {found.get(key)!r} there, {expected.get(key)!r} in the plan"
    return ""


def rows(cells: list[MeasuredCell]) -> list[dict]:
    """The rows of the table `cells`."""
    return [_row(cell) for cell in cells]


def _row(cell: MeasuredCell) -> dict:
    status, reason = cell.status()
    planned = {"cell": cell.name, **cell.place, "command": cell.command}
    became = {"status": status, "reason": reason}
    return planned | became | (_provenance(cell) if cell.record else {})


def _provenance(cell: MeasuredCell) -> dict:
    record, telemetry = cell.record, cell.record["telemetry"]
    origin = record["provenance"]
    hardware, versions, settings = (origin[key] for key in ("hardware", "versions", "settings"))
    return {
        "code": record["code"],
        "is_current": record["code"] == cell.code,
        "commit": origin.get("git_commit"),
        "device": hardware.get("device"),
        "gpu": hardware.get("gpu"),
        "gpu_uuid": hardware.get("gpu_uuid"),
        "cpu": hardware.get("cpu"),
        "memory": hardware.get("gpu_memory_bytes") or hardware.get("host_memory_bytes"),
        "power_limit_w": hardware.get("power_limit_w"),
        "threads": settings.get("threads"),
        "driver": hardware.get("driver"),
        "torch": versions.get("torch"),
        "triton": versions.get("triton"),
        "python": versions.get("python"),
        "started": origin["started"],
        "duration_s": origin["duration_s"],
        "processes": cell.spec.get("processes", 1),
        "sm_clock_median_mhz": telemetry.get("sm_clock_median_mhz"),
        "power_max_w": telemetry.get("power_max_w"),
        "temperature_max_c": telemetry.get("temperature_max_c"),
        "throttle": "; ".join(telemetry.get("throttle") or []),
        "other_processes": telemetry.get("other_processes"),
    }


def untaken(cells: list[MeasuredCell], tables: Mapping[str, Rows]) -> list[str]:
    """The studies of which cells were measured, but not one is in a table of what was found: what
    they found would be in no report."""
    taken: set[str] = set()
    for name, table in tables.items():
        if name not in ("cells", "variants"):  # these are of the plan
            of_table = table if isinstance(table, pd.DataFrame) else pd.DataFrame(list(table))
            taken |= set(of_table["cell"]) if "cell" in of_table else set()
    measured = [cell for cell in cells if cell.status()[0] == "ok"]
    studies = dict.fromkeys(cell.place["study"] for cell in measured)
    seen = {cell.place["study"] for cell in measured if cell.name in taken}
    return [study for study in studies if study not in seen]


def mixed(rows: list[dict]) -> list[str]:
    """A line for each label whose cells were measured on several GPUs, processors, drivers or
    versions of torch."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        for name in ("gpu", "cpu", "driver", "torch"):
            if row.get(name):
                own = found.setdefault((row["machine"], name), {})
                own.setdefault(row[name], row["cell"])
    lines = []
    for (machine, name), cells in found.items():
        if len(cells) > 1:
            values = ", ".join(f"{value} ({cell})" for value, cell in cells.items())
            lines.append(f"{machine}: measured with several of {name}: {values}")
    return lines
