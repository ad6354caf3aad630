"""Columns that the tables of several studies share, and how a table is written: whole or not at all."""

import csv
import io
from pathlib import Path


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
        "cpus": provenance["settings"].get("cpus"),  # older records do not say
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
