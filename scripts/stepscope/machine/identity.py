"""What identifies the machine that a cell runs on, found without importing torch.

The identity holds the type of GPU (name, memory, driver) or CPU, and the versions of the software
that a cell uses; never a UUID, so that a grid may be put together on several machines of one type.
"""

import functools
import importlib.metadata
import importlib.util
import os
import re
import runpy
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import answered, gpus, told

PROC = Path("/proc")


class MachineError(Exception):
    """The machine cannot do what the configuration asks for; the message is one line for the
    user."""


@functools.cache
def cpu_name() -> str:
    """Model name of the processor, from /proc/cpuinfo."""
    match = re.search(r"^model name\s*:\s*(.+)$", told(PROC / "cpuinfo"), re.MULTILINE)
    return " ".join(match.group(1).split()) if match else os.uname().machine


def usable_cores() -> int:
    """Processor cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def usual_threads(device: str) -> int:
    """Threads of what is measured: all cores of a CPU but one, of a GPU's host one."""
    return 1 if device == "cuda" else max(1, usable_cores() - 1)


@functools.cache
def _torch() -> dict[str, Any]:
    """What torch/version.py says; it is run by itself: finding a package does not import it. {}
    without torch."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return {}
    return runpy.run_path(str(Path(found.origin).with_name("version.py")))


def torch_version() -> str | None:
    """Version of the installed torch with its build, as "2.13.0+cpu"; None without torch."""
    return _torch().get("__version__")


def package_version(name: str) -> str | None:
    """Version of an installed package by its metadata; None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def tool_version(name: str) -> str | None:
    """First line that `name --version` prints; None if the program is not on the PATH, or
    fails."""
    said = answered(name, "--version")
    return said and said.splitlines()[0].strip()


def choose_device(wanted: str) -> str:
    """`cuda` or `cpu` for the configuration's `device` (auto, cuda or cpu).

    Raises MachineError if `cuda` is asked for and this machine has no GPU that the installed torch
    can use.
    """
    if wanted == "cpu":
        return "cpu"
    visible = gpus.visible_gpus()
    version = torch_version()
    if visible and (version is None or _torch()["cuda"]):
        return "cuda"
    if wanted == "auto":
        return "cpu"
    why = f"the installed torch {version} was built without CUDA"
    if not visible:
        why = "no NVIDIA GPU is visible here"
    raise MachineError(f"device: cuda, but {why}; use device: auto or device: cpu")


def identity(
    device: str,
    tools: Iterable[str] = (),
    packages: Iterable[str] = (),
    versions: Mapping[str, str | None] | None = None,
) -> dict:
    """What a cell's staleness is judged by, besides its spec and its code.

    `tools` are the programs that the cell uses (nsys, a compiler), `packages` those of Python
    beside torch: None stands for one that is missing, so that a cell goes stale when it appears.
    `versions` are those pinned for another environment than this one's; what is not pinned there
    has no key.
    """
    names = ["python", "torch"]
    found: dict = {"device": device}
    if device == "cuda":
        gpu = gpus.visible_gpus()[0]
        found |= {"gpu": gpu.name, "driver": gpu.driver, "gpu_memory_mib": gpu.memory_mib}
        names.append("triton")
    else:
        found["cpu"] = cpu_name()
    here = {name: package_version(name) for name in ("triton", *packages)}
    here |= {"python": "{}.{}".format(*sys.version_info), "torch": torch_version()}
    known = here if versions is None else versions
    found |= {name: known[name] for name in names if name in known}
    if of_tools := {name: tool_version(name) for name in tools}:
        found["tools"] = of_tools
    if packages:
        found["packages"] = {name: known[name] for name in packages if name in known}
    return found


def hardware_label(device: str) -> str:
    """Folder name for the machine at hand, made from the name of its GPU or CPU."""
    name = re.sub(r"\((R|TM|tm|r)\)|@.*|\bCPU\b", "", cpu_name())
    if device == "cuda":
        name = gpus.visible_gpus()[0].name
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or device
