"""What counts as running out of memory, and how peaks are found."""

from types import SimpleNamespace

import pytest
import torch
from common import one_line
from pytest import approx
from stepscope.machine import process
from stepscope.measure import memory
from stepscope.model.shape import ModelShape

OOM = (
    "[enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory: you tried …",
    "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
    "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "std::bad_alloc",
    "Triton Error [CUDA]: out of memory",
)
OTHERS = (
    "CUDA error: an illegal memory access was encountered",
    "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle)`",
    "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED",
    "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
        torch.OutOfMemoryError(""),
        MemoryError(),
        *map(RuntimeError, OOM),
    ],
    ids=str,
)
def test_running_out_of_memory(error):
    assert memory.is_out_of_memory(error)


@pytest.mark.parametrize(
    "error",
    [
        *map(RuntimeError, OTHERS),
        ValueError("out of memory"),
        OSError(12, "Cannot allocate memory"),
        KeyboardInterrupt("out of memory"),
        IndexError("index out of range"),
    ],
    ids=str,
)
def test_other_errors(error):
    assert not memory.is_out_of_memory(error)


MEGABYTE = 10**6


def resident():
    """Bytes of memory of this process, as the kernel counts its pages."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_the_peak_is_what_was_allocated_since_the_reset():
    memory.reset_peaks("cpu")
    before = resident()
    block = torch.ones(200 * MEGABYTE, dtype=torch.uint8)
    peak = memory.peaks("cpu")["peak_resident"]
    assert peak - before == approx(200 * MEGABYTE, abs=10 * MEGABYTE)
    del block
    # The peak stays when the memory is gone, until it is reset.
    assert memory.peaks("cpu")["peak_resident"] == approx(peak, abs=MEGABYTE)
    memory.reset_peaks("cpu")
    assert memory.peaks("cpu")["peak_resident"] == approx(before, abs=10 * MEGABYTE)


def test_on_a_gpu_asked_allocated_and_reserved_bytes_are_told_apart(monkeypatch):
    statistics = {
        "requested_bytes.all.peak": 70,
        "allocated_bytes.all.peak": 80,
        "reserved_bytes.all.peak": 200,
        "requested_bytes.all.current": 7,
        "allocated_bytes.all.current": 8,
        "reserved_bytes.all.current": 20,
    }
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda: statistics)
    before = memory.held("cuda")
    assert memory.peaks("cuda", before) == {
        "peak_asked": 63,
        "peak_allocated": 72,
        "peak_reserved": 180,
    }
    assert memory.peaks("cuda") == {"peak_asked": 70, "peak_allocated": 80, "peak_reserved": 200}


# 2 x 8 x 4 of embedding and head, a layer of 4 x 4 x 4 + 3 x 4 x 4 + 2 x 4, and a gain of 4: 188
# numbers of 4 bytes.
SHAPE = ModelShape(d_model=4, d_ff=4, num_layers=1, num_heads=2, vocab_size=8)


def test_parameters_that_fill_the_memory_are_tried_and_more_are_not(monkeypatch):
    monkeypatch.setattr(process, "available_memory", lambda: 752)
    memory.require_room(SHAPE, "cpu")
    monkeypatch.setattr(process, "available_memory", lambda: 751)
    assert one_line(MemoryError, memory.require_room, SHAPE, "cpu").startswith(
        "predicted, not tried: the parameters alone are 0.0 GiB, the memory 0.0"
    )


def test_a_gpus_memory_counts_for_a_gpu(monkeypatch):
    monkeypatch.setattr(process, "available_memory", lambda: 0)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=752)
    )
    memory.require_room(SHAPE, "cuda")
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=751)
    )
    with pytest.raises(MemoryError):
        memory.require_room(SHAPE, "cuda")


def test_an_error_that_cannot_say_itself_is_told_by_its_type():
    class Speechless(Exception):
        def __str__(self):
            raise ValueError

    assert memory.reason(Speechless()) == "Speechless"
