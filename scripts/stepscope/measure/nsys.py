"""A cell recorded by Nsight Systems: `nsys profile` in front of its program, until the capture
holds kernels."""

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from stepscope import files
from stepscope.axes import option
from stepscope.config.grid import words_of
from stepscope.config.profilers import NSYS_NEUTRAL
from stepscope.machine import identity, process
from stepscope.measure import record as cell_record
from stepscope.measure import scratch
from stepscope.measure.found import Found, Outcome
from stepscope.trace import TraceError, nsys_export

NAME = "step"  # of the only variant

_PROGRESS = re.compile(r"\[=*>?\s*\d*%|^\[\d+/\d+\]|^Processing (\d+ )?events")
# What is known to help where a driver and an nsys give an empty capture: kernels traced by
# software, no capture range.
REMEDIES: dict[str, dict[str, tuple[str, str]]] = {
    "as configured": {},
    "kernels traced by software": {"trace": ("cuda", "cuda-sw")},
    "without a capture range": {"capture-range": ("cudaProfilerApi", "none")},
}


def missing(device: str) -> str | None:
    """Why nsys cannot record here; None if it can."""
    if device == "cpu":
        return "nsys records the work of a GPU; on a CPU use --profiler torch"
    if shutil.which("nsys") is None:
        return "nsys is not on the PATH; install Nsight Systems, or use --profiler torch"
    return None


def record(
    spec: dict, program: Path, folder: Path, environment: dict[str, str], trace: dict
) -> Found:
    """Run the spec's program behind nsys until there are kernels in the capture; what the run found
    that counted.

    Fills in `trace`, and leaves trace.nsys-rep and trace.sqlite in `folder`. An empty capture, with
    which some pairs of driver and nsys end without an error, is tried again in the known ways; if
    none helps, the mode is `unsupported`. Ends the program if the measured program failed.
    """
    trace["version"] = identity.tool_version("nsys")
    report = folder / "trace.nsys-rep"
    plain = {key: value for key, value in spec.items() if key not in NSYS_NEUTRAL}
    words = words_of(plain | {"profiler": "none"})
    with scratch.folder() as place:
        inner = [sys.executable, str(program), *words, "--out", str(place)]
        for name, chosen in attempts(spec):
            recording = command("nsys", chosen, report.with_suffix(""), inner)
            code, gave = run(recording, environment, process.die_with_parent)
            if not (place / "record.json").is_file():
                sys.exit(f"error: the profiled program failed (exit code {code}): {gave}")
            if code:  # the program ended well, and nsys did not
                gave = gave or f"exit code {code}"
            else:
                found = _found_in(place)
                if any(one["status"] != "ok" for one in found.statuses):
                    report.unlink(missing_ok=True)
                    return found
                gave = _captured(report, folder / "trace.sqlite")
            trace["attempts"].append({"tried": name, "gave": gave[:200] or "kernels"})
            if not gave:
                trace |= {"file": "trace.sqlite", "options": " ".join(_flags(chosen))}
                return found
            print(f"nsys, {name}: {gave}", flush=True)
    for full in filter(files.is_full, (folder, Path(tempfile.gettempdir()))):
        sys.exit(
            f"error: nsys recorded nothing, and the disk of {full} is full; make room, run again"
        )
    tried = "; ".join(f"{attempt['tried']}: {attempt['gave']}" for attempt in trace["attempts"])
    for path in folder.iterdir():
        path.unlink()
    reason = f"{trace['version']} recorded no kernels here ({tried}); use --profiler torch"
    found = Found()
    found.status(NAME, Outcome("unsupported", reason), mode=option(spec, "mode"))
    return found


def options(spec: dict) -> dict[str, str]:
    """Options of `nsys profile` for a spec: CUDA and NVTX inside the capture range, no sampling of
    the processor.

    Python's backtraces come with those of the CUDA calls, and nsys unwinds these only while it
    samples the processor; a threshold (of nanoseconds) it applies to the last named kind of calls
    alone.
    """
    chosen = NSYS_NEUTRAL | spec
    found = {
        "trace": chosen["nsys_trace"],
        "capture-range": "cudaProfilerApi",
        "capture-range-end": "stop",
        "sample": "none",
        "cpuctxsw": "none",
        "cuda-graph-trace": chosen["nsys_cuda_graph_trace"],
        "force-overwrite": "true",
    }
    if "nsys_python_backtrace" in spec:
        found |= {
            "python-backtrace": "cuda",
            "cudabacktrace": "all:0",  # however short a call is
            "sample": "process-tree",
        }
    if "nsys_pytorch" in spec:
        found["pytorch"] = spec["nsys_pytorch"]
    return found


def attempts(spec: dict) -> Iterator[tuple[str, dict[str, str]]]:
    """(what is tried, options), the configured ones first."""
    for name, changes in REMEDIES.items():
        changed = options(spec)
        for key, (before, after) in changes.items():
            changed[key] = changed[key].replace(before, after, 1)
        if changed["capture-range"] == "none":
            del changed["capture-range-end"]
        yield name, changed


def _found_in(place: Path) -> Found:
    """What the program that was recorded has found, by its record."""
    rows, record = cell_record.read(place)
    summary = record["summary"]
    built = summary.get("built", {})
    return Found(1, rows, summary["values"], summary["statuses"], built=built)


def _captured(report: Path, path: Path) -> str:
    """Export the report; what is wrong with it, nothing if there are kernels in it."""
    if not report.is_file():
        return "no report"
    try:
        nsys_export.export(report, path)
    except TraceError as error:
        return str(error).removeprefix(f"{report}: ")
    with contextlib.closing(sqlite3.connect(path)) as database, contextlib.suppress(sqlite3.Error):
        # An error: there is no such table.
        kernels = database.execute("SELECT 1 FROM CUPTI_ACTIVITY_KIND_KERNEL LIMIT 1")
        if kernels.fetchone():
            return ""
    return "an empty capture"


def command(program: str, chosen: dict[str, str], report: Path, inner: list[str]) -> list[str]:
    """`nsys profile` with its options in front of the inner command; the report goes to
    report.nsys-rep."""
    return [program, "profile", *_flags(chosen), f"--output={report}", *inner]


def _flags(chosen: dict[str, str]) -> list[str]:
    return [f"--{key}={value}" for key, value in chosen.items()]


def run(
    words: list[str], environment: dict[str, str], prepare: Callable[[], None]
) -> tuple[int, str]:
    """(exit code, the last line that was said) of a command, whose output is shown as it comes."""
    running = subprocess.Popen(
        words,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=prepare,
    )
    assert running.stdout is not None, "it is a pipe"
    last = ""
    for line in running.stdout:
        if _PROGRESS.search(line):
            continue
        print(line, end="", flush=True)
        last = line.strip() or last
    return running.wait(), last
