"""A run that a signal ends loses no finished cell, leaves no half result and no process, and the
next one goes on by itself."""

import importlib.util
import random
import signal
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "benchmarks/random_kills.py"
spec = importlib.util.spec_from_file_location("random_kills", PROGRAM)
kills = importlib.util.module_from_spec(spec)
spec.loader.exec_module(kills)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A copy with the benchmark's grid, whose runs go on from each other."""
    return kills.copy_of_project(tmp_path_factory.mktemp("ended") / "project")


@pytest.mark.parametrize(
    "way",
    [
        (signal.SIGINT, kills.ALL),
        (signal.SIGTERM, kills.ALL),
        (signal.SIGINT, kills.SNAKEMAKE),
        (signal.SIGKILL, kills.SNAKEMAKE),
        (signal.SIGTERM, kills.UNREAD),
    ],
    ids=lambda way: f"{way[0].name} to {way[1]}",
)
def test_a_signal_soon_after_a_record_has_appeared_costs_nothing(way, tiny):
    before = kills.whole_cells(tiny)
    ended = kills.ended_run(tiny, before, way, random.Random(0))
    assert ended.was_signalled and len(ended.finished) > len(before)
    assert {name: number for name, number in ended.counts.items() if number} == {}
