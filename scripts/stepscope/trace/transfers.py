"""What each process did on each device, what moved memory, and what waited for it; seconds of a
step."""

import re

import pandas as pd

from .attribution import Attribution
from .events import SECOND
from .phase_tables import selections
from .ranks import SHOWN, with_ranks

# Calls in which the host waits: CUDA's and HIP's by their words, whoever else follows them (MUSA,
# Ascend's aclrt), and Level Zero's and SYCL's own.
_WAITS = re.compile(
    r"[a-z]+(Device|Stream|Event|Ctx|Thread|Queue)Synchronize"
    r"|aclrtSynchronize(Stream|Device|Event)"
    r"|(cu|cuda|hip|musa)(Memcpy|Memset)(?!\w*Async)"
    r"|ur(Queue|Event)(Finish|Wait)|ze(CommandQueue|Event\w*)Synchronize"
    r"|cnrtQueueSync"
)
_RANK = ["place", *SHOWN, "steps"]


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

    Copies stand by direction; fills are the driver's. `bytes` a step and `rate` (B/s) are known if
    the trace has them. A wait has no device.
    """
    every = with_ranks(found)[found.moves_memory]
    every = every.assign(what=list(map(_kind_of_transfer, found.named(every["name"]))))
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
    """Of a copy its direction."""
    way = name.removeprefix("[CUDA memcpy ").removesuffix("]")
    return "fill" if name == "[CUDA memset]" else f"copy {way}"
