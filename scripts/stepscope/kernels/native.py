"""Calls of attention made again in C++ (native.cpp), where Python takes the host longer than the launches.

A library is built from it by the machine's C++ compiler, once for each version of torch, and kept beside Triton's
compiled kernels. Where that is not possible all calls go through Python: they take the host longer, and nothing else.
"""

import hashlib
import importlib.machinery
import importlib.util
import os
import shlex
import subprocess
import sysconfig
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor
from triton.runtime.cache import get_cache_manager

from stepscope.kernels import driver
from stepscope.kernels.launching import Plan

_NAME = "stepscope_native_attention"
_SOURCE = Path(__file__).with_suffix(".cpp")
_TORCH = Path(torch.__file__).parent

# What has been remembered, called again: the output for 4D q, k and v and a mask, or None for what Python has to do.
attend: Callable[[Tensor, Tensor, Tensor, bool, int | None, bool], Tensor | None] | None = None


@lru_cache(maxsize=1)
def library() -> ModuleType | None:
    """The library, ready to launch, built if need be; None on a machine without an NVIDIA GPU, and where it cannot be
    built, of which a warning says why."""
    functions = driver.functions()
    if functions is None:
        return None
    try:
        found = built()
    except (OSError, ImportError, RuntimeError, subprocess.CalledProcessError) as error:
        _warn(error)
        return None
    found.use(*functions)
    return found


def remember_forward(given: Sequence, plan: Plan, output: Tensor, addresses: Sequence[int], stream: int) -> None:
    """Have calls with q, k, v and a mask like those `given`, on this stream, made by the plan from now on.

    addresses: of q, k, v, output, log-sum-exp and, if the plan has one, a counter, which stays.
    """
    global attend
    counter = addresses[5] if len(addresses) > 5 else 0
    if library() and library().has_room() and _remember("forward", given, plan, output.stride(), counter, stream):
        attend = library().attend


def remember_backward(
    given: Sequence, plan: Plan, output: Tensor, d_output: Tensor, gradients: Sequence[Tensor]
) -> None:
    """The same of the backward pass, for an output and its gradient with such strides, after remember_forward."""
    if attend:
        strides = output.stride(), d_output.stride(), [x.stride() for x in gradients]
        _remember("backward", given, plan, *strides, plan.scratch_bytes)


def _remember(direction: str, given: Sequence, plan: Plan, *more: object) -> bool:
    try:
        launches = plan.recorded()
        if launches is not None:
            getattr(library(), f"remember_{direction}")(*given, launches, *more)
    except (RuntimeError, TypeError) as error:  # the call itself has been made
        _warn(error)
        return False
    return launches is not None


def _warn(error: Exception) -> None:
    if isinstance(error, subprocess.CalledProcessError):
        lines = error.stderr.splitlines() or [str(error)]
        reason = f"{' '.join(_compiler())}: {next((line for line in lines if 'error' in line), lines[0]).strip()}"
    elif isinstance(error, FileNotFoundError) and error.filename == _compiler()[0]:
        reason = f"there is no {error.filename}; install a C++ compiler, or name it in CXX"
    else:
        reason = str(error).splitlines()[0]
    warnings.warn(f"attention's calls will take the host longer than need be: {reason}", stacklevel=3)


def built() -> ModuleType:
    """The library, built if need be. Raises OSError, ImportError, RuntimeError or CalledProcessError where it cannot
    be."""
    command = [*_compiler(), *_flags()]
    identity = "\0".join([_SOURCE.read_text(), torch.__version__, sysconfig.get_config_var("SOABI"), *command])
    cache = get_cache_manager(hashlib.sha256(identity.encode()).hexdigest())
    name = f"{_NAME}.so"
    path = cache.get_file(name)
    if path is None:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / name
            libraries = [f"-L{_TORCH / 'lib'}", "-lc10", "-ltorch_cpu", "-ltorch", "-ltorch_python"]
            subprocess.run(
                [*command, str(_SOURCE), *libraries, "-o", str(made)], check=True, capture_output=True, text=True
            )
            path = cache.put(made.read_bytes(), name, binary=True)
    loader = importlib.machinery.ExtensionFileLoader(_NAME, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(_NAME, loader))
    loader.exec_module(module)
    return module


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CXX", "")) or ["c++"]


def _flags() -> list[str]:
    includes = (_TORCH / "include", _TORCH / "include/torch/csrc/api/include", sysconfig.get_paths()["include"])
    return [
        *("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"),
        *(f"-isystem{path}" for path in includes),
        f"-DTORCH_EXTENSION_NAME={_NAME}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
    ]
