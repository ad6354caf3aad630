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
def functions() -> tuple[int, int, int, int] | None:
    """Addresses of cuLaunchKernel, cuTensorMapReplaceAddress, cuStreamIsCapturing and cuCtxGetCurrent; None where one
    is missing, or what `recorded` needs (cuFuncGetParamInfo, from CUDA 12.4 on)."""
    names = ("cuLaunchKernel", "cuTensorMapReplaceAddress", "cuStreamIsCapturing", "cuCtxGetCurrent")
    try:
        driver = _driver()
        found = [getattr(driver, name) for name in (*names, "cuFuncGetParamInfo")]
    except (OSError, AttributeError):
        return None
    return tuple(ctypes.cast(function, ctypes.c_void_p).value for function in found[: len(names)])


def recorded(launch: Callable[[int], None]) -> Launched | None:
    """The one kernel that `launch` launches on the stream whose handle it is given; it does not run.

    None if that is not one kernel with parameters; how a launch may be special, its attributes, is not told. Raises
    RuntimeError for an error of the driver.
    """
    driver = _driver()
    stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
    _check(driver.cuStreamCreate(ctypes.byref(stream), _NON_BLOCKING))
    try:
        _check(driver.cuStreamBeginCapture_v2(stream, _RELAXED))
        try:
            launch(stream.value)
        except BaseException:
            driver.cuStreamEndCapture(stream, ctypes.byref(graph))
            raise
        _check(driver.cuStreamEndCapture(stream, ctypes.byref(graph)))
        return _only_kernel(driver, graph)
    finally:
        if graph.value:
            driver.cuGraphDestroy(graph)
        driver.cuStreamDestroy_v2(stream)


def _only_kernel(driver: ctypes.CDLL, graph: ctypes.c_void_p) -> Launched | None:
    node, count, found = ctypes.c_void_p(), ctypes.c_size_t(), _KernelNode()
    _check(driver.cuGraphGetNodes(graph, None, ctypes.byref(count)))
    if count.value != 1:
        return None
    _check(driver.cuGraphGetNodes(graph, ctypes.byref(node), ctypes.byref(count)))
    _check(driver.cuGraphKernelNodeGetParams_v2(node, ctypes.byref(found)))
    return _launched(driver, found) if found.function and found.parameters else None


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
