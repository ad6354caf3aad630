"""The GPUs of this machine, found without importing torch: by NVML."""

import contextlib
import functools
import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """A GPU as the driver names it; memory in MiB."""

    name: str
    uuid: str
    memory_mib: int
    driver: str


def visible_gpus() -> list[Gpu]:
    """GPUs that CUDA_VISIBLE_DEVICES leaves visible, in its order; [] without an NVIDIA driver."""
    gpus = _gpus()
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return gpus
    chosen = []
    for entry in map(str.strip, wanted.split(",")):
        named = [gpu for i, gpu in enumerate(gpus) if entry == str(i) or gpu.uuid.startswith(entry)]
        if not entry or not named:  # as CUDA does: the list ends where no device is named
            break
        chosen.append(named[0])
    return chosen


def alike(gpus: list[Gpu]) -> list[str]:
    """UUIDs of the GPUs of the first one's type (name and memory), in their order."""
    return [
        gpu.uuid for gpu in gpus if (gpu.name, gpu.memory_mib) == (gpus[0].name, gpus[0].memory_mib)
    ]


@functools.cache
def _gpus() -> list[Gpu]:
    try:
        import pynvml
    except ImportError:
        return []
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        driver = pynvml.nvmlSystemGetDriverVersion()
        numbers = range(pynvml.nvmlDeviceGetCount())
        gpus = [
            Gpu(
                name=pynvml.nvmlDeviceGetName(handle),
                uuid=pynvml.nvmlDeviceGetUUID(handle),
                memory_mib=pynvml.nvmlDeviceGetMemoryInfo(handle).total // 2**20,
                driver=driver,
            )
            for handle in map(pynvml.nvmlDeviceGetHandleByIndex, numbers)
        ]
        pynvml.nvmlShutdown()
        return gpus
    return []
