"""What identifies the machine that a cell runs on, found without importing torch.

The identity holds the type of GPU (name, memory, driver) or CPU, and the versions of the software
that a cell uses; never a UUID, so that a grid may be put together on several machines of one type.
"""

import functools
import importlib.metadata
import importlib.util
import os
import re
import sys
from pathlib import Path

from stepscope.machine import answered, gpus, told

PROC = Path("/proc")
NO_GPU = "device: cuda, but no NVIDIA GPU is visible here; use device: auto or device: cpu"
PACKAGE = "python:"  # before the name of a tool that is a package of Python


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
def torch_version() -> str | None:
    """Version of the installed torch with its build, as "2.13.0+cpu"; None without torch."""
    return _torch_version_fields().get("__version__")


def torch_has_cuda() -> bool:
    """Whether the installed torch was built with CUDA."""
    return _torch_version_fields().get("cuda") is not None


@functools.cache
def _torch_version_fields() -> dict[str, str]:
    """The string assignments of torch/version.py, read as text: finding a package does not import
    it."""
    try:
        spec = importlib.util.find_spec("torch")
        places = (spec.submodule_search_locations if spec else None) or []
        text = (Path(places[0]) / "version.py").read_text()
    except (ImportError, IndexError, OSError, ValueError):
        return {}
    return dict(re.findall(r"^(\w+)(?::[^=\n]*)?\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE))


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
    if visible and (torch_has_cuda() or version is None):
        return "cuda"
    if wanted == "auto":
        return "cpu"
    if not visible:
        raise MachineError(NO_GPU)
    raise MachineError(
        f"device: cuda, but the installed torch {version} was built without CUDA; install a CUDA"
        " build"
    )


def identity(
    device: str, tools: tuple[str, ...] = (), packages: dict[str, str] | None = None
) -> dict:
    """What a cell's staleness is judged by, besides its spec and its code.

    `tools` are the programs that the cell uses (nsys, a compiler), and as `python:NAME` packages
    beside torch: None stands for one that is missing, so that a cell goes stale when it appears.
    `packages` are versions pinned for another environment than this one's. What cannot be known has
    no key.
    """
    versions: dict[str, str | None] = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "torch": torch_version(),
    }
    found: dict = {"device": device}
    if device == "cuda":
        visible = gpus.visible_gpus()
        if not visible:
            raise MachineError(NO_GPU)
        gpu = visible[0]
        found |= {"gpu": gpu.name, "driver": gpu.driver}
        if gpu.memory_mib:
            found["gpu_memory_mib"] = gpu.memory_mib
        versions["triton"] = package_version("triton")
    else:
        found["cpu"] = cpu_name()
    libraries = [name.removeprefix(PACKAGE) for name in tools if name.startswith(PACKAGE)]
    programs = [name for name in tools if not name.startswith(PACKAGE)]
    of_libraries = {name: package_version(name) for name in libraries}
    if packages is not None:  # what is not pinned there cannot be known here
        known = packages.keys() & {"python", "torch", "triton"}
        versions = {name: packages[name] for name in known}
        of_libraries = {name: packages[name] for name in packages.keys() & libraries}
    found |= versions
    if programs:
        found["tools"] = {name: tool_version(name) for name in programs}
    if libraries:
        found["packages"] = of_libraries
    return found


def hardware_label(device: str) -> str:
    """Folder name for the machine at hand, made from the name of its GPU or CPU."""
    name = re.sub(r"\((R|TM|tm|r)\)|@.*|\bCPU\b", "", cpu_name())
    if device == "cuda":
        name = gpus.visible_gpus()[0].name
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or device
