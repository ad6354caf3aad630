"""Reading the cells of a plan: each record checked against what the plan expects, each sample file against its record.

A study's tables are made from the `CellResult`s that read_cells() gives.
"""

import csv
import hashlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path


class Refusal(Exception):
    """Cells that do not belong to the plan; `problems` maps the cell's name to one line that says why."""

    def __init__(self, problems: dict[str, str]):
        super().__init__(f"{len(problems)} cells refused")
        self.problems = problems


@dataclass(frozen=True)
class CellResult:
    """One cell: its entry in the plan, its record ({} if there is none), its samples as lines of text, its folder.

    `status` is "measured", "missing" (never ran) or "failed" (its log is there, its record is not).
    """

    entry: dict
    status: str
    record: dict = field(default_factory=dict)
    samples: tuple[str, ...] = ()
    reason: str = ""
    folder: Path = Path()

    @property
    def name(self) -> str:
        """`<hardware>/<study>/…`, the folder below results/."""
        return self.entry["cell"]


def read_plan(path: Path) -> dict:
    """The plan that the workflow wrote. Raises ValueError, with one line, if it is none."""
    try:
        plan = json.loads(path.read_text())
        plan["studies"]
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
        try:
            cells.append(_read_cell(entry, part["machine"], folder))
        except FileNotFoundError:
            failed = (folder / "measure.log").is_file()
            reason = _last_line(folder / "measure.log") if failed else "not measured yet"
            cells.append(CellResult(entry, "failed" if failed else "missing", reason=reason, folder=folder))
            problems[entry["cell"]] = "there is no record.json"
        except ValueError as error:
            cells.append(CellResult(entry, "failed", reason=str(error), folder=folder))
            problems[entry["cell"]] = str(error)
    if problems and not partial:
        raise Refusal(problems)
    return cells


def _read_cell(entry: dict, expected_machine: dict, folder: Path) -> CellResult:
    """One cell. Raises FileNotFoundError without a record, ValueError with one line where something disagrees."""
    text = _content(folder / "record.json")
    try:
        record = json.loads(text)
        spec, machine, *others = (record[key] for key in ("spec", "machine", "summary", "provenance", "telemetry"))
        code, digest = record["code"], record["samples_sha256"]
        if not all(isinstance(part, dict) for part in (spec, machine, *others)):
            raise TypeError
    except (ValueError, KeyError, TypeError):
        raise ValueError("record.json is damaged (truncated or edited by hand)") from None
    if spec != entry["spec"]:
        raise ValueError(f"record.json is of another spec: {_difference(spec, entry['spec'])}")
    if code != entry["code"]:
        raise ValueError(f"measured by other code (digest {code}, now {entry['code']})")
    seen = {key: machine.get(key) for key in expected_machine}
    if "torch" in seen and "+" not in str(expected_machine["torch"]):  # a release that may have any build
        seen["torch"] = str(seen["torch"] or "").split("+")[0] or None
    if seen != expected_machine:
        raise ValueError(f"measured on another machine: {_difference(seen, expected_machine)}")
    try:
        samples = _content(folder / "samples.csv")
    except FileNotFoundError:
        raise ValueError("samples.csv is missing") from None
    if hashlib.sha256(samples).hexdigest() != digest:
        raise ValueError("samples.csv is not the file that record.json was written with (truncated or edited by hand)")
    return CellResult(entry, "measured", record, tuple(samples.decode().splitlines()), folder=folder)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from None


def _difference(found: dict, expected: dict) -> str:
    """The first key in which two mappings differ, with both values."""
    for key in sorted({*found, *expected}):
        if found.get(key) != expected.get(key):
            return f"{key} is {found.get(key)!r} there, {expected.get(key)!r} now"
    return "no difference"


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "the log is empty"


def remedy(problems: dict[str, str]) -> str:
    """The command that measures exactly the refused cells again."""
    records = " ".join(f"results/{name}/record.json" for name in problems)
    return f"snakemake --cores 1 report --forcerun {records}"


def machine_columns(record: dict) -> dict:
    """Columns that every study's table has: device, software, telemetry, time."""
    if not record:
        return {}
    provenance, telemetry = record["provenance"], record["telemetry"]
    hardware, versions = provenance["hardware"], provenance["versions"]
    return {
        **{key: telemetry.get(key) for key in ("sm_clock_min_mhz", "sm_clock_median_mhz", "power_max_w")},
        "temperature_max_c": telemetry.get("temperature_max_c"),
        "throttle": "; ".join(telemetry.get("throttle") or []),
        "other_processes": telemetry.get("other_processes"),
        "code": record["code"],
        "git_commit": provenance.get("git_commit"),
        "started": provenance["started"],
        "duration_s": provenance["duration_s"],
        "device": hardware["device"],
        "device_name": hardware.get("gpu") or hardware["cpu"],
        "device_memory_bytes": hardware.get("gpu_memory_bytes") or hardware["host_memory_bytes"],
        "device_uuid": hardware.get("gpu_uuid"),
        "driver": hardware.get("driver"),
        "power_limit_w": hardware.get("power_limit_w"),
        "threads": provenance["settings"]["threads"],
        **{key: versions.get(key) for key in ("python", "torch", "cuda", "triton")},
    }


def statistics_columns(prefix: str, found: dict, noisy_share: float | None) -> dict:
    """A series' statistics in milliseconds, as columns; empty where it has none."""
    columns = {f"{prefix}samples": found.get("count"), f"{prefix}outliers": found.get("outliers")}
    for key in ("mean", "std", "median", "iqr", "ci_low", "ci_high"):
        value = found.get(key)
        columns[f"{prefix}{key}_ms"] = None if value is None else 1000 * value
    if "median" in found:
        half = (found["ci_high"] - found["ci_low"]) / 2
        columns[f"{prefix}noisy"] = noisy_share is not None and half > noisy_share * found["median"]
    else:
        columns[f"{prefix}noisy"] = None
    return columns


def write_tables(folder: Path, study: str, rows: list[dict], samples_header: list[str], samples) -> None:
    """Write STUDY.csv and STUDY_samples.csv, whole or not at all; a row lacks no column that another has.

    `samples` gives (key values, lines of the cell's samples.csv without its header).
    """
    folder.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = io.StringIO()
    writer = csv.DictWriter(table, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(
        {
            folder / f"{study}.csv": [table.getvalue()],
            folder / f"{study}_samples.csv": _with_keys(samples_header, samples),
        }
    )


def _with_keys(header: list[str], samples):
    yield ",".join(header) + "\n"
    for key, lines in samples:
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(key)
        prefix = text.getvalue()
        yield from (f"{prefix},{line}\n" for line in lines)


def write_whole(contents: dict) -> None:
    """Write beside each path, then rename all: no path ever shows a part of its content."""
    beside = {path: path.with_name(f".{path.name}.part") for path in contents}
    try:
        for path, lines in contents.items():
            with open(beside[path], "w", encoding="utf-8") as file:
                file.writelines(lines)
        for path, part in beside.items():
            part.rename(path)
    except OSError:
        for part in beside.values():
            part.unlink(missing_ok=True)
        raise
