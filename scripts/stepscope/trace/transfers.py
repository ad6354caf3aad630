"""What each process did on each device, what moved memory, and what waited for it; seconds of a
step."""

import re

import numpy as np
import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.events import SECOND
from stepscope.trace.kernel_categories import CATEGORIES
from stepscope.trace.phase_tables import selections
from stepscope.trace.ranks import SHOWN, with_ranks

# Calls in which the host waits: CUDA's and HIP's by their words, whoever else follows them (MUSA,
# Ascend's aclrt), and Level Zero's and SYCL's own.
_WAITS = re.compile(
    r"[a-z]+(Device|Stream|Event|Ctx|Thread|Queue)Synchronize"
    r"|aclrtSynchronize(Stream|Device|Event)"
    r"|(cu|cuda|hip|musa)(Memcpy|Memset)(?!\w*Async)"
    r"|ur(Queue|Event)(Finish|Wait)|ze(CommandQueue|Event\w*)Synchronize"
    r"|cnrtQueueSync"
)
_COPY = re.compile(r"^\[CUDA memcpy (.*)\]$")
_RANK = ["place", *SHOWN, "steps"]
FILLS_BY_KERNEL = "fill by a kernel"


def processes(found: Attribution) -> pd.DataFrame:
    """A row for each phase, process and device: what the process launched in the phase."""
    every = with_ranks(found).assign(kernels=found.is_kernel)
    parts = {
        phase: every[mask].groupby(_RANK)[["kernels", "ns"]].sum()
        for phase, mask in selections(found).items()
    }
    table = pd.concat(parts, names=["phase"]).reset_index()
    table["kernels"] /= table["steps"]
    table["gpu_time"] = table["ns"] / SECOND / table["steps"]
    return table[["phase", *SHOWN, "kernels", "gpu_time"]]


def transfers(found: Attribution) -> pd.DataFrame:
    """A row for each process, device and kind of what moves or fills memory, and for each call in
    which the host waits.

    Copies stand by direction, fills by the driver and fills by kernels apart. `bytes` a step and
    `rate` (B/s) are known of the former two, if the trace has them. A wait has no device.
    """
    kinds = np.array([_kind_of_transfer(name) for name in found.trace.names], dtype=object)
    is_filling = found.is_kernel & (found.category == CATEGORIES.index("memory set/copy"))
    what = np.where(is_filling, FILLS_BY_KERNEL, kinds[found.trace.operations["name"]])
    every = with_ranks(found).assign(what=what)[what != ""]
    key = [*_RANK, "what"]
    table = every.groupby(key)["ns"].agg(calls="size", time="sum")
    known = every[every["bytes"] >= 0].groupby(key)[["bytes", "ns"]].sum()
    table = table.join(known.astype(float)).reset_index()
    table["rate"] = table["bytes"] / table["ns"].where(table["ns"] > 0) * SECOND
    table = table.sort_values(["place", "time"], ascending=[True, False], kind="stable")
    table = pd.concat([table, _waits(found)], ignore_index=True)
    table["time"] /= SECOND
    for name in ("calls", "time", "bytes"):
        table[name] /= table["steps"]
    shown = table[[*SHOWN, "what", "calls", "time", "bytes", "rate"]]
    return shown.dropna(axis=1, how="all")


def _waits(found: Attribution) -> pd.DataFrame:
    calls = found.trace.calls
    own = calls[found.trace.names_that(_WAITS.match)[calls["name"]]]
    length = (own["end"] - own["start"]).groupby([own["process"], own["name"]])
    table = length.agg(calls="size", time="sum").reset_index()
    table["steps"] = table["process"].map(found.steps_of_process).fillna(found.steps)
    table["process"] = table["process"].map(found.trace.process_name)
    table["what"] = found.named(table["name"])
    return table.sort_values("time", ascending=False, kind="stable")


def _kind_of_transfer(name: str) -> str:
    """Of a copy its direction; empty of what is neither copy nor fill."""
    if name == "[CUDA memset]":
        return "fill"
    match = _COPY.match(name)
    return f"copy {match[1]}" if match else ""
