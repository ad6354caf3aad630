"""Helpers for the tests of several devices: ranks on the CPU, and a tiny cell."""

import os
import tempfile
from functools import partial
from pathlib import Path

import pytest
from common import TINY
from stepscope.parallel import ranks


@pytest.fixture
def tiny():
    """Spec of a cell of two devices that takes milliseconds."""
    own = {"study": "parallel", "devices": 2, "attention": "sdpa", "optimizer": "fused"}
    return TINY | own


def _rank(work, file, count, rank):
    import torch
    from stepscope.measure.telemetry import Telemetry
    from stepscope.parallel.place import Place

    torch.set_num_threads(1)
    return work(Place(rank, count, "cpu", file, Telemetry(None)))


@pytest.fixture
def on_ranks():
    """Run work(place) on so many ranks at once; gives what each returns, by rank."""

    def run(count, work):
        # made by the test's process, which forks: torch's threads do not survive that
        os.environ["OMP_NUM_THREADS"] = "1"
        with tempfile.TemporaryDirectory(prefix="a b%") as folder:  # as TMPDIR may be
            return ranks.together(count, partial(_rank, work, Path(folder) / "ranks", count))

    return run
