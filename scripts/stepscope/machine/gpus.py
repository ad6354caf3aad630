"""The GPUs of this machine, found without importing torch: by NVML, else by what the driver shows
in /proc."""

import contextlib
import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path

from stepscope.machine import told

PROC = Path("/proc")


@dataclass(frozen=True)
class Gpu:
    """A GPU as the driver names it; memory in MiB, 0 where only /proc was there to read."""

    name: str
    uuid: str
    memory_mib: int
    driver: str


def visible_gpus() -> list[Gpu]:
    """GPUs that CUDA_VISIBLE_DEVICES leaves visible, in its order; [] without an NVIDIA driver."""
    gpus = _gpus_from_nvml() or _gpus_from_proc()
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return gpus
    chosen = []
    for entry in map(str.strip, wanted.split(",")):
        found = [
            gpu
            for i, gpu in enumerate(gpus)
            if entry and (entry == str(i) or gpu.uuid.startswith(entry))
        ]
        if not found:  # as CUDA does: the list ends at the first entry that names no device
            break
        chosen.append(found[0])
    return chosen


def alike(gpus: list[Gpu]) -> list[str]:
    """UUIDs of the GPUs of the first one's type (name and memory), in their order."""
    return [
        gpu.uuid for gpu in gpus if (gpu.name, gpu.memory_mib) == (gpus[0].name, gpus[0].memory_mib)
    ]


@functools.cache
def _gpus_from_nvml() -> list[Gpu]:
    try:
        import pynvml
    except ImportError:
        return []
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        driver = pynvml.nvmlSystemGetDriverVersion()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        gpus = [
            Gpu(
                name=pynvml.nvmlDeviceGetName(handle),
                uuid=pynvml.nvmlDeviceGetUUID(handle),
                memory_mib=pynvml.nvmlDeviceGetMemoryInfo(handle).total // 2**20,
                driver=driver,
            )
            for handle in handles
        ]
        pynvml.nvmlShutdown()
        return gpus
    return []


def _gpus_from_proc() -> list[Gpu]:
    """What the driver says of every GPU, in the order of their addresses on the bus."""
    folder = PROC / "driver/nvidia"
    driver = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)", told(folder / "version"))
    version = driver.group(1) if driver else "unknown"
    gpus = []
    for file in sorted(folder.glob("gpus/*/information")):
        info = dict(re.findall(r"^([^:\n]+):\s*(.*?)\s*$", told(file), re.MULTILINE))
        gpus.append(Gpu(info.get("Model", "unknown"), info.get("GPU UUID", ""), 0, version))
    return gpus
