"""The precisions, and which of them a device can run."""

import contextlib
from pathlib import Path

import torch

from stepscope.model.formats import FORMATS

CPUINFO = Path("/proc/cpuinfo")
Tables = dict[str, list[dict]]  # the rows of each table that a probe fills


def unsupported(precision: str, device: str) -> str | None:
    """Why the device cannot run the precision, in one line; None if it can."""
    if device == "cpu" and FORMATS[precision].of_fp32 == "high":
        return "TF32 is a format of NVIDIA's tensor cores; a CPU has none"
    if device == "cpu":
        return None if has_instructions(precision) else f"no {precision} instructions"
    own = torch.cuda.get_device_capability()
    least = FORMATS[precision].capability
    if own >= least:
        return None
    needed, has = ("{}.{}".format(*each) for each in (least, own))
    name = torch.cuda.get_device_name()
    return f"{precision} needs compute capability {needed} or more; {name} has {has}"


def has_instructions(precision: str) -> bool:
    """Whether this processor has instructions for a precision, by the flags that Linux shows."""
    wanted = FORMATS[precision].cpu_flags
    if wanted is None:
        return True
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return not set(wanted).isdisjoint(flags.partition(":")[2].split())


def configure(precision: str) -> None:
    """Let fp32 matrix products round their operands for `tf32`, and for nothing else that does not
    say so."""
    of_fp32 = FORMATS[precision].of_fp32
    torch.set_float32_matmul_precision(of_fp32)
    torch.backends.cudnn.allow_tf32 = of_fp32 != "highest"


def dtype(precision: str) -> torch.dtype:
    """Type of a tensor that stands for the precision by itself."""
    return getattr(torch, FORMATS[precision].dtype)


def autocast(precision: str, device: str) -> contextlib.AbstractContextManager:
    """Context in which the forward pass runs: autocast for bf16 and fp16 (weights stay fp32), else
    none."""
    if FORMATS[precision].is_autocast:
        return torch.autocast(device, dtype=dtype(precision))
    return contextlib.nullcontext()
