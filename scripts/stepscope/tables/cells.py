"""Reading the cells of a plan: each record checked against what the plan expects, each sample file against its record.

A study's tables are made from the `CellResult`s that read_cells() gives.
"""

import csv
import dataclasses
import io
import json
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.machine import labels
from stepscope.machine.labels import is_expected
from stepscope.results import records

RECORD_VERSION = 1
# What tells a cell from others in its spec, beside its options: where its folder says the same, it is the same.
POINT = (
    *("d_model", "d_ff", "num_layers", "num_heads", "vocab_size", "context", "batch", "precision", "mode", "attention"),
    *("optimizer", "compile", "checkpoint", "implementation", "d_head", "lengths", "operation", "probe"),
    *("key_value_heads", "keys", "mask", "window", "model", "model_keys"),
)

Rows = list[list[str]]  # of a CSV file, without its header


class Disagreement(ValueError):
    """Why a cell is not the plan's, in one line; `about` is "spec", "hardware" or "damaged"."""

    def __init__(self, about: str, text: str):
        super().__init__(text)
        self.about = about


class Refusal(Exception):
    """Cells that do not belong to the plan; `problems` maps the cell's name to one line that says why."""

    def __init__(self, problems: dict[str, str]):
        super().__init__(f"{len(problems)} cells refused")
        self.problems = problems


@dataclass(frozen=True)
class CellResult:
    """One cell: its entry in the plan, its record ({} if there is none), its samples as lines of text, its folder.

    `noisy` is the half width of a confidence interval, as a share of the median, above which a series is marked noisy.
    `status` is "measured", "missing" (never ran) or "failed" (its log is there, its record is not). Where there are
    results that disagree with the plan, `about` says about what, as Disagreement does.
    """

    entry: dict
    status: str
    record: dict = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    reason: str = ""
    folder: Path = Path()
    noisy: float | None = None
    about: str = ""

    @property
    def name(self) -> str:
        """`<hardware>/<study>/…`, the folder below results/."""
        return self.entry["cell"]

    @property
    def hardware(self) -> str:
        """The label of its machine."""
        return self.name.partition("/")[0]


def read_plan(path: Path) -> dict:
    """The plan that the workflow wrote. Raises ValueError, with one line, if it is none."""
    try:
        plan = json.loads(path.read_text())
        plan["studies"], plan["machines"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no plan of this workflow ({error}); delete it and run again") from None
    return plan


def read_cells(plan: dict, study: str, results: Path, partial: bool = False) -> list[CellResult]:
    """The study's cells in the plan's order.

    Raises Refusal naming each cell whose record is damaged or was measured by another spec, other code or another
    type of machine. With `partial` those, the missing and the failed ones are given with their reason instead.
    """
    part = plan["studies"][study]
    cells, problems = [], {}
    for entry in part["cells"]:
        folder = results / entry["cell"]
        label = entry["cell"].partition("/")[0]
        common = {"entry": entry, "folder": folder, "noisy": part["noisy"][label]}
        try:
            identity = entry.get("machine", part["machine"][label])
            record, samples = _read_cell(entry, identity, plan["machines"][label], folder)
            if plan["machines"][label]["how"] == "there":  # as it was measured, whatever the configuration says now
                common["entry"] = entry | {"spec": record["spec"], "command": record["provenance"]["command"]}
            cells.append(CellResult(**common, status="measured", record=record, samples=samples))
        except FileNotFoundError:
            failed = (folder / "measure.log").is_file()
            reason = _last_line(folder / "measure.log") if failed else "not measured yet"
            cells.append(CellResult(**common, status="failed" if failed else "missing", reason=reason))
            problems[entry["cell"]] = "there is no record.json"
        except Disagreement as error:
            cells.append(CellResult(**common, status="failed", reason=str(error), about=error.about))
            problems[entry["cell"]] = str(error)
    for name, problem in _on_another_machine(plan, study, cells, results).items():
        place = next(i for i, cell in enumerate(cells) if cell.name == name)
        cells[place] = dataclasses.replace(
            cells[place], status="failed", record={}, samples=(), reason=problem, about="hardware"
        )
        problems[name] = problem
    if problems and not partial:
        raise Refusal(problems)
    return cells


def read_analysis(cell: CellResult, columns: dict[str, tuple[str, ...]], made_of: str) -> tuple[dict[str, Rows], str]:
    """(table name -> its rows, why the analysis cannot be used); no rows of a cell that was not measured.

    columns: of each table. made_of: what it is an analysis of, and its key in the record's summary: "trace".
    """
    if cell.status != "measured":
        return {}, ""
    if not isinstance(cell.record["summary"].get(made_of), dict):
        return {}, f"record.json says nothing of the {made_of} (edited by hand); measure the cell again"
    if not (cell.folder / "analysis").is_dir():
        return {}, f"measured, but the {made_of} is not analysed yet"
    tables = {}
    for name, expected in columns.items():
        try:
            tables[name] = _rows(cell.folder / "analysis" / f"{name}.csv", list(expected))
        except (OSError, ValueError, csv.Error):
            again = f"delete results/{cell.name}/analysis and run again"
            return {}, f"analysis/{name}.csv is missing, damaged or of another version; {again}"
    return tables, ""


def _rows(path: Path, columns: list[str]) -> Rows:
    """The rows of a CSV file. Raises ValueError if it has other columns, or ends too early."""
    text = path.read_text(encoding="utf-8")
    header, *rows = [*csv.reader(io.StringIO(text, newline=""), strict=True)] or [[]]
    if header != columns or not text.endswith("\n") or any(len(row) != len(columns) for row in rows):
        raise ValueError
    return rows


def _read_cell(entry: dict, identity: dict | None, machine: dict, folder: Path) -> tuple[dict, tuple[str, ...]]:
    """A cell's record and samples, if they are what the plan expects of them.

    `identity` is that of the machine at hand, if the cell is to be measured there; `machine` is the label's entry of
    the plan. Raises FileNotFoundError without a record, Disagreement where something is not as the plan has it.
    """
    record = _record(folder)
    spec, seen = record["spec"], record["machine"]
    if machine["how"] == "there":  # steps, seed and threads may be others, the point may not
        _check_version(record)
        of_point = [{key: each[key] for key in POINT if key in each} for each in (spec, entry["spec"])]
        if of_point[0] != of_point[1]:
            raise Disagreement("spec", f"record.json is of another point than its folder: {_difference(*of_point)}")
    elif spec != entry["spec"]:
        raise Disagreement("spec", f"record.json is of another spec: {_difference(spec, entry['spec'])}")
    _check_expected(seen, machine["expect"])
    if identity is not None:
        _check_identity(seen, identity)
    return record, _samples(folder, record["samples_sha256"])


def read_measured(results: Path, name: str) -> CellResult:
    """A cell as it was measured, whatever any plan says of it; its entry is made of its record.

    Raises FileNotFoundError without a record, Disagreement where it is damaged or of another version.
    """
    folder = results / name
    record = _record(folder)
    _check_version(record)
    entry = {"cell": name, "size": Path(name).parts[2], "spec": record["spec"], "code": record["code"]}
    entry["command"] = record["provenance"]["command"]
    return CellResult(entry, "measured", record, _samples(folder, record["samples_sha256"]), folder=folder)


def _record(folder: Path) -> dict:
    """A record that may be. Raises FileNotFoundError, or Disagreement."""
    try:
        return records.read_record(folder)
    except records.Damaged as error:
        raise Disagreement("damaged", str(error)) from None


def _check_version(record: dict) -> None:
    if record["schema_version"] != RECORD_VERSION:
        raise Disagreement("damaged", f"record.json is of version {record['schema_version']}, not {RECORD_VERSION}")


def _samples(folder: Path, digest: str) -> tuple[str, ...]:
    """The lines of a cell's samples, if they are those that its record was written with and may be."""
    try:
        records.read_samples(folder, digest)
    except records.Damaged as error:
        raise Disagreement("damaged", str(error)) from None
    return tuple((folder / "samples.csv").read_text().splitlines())


def _check_expected(seen: dict, expect: str | None) -> None:
    name = str(seen.get("gpu") or seen.get("cpu"))
    if expect and not is_expected(name, expect):
        raise Disagreement(
            "hardware",
            f"measured on {name}, but the configuration expects {expect!r}; correct what the entry asks Slurm for "
            "(gpu_model, slurm_partition, constraint), or expect",
        )


def _check_identity(seen: dict, expected: dict) -> None:
    found = {key: seen.get(key) for key in expected}
    if "packages" in expected:  # of those that the environment does not pin nothing is known beforehand
        seen_packages = seen.get("packages", {})
        found["packages"] = {name: seen_packages.get(name) for name in expected["packages"]}
    if "torch" in found and "+" not in str(expected["torch"]):  # a release that may have any build
        found["torch"] = str(found["torch"] or "").split("+")[0] or None
    if found != expected:
        raise Disagreement("hardware", f"measured on another machine: {_difference(found, expected)}")


def _on_another_machine(plan: dict, study: str, cells: list[CellResult], results: Path) -> dict[str, str]:
    """Cell → one line, for cells of a label whose machines differ, by GPU type, driver or version.

    The newest record of the label, of any study, says what holds.
    """
    problems = {}
    for label, machine in plan["machines"].items():
        own = [cell for cell in cells if cell.hardware == label and cell.status == "measured"]
        if machine["how"] == "here" or not own:
            continue
        names = {
            other: [entry["cell"] for entry in part["cells"] if entry["cell"].startswith(f"{label}/")]
            for other, part in plan["studies"].items()
        }
        records = {
            other: list(labels.read_records(results, listed, machine["expect"]).values())
            for other, listed in names.items()
        }
        newest = labels.newest(records)[study]
        for cell in own:
            difference = newest and labels.from_newest(cell.record["machine"], newest)
            if difference:
                problems[cell.name] = f"measured on another machine than the newest of {label}: {difference}"
    return problems


def _difference(found: dict, expected: dict) -> str:
    """The first key in which two mappings differ, with both values."""
    return "{} is {!r} there, {!r} now".format(*labels.first_difference(found, expected))


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "the log is empty"


def remedy(problems: dict[str, str], machines: dict[str, dict], command: str = "snakemake --cores 1 report") -> str:
    """What to do about refused cells: the command that measures exactly these again, where they can be.

    `machines`: label → its entry of the plan. `command`: what the run was started with.
    """
    how = {name: machines[name.partition("/")[0]]["how"] for name in problems}
    used = sorted({name.partition("/")[0] for name in problems if how[name] == "there"})
    again = [name for name in problems if how[name] != "there"]
    records = " ".join(f"results/{name}/record.json" for name in again)
    said = [f"To measure exactly these again: {command} --forcerun {records}"] if again else []
    said += [
        f"Nothing is measured for {label} here: copy results of one machine and one version to results/{label}, all by "
        "the same software, or remove what does not belong there"
        for label in used
    ]
    return "\n".join(said)
