"""Kernels for the tests: compiled where there is a GPU, else in Triton's interpreter on the CPU."""

import importlib.util

import pytest
import torch

HAS_TRITON = importlib.util.find_spec("triton") is not None  # it exists for Linux only
collect_ignore_glob = [] if HAS_TRITON else ["test_flash_*.py"]


@pytest.fixture
def set_precision():
    """torch.set_float32_matmul_precision, until the test ends."""
    before = torch.get_float32_matmul_precision()
    yield torch.set_float32_matmul_precision
    torch.set_float32_matmul_precision(before)
