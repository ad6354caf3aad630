"""Where a result comes from: command, code, hardware, software, settings, time."""

import datetime
import os
import platform
import time
from pathlib import Path

import torch

from stepscope.machine import answered, gpus, identity

from .telemetry import Telemetry


def git_commit() -> str | None:
    """Commit of the checkout that holds this program, with -dirty if it was changed; None outside
    git."""
    git = ["git", "-C", str(Path(__file__).parent)]
    shown = answered(*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")
    return shown and shown.strip()


def times() -> dict:
    """When the kernel started this process, in UTC (ISO 8601), and for how many seconds it has
    run."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    ran = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    start = datetime.datetime.fromtimestamp(time.time() - ran, datetime.UTC)
    return {"started": start.isoformat(timespec="seconds"), "duration_s": round(ran, 3)}


def describe(device: str, command: str, telemetry: Telemetry) -> dict:
    """Provenance of a result that this process has measured on `device`."""
    gpu = next(iter(gpus.visible_gpus()), None) if device == "cuda" else None
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    hardware = {"device": device, "cpu": identity.cpu_name(), "host_memory_bytes": memory}
    if gpu:
        hardware |= {
            "gpu": gpu.name,
            "gpu_uuid": gpu.uuid,
            "gpu_memory_bytes": torch.cuda.get_device_properties(0).total_memory,
            "driver": gpu.driver,
            **telemetry.limits(),
        }
    return {
        "command": command,
        "git_commit": git_commit(),
        "hardware": hardware,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "triton": identity.package_version("triton"),
            "einops": identity.package_version("einops"),
        },
        "settings": {
            "allocator": os.environ.get("PYTORCH_ALLOC_CONF")
            or os.environ.get("PYTORCH_CUDA_ALLOC_CONF")
            or "default",
            "threads": torch.get_num_threads(),
            "cpus": identity.usable_cores(),
        },
    }
