"""A run that a signal ends loses no finished cell, leaves no half result and no process, and the
next one goes on by itself."""

import base64
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


def test_a_cell_that_is_finished_while_snakemake_ends_is_not_measured_again(tiny):
    """Snakemake waits for it, does not note it, and forces it in the next run."""
    kills.start_anew(tiny)
    ended = kills.ended_run(tiny, {}, (signal.SIGINT, kills.SNAKEMAKE), random.Random(0))
    assert ended.was_signalled and not ended.counts.total()
    noted = [path for path in kills.records(tiny / "results") if not is_marked(path, tiny)]
    assert len(list(kills.records(tiny / "results"))) == len(noted) + 1
    assert not kills.whole_run(tiny, ended.finished).counts.total()


def is_marked(record, project):
    """Whether Snakemake has a file for one that is not complete."""
    name = base64.b64encode(str(record.relative_to(project)).encode()).decode()
    return (project / ".snakemake/incomplete" / name).exists()
