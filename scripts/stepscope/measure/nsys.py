"""Putting `nsys profile` in front of a program, and seeing whether it captured anything."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

# What is known to help where a driver and an nsys give an empty capture, as changes of the options.
REMEDIES = (
    ("as configured", {}),
    ("kernels traced by software", {"trace": lambda value: value.replace("cuda", "cuda-sw", 1)}),
    ("without a capture range", {"capture-range": lambda _: "none"}),
)

_PROGRESS = re.compile(r"\[=*>?\s*\d*%|^\[\d+/\d+\]|^Processing (\d+ )?events")


def options(spec: dict) -> dict[str, str]:
    """Options of `nsys profile` for a spec: CUDA and NVTX inside the capture range, no sampling of the processor.

    Python's backtraces come with those of the CUDA calls, and nsys unwinds these only while it samples the processor.
    """
    chosen = {
        "trace": spec.get("nsys_trace", "cuda,nvtx"),
        "capture-range": "cudaProfilerApi",
        "capture-range-end": "stop",
        "sample": "none",
        "cpuctxsw": "none",
        "cuda-graph-trace": spec.get("nsys_cuda_graph_trace", "node"),
        "force-overwrite": "true",
    }
    if spec.get("nsys_python_backtrace", "none") != "none":
        chosen |= {"python-backtrace": "cuda", "cudabacktrace": "kernel:0", "sample": "process-tree"}
    if spec.get("nsys_pytorch", "none") != "none":
        chosen["pytorch"] = spec["nsys_pytorch"]
    if spec.get("nsys_cuda_memory_usage") == "true":
        chosen["cuda-memory-usage"] = "true"
    return chosen


def attempts(spec: dict) -> Iterator[tuple[str, dict[str, str]]]:
    """(what is tried, options), the configured ones first."""
    plain = options(spec)
    for name, changes in REMEDIES:
        changed = {key: changes[key](value) if key in changes else value for key, value in plain.items()}
        if changed.get("capture-range") == "none":
            changed.pop("capture-range-end", None)
        yield name, changed


def command(program: str, chosen: dict[str, str], report: Path, inner: list[str]) -> list[str]:
    """`nsys profile` with its options in front of the inner command; the report goes to report.nsys-rep."""
    words = [f"--{key}={value}" for key, value in chosen.items()]
    return [program, "profile", *words, f"--output={report}", *inner]


def run(words: list[str], environment: dict[str, str], prepare: Callable[[], None]) -> tuple[int, str]:
    """(exit code, the last line that was said) of a command, whose output is shown as it comes."""
    process = subprocess.Popen(
        words,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=prepare,
    )
    last = ""
    for line in process.stdout:
        if _PROGRESS.search(line):
            continue
        print(line, end="", flush=True)
        last = line.strip() or last
    return process.wait(), last
