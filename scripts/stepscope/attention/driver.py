"""The CUDA driver's functions that tell and repeat what was launched, called through ctypes."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

_NON_BLOCKING, _RELAXED, _INVALID_VALUE = 1, 2, 1  # CU_STREAM_..., CU_STREAM_CAPTURE_MODE_..., CUDA_ERROR_...


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel and all it was launched with; `places` are (offset, bytes) of its parameters, in their order."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    parameters: bytes
    places: tuple[tuple[int, int], ...]


class _KernelNode(ctypes.Structure):  # CUDA_KERNEL_NODE_PARAMS_v2 in cuda.h
    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("parameters", ctypes.POINTER(ctypes.c_void_p)),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


@lru_cache(maxsize=1)
def functions() -> tuple[int, int, int] | None:
    """Addresses of cuLaunchKernel, cuTensorMapReplaceAddress and cuStreamIsCapturing; None where one is missing, or
    what `recorded` needs (cuFuncGetParamInfo, from CUDA 12.4 on)."""
    try:
        driver = _driver()
        names = ("cuLaunchKernel", "cuTensorMapReplaceAddress", "cuStreamIsCapturing", "cuFuncGetParamInfo")
        return tuple(ctypes.cast(getattr(driver, name), ctypes.c_void_p).value for name in names)[:3]
    except (OSError, AttributeError):
        return None


def recorded(launch: Callable[[int], None]) -> Launched | None:
    """The one kernel that `launch` launches on the stream whose handle it is given; it does not run.

    None if that is not one kernel, or more than its function and its parameters belong to it. Raises RuntimeError for
    an error of the driver.
    """
    driver = _driver()
    stream, graph, node = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    _check(driver.cuStreamCreate(ctypes.byref(stream), _NON_BLOCKING))
    try:
        _check(driver.cuStreamBeginCapture_v2(stream, _RELAXED))
        try:
            launch(stream.value)
        finally:
            _check(driver.cuStreamEndCapture(stream, ctypes.byref(graph)))
        try:
            count, found = ctypes.c_size_t(), _KernelNode()
            _check(driver.cuGraphGetNodes(graph, None, ctypes.byref(count)))
            if count.value != 1:
                return None
            _check(driver.cuGraphGetNodes(graph, ctypes.byref(node), ctypes.byref(count)))
            _check(driver.cuGraphKernelNodeGetParams_v2(node, ctypes.byref(found)))
            if not found.function or not found.parameters:
                return None
            return _launched(driver, found)
        finally:
            driver.cuGraphDestroy(graph)
    finally:
        driver.cuStreamDestroy_v2(stream)


def _launched(driver: ctypes.CDLL, node: _KernelNode) -> Launched:
    places, parameters = [], bytearray()
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    function = ctypes.c_void_p(node.function)
    while True:
        number = ctypes.c_size_t(len(places))
        status = driver.cuFuncGetParamInfo(function, number, ctypes.byref(offset), ctypes.byref(size))
        if status == _INVALID_VALUE and places:  # there is no parameter of this number
            break
        _check(status)
        parameters += bytes(offset.value - len(parameters))
        parameters += ctypes.string_at(node.parameters[number.value], size.value)
        places.append((offset.value, size.value))
    return Launched(
        node.function, tuple(node.grid), tuple(node.block), node.shared_bytes, bytes(parameters), tuple(places)
    )


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"the CUDA driver's error {status}, when launches of fused attention were recorded")
