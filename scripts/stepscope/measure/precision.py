"""The four precisions, and which of them a device can run."""

import contextlib

import torch

from stepscope.axes import PRECISIONS


def unsupported(precision: str, device: str) -> str | None:
    """Why the device cannot run the precision, in one line; None if it can."""
    if device == "cpu":
        return _unsupported_on_cpu(precision)
    major, minor = torch.cuda.get_device_capability()
    least = PRECISIONS[precision].capability
    if major < least:
        name = torch.cuda.get_device_name()
        return f"{precision} needs compute capability {least}.0 or more; {name} has {major}.{minor}"
    return None


def _unsupported_on_cpu(precision: str) -> str | None:
    if precision == "tf32":
        return "TF32 is a format of NVIDIA's tensor cores; a CPU has none"
    has_instructions = {
        "bf16": torch.ops.mkldnn._is_mkldnn_bf16_supported,
        "fp16": torch.ops.mkldnn._is_mkldnn_fp16_supported,
    }.get(precision)
    if has_instructions is None or has_instructions():
        return None
    return f"this processor has no {precision} instructions; torch would emulate them, some 100 times slower than fp32"


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
