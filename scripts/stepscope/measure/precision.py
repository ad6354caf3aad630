"""The precisions, and which of them a device can run."""

import contextlib
from pathlib import Path

import torch

from stepscope.axes import PRECISIONS

# Flags of /proc/cpuinfo that say that a processor multiplies matrices in a format (x86's names, then Arm's). Without
# any of them torch computes in fp32 and rounds, some 16 times slower than fp32.
INSTRUCTIONS = {
    "bf16": {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16"},
    "fp16": {"avx512_fp16", "amx_fp16", "asimdhp"},
}
CPUINFO = Path("/proc/cpuinfo")


def unsupported(precision: str, device: str) -> str | None:
    """Why the device cannot run the precision, in one line; None if it can."""
    if device == "cpu" and precision == "tf32":
        return "TF32 is a format of NVIDIA's tensor cores; a CPU has none"
    if device == "cpu":
        is_missing = PRECISIONS[precision].is_autocast and not has_instructions(precision)
        return f"no {precision} instructions" if is_missing else None
    major, minor = torch.cuda.get_device_capability()
    least = PRECISIONS[precision].capability
    if major < least:
        name = torch.cuda.get_device_name()
        return f"{precision} needs compute capability {least}.0 or more; {name} has {major}.{minor}"
    return None


def has_instructions(precision: str) -> bool:
    """Whether this processor has instructions for a format of 16 bits, by the flags that Linux shows."""
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return bool(INSTRUCTIONS.get(precision, set()) & set(flags.partition(":")[2].split()))


def configure(precision: str) -> None:
    """Let fp32 matrix products use TF32 for `tf32`, and for nothing else."""
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def dtype(precision: str) -> torch.dtype:
    """Type of a tensor that stands for the precision by itself."""
    return getattr(torch, PRECISIONS[precision].dtype)


def autocast(precision: str, device: str) -> contextlib.AbstractContextManager:
    """Context in which the forward pass runs: autocast for bf16 and fp16 (weights stay fp32), else none."""
    if PRECISIONS[precision].is_autocast:
        return torch.autocast(device, dtype=dtype(precision))
    return contextlib.nullcontext()
