"""A cell recorded by Nsight Systems: `nsys profile` in front of its program."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

from stepscope import files
from stepscope.axes import option
from stepscope.config.grid import words_of
from stepscope.config.profilers import NSYS_NEUTRAL
from stepscope.machine import identity, process
from stepscope.trace import TraceError, nsys_export

from . import scratch
from .found import Found, Outcome

NAME = "step"  # of the only variant

_PROGRESS = re.compile(r"\[=*>?\s*\d*%|^\[\d+/\d+\]|^Processing (\d+ )?events")
INSTEAD = "use --profiler torch, or --nsys-trace cuda-sw,nvtx, which traces kernels by software"


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
    """Run the spec's program behind nsys; what it found.

    Fills in `trace`, and leaves trace.nsys-rep and trace.sqlite in `folder`. Where nsys has no
    kernels, as it ends with some drivers without an error, the mode is `unsupported`. Ends the
    program if the measured program failed.
    """
    trace["version"] = identity.tool_version("nsys")
    flags = [f"--{key}={value}" for key, value in options(spec).items()]
    report = folder / "trace.nsys-rep"
    plain = {key: value for key, value in spec.items() if key not in NSYS_NEUTRAL}
    words = words_of(plain | {"profiler": "none"})
    with scratch.folder() as place:
        code, said = run(
            [
                *("nsys", "profile", *flags, f"--output={report.with_suffix('')}"),
                *(sys.executable, str(program), *words, "--out", str(place)),
            ],
            environment,
        )
        if not (place / "record.json").is_file():
            sys.exit(f"error: the profiled program failed (exit code {code}): {said}")
        found = _found_in(place)
    if any(one["status"] != "ok" for one in found.statuses):
        report.unlink(missing_ok=True)
        return found
    # With a code the program ended well, and nsys did not.
    wrong = said or f"exit code {code}"
    if not code:
        wrong = _captured(report, folder / "trace.sqlite")
    if not wrong:
        trace |= {"file": "trace.sqlite", "options": " ".join(flags)}
        return found
    for full in filter(files.is_full, (folder, Path(tempfile.gettempdir()))):
        sys.exit(
            f"error: nsys recorded nothing, and the disk of {full} is full; make room, run again"
        )
    for path in folder.iterdir():
        path.unlink()
    reason = f"{trace['version']} recorded no kernels here ({wrong[:200]}); {INSTEAD}"
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
    found = {
        "trace": spec.get("nsys_trace", NSYS_NEUTRAL["nsys_trace"]),
        "capture-range": "cudaProfilerApi",
        "capture-range-end": "stop",
        "sample": "none",
        "cpuctxsw": "none",
        "cuda-graph-trace": "node",
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


def _found_in(place: Path) -> Found:
    """What the program that was recorded has found, by its record."""
    summary = json.loads((place / "record.json").read_text())["summary"]
    samples = pd.read_csv(
        place / "samples.csv",
        float_precision="round_trip",
        keep_default_na=False,  # a phase of one's own may have any name
        na_values="",
    )
    rows = samples.astype(object).where(samples.notna(), None).to_dict("records")
    return Found(1, rows, summary["values"], summary["statuses"], built=summary.get("built", {}))


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


def run(words: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """(exit code, the last line that was said) of a command, whose output is shown as it comes."""
    running = subprocess.Popen(
        words,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=process.die_with_parent,
    )
    assert running.stdout is not None, "it is a pipe"
    last = ""
    for line in running.stdout:
        if _PROGRESS.search(line):
            continue
        print(line, end="", flush=True)
        last = line.strip() or last
    return running.wait(), last
