"""The profilers that a program can switch on around its measured steps."""

import contextlib
from pathlib import Path

import torch


class Profiler(contextlib.AbstractContextManager):
    """On inside its `with` block. This one records nothing by itself: a profiler in front of the program does.

    On a GPU it opens a capture range (cudaProfilerStart) and NVTX ranges.
    """

    def __init__(self, device: str):
        self._cuda = device == "cuda"

    def __enter__(self) -> "Profiler":
        if self._cuda:
            torch.cuda.cudart().cudaProfilerStart()
        return self

    def __exit__(self, *error) -> None:
        if self._cuda:
            torch.cuda.cudart().cudaProfilerStop()

    def range(self, name: str) -> contextlib.AbstractContextManager:
        """A context manager around what `name` stands for."""
        return torch.cuda.nvtx.range(name) if self._cuda else contextlib.nullcontext()


class TorchProfiler(Profiler):
    """torch.profiler (Kineto): operators of the host and, on a GPU, its kernels; written to `path` (.json.gz)."""

    def __init__(self, device: str, path: Path):
        super().__init__(device)
        self._path = path

    def __enter__(self) -> "TorchProfiler":
        kinds = torch.profiler.ProfilerActivity
        self._profile = torch.profiler.profile(activities=[kinds.CPU, *([kinds.CUDA] if self._cuda else [])])
        self._profile.__enter__()
        return self

    def __exit__(self, *error) -> None:
        self._profile.__exit__(*error)
        if error == (None, None, None):
            self._profile.export_chrome_trace(str(self._path))

    def range(self, name: str) -> contextlib.AbstractContextManager:
        return torch.profiler.record_function(name.replace("×", "x"))  # Kineto calls "unknown" what is not ASCII
