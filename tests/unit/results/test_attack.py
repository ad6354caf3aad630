"""A sample of hostile files: none does harm (benchmarks/attack.py tries more)."""

import json
import os
import signal
from functools import partial
from pathlib import Path

import attack
import pytest
from common import QUICK

COUNTS = {
    "fits": 8,
    "configurations": 15,
    "records": 15,
    "samples": 12,
    "ranks": 10,
    "published": 5,
    "traces": 30,
    "snapshots": 30,
}


@pytest.mark.parametrize("kind", COUNTS)
def test_hostile_files_are_refused_or_do_no_harm(kind, tmp_path):
    found = attack.attacked(kind, COUNTS[kind], 1, tmp_path)
    assert [one for one in found if one[0] in attack.DEFECTS] == []
    assert sum(verdict == "refused" for verdict, _, _ in found) >= COUNTS[kind] / 4


@pytest.mark.parametrize("part", ["takes", "loss", "returned", "in_phase"])
def test_hostile_steps_are_refused_in_one_line_or_measured(part, tmp_path):
    """All that does not end the process, in this one."""
    from stepscope.measure import timing
    from stepscope.measure.telemetry import Telemetry
    from stepscope.model.own.reference import ModelError

    refused = 0
    for number, value in enumerate(attack.steps.PARTS[part]):
        if "abort" in value:
            continue
        file = tmp_path / f"{part}_{number}.py"
        file.write_text(attack.steps.source("pass", {part: value}))
        spec = QUICK | {"study": "timing", "steps": 3, "step": f"{file}:build"}
        try:
            found = timing.measure(spec, Telemetry(None), 1)
        except ModelError as error:
            refused += 1
            assert "\n" not in str(error), value
            continue
        if found.statuses[0]["status"] == "ok":
            times = [row["seconds"] for row in found.rows]
            assert len(times) > 3 and all(0 < time < 60 for time in times), value
    assert refused > 1


@pytest.mark.parametrize(
    "said, spoil",
    {
        "the spec asks for": lambda cell: cell.write_rows(cell.samples[:1]),
        "which no device reaches": lambda cell: scaled(cell),
        "record.json is of another study: 'xxx": lambda cell: of_study(cell, "x" * 10_000),
        r"record.json is of another study: '\x00', not timing": lambda cell: of_study(cell, "\0"),
    }.items(),
)
def test_what_cannot_be_is_told(spoil, said, tmp_path, monkeypatch):
    spoilers = (lambda cell, draw: spoil(cell) or "planted",)
    planted = partial(attack.cells.spoiling, spoilers, studies=("timing",))
    monkeypatch.setitem(attack.KINDS, "planted", planted)
    ((verdict, _, told),) = attack.attacked("planted", 1, 0, tmp_path)
    assert verdict == "refused" and said in told


def scaled(cell):
    """Times a hundred thousandth of what they were."""
    header, *rows = cell.samples
    place = header.index("seconds")
    for row in rows:
        row[place] = repr(1e-5 * float(row[place]))
    cell.write_rows([header, *rows])


def of_study(cell, text):
    cell.write_record(json.dumps(cell.record | {"study": text}))


def left_behind():
    if os.fork() == 0:
        os.setsid()
        signal.pause()


DEFECTS = {
    "wrong": print,
    "traceback": lambda: {}["key"],
    "memory": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "outside": lambda: Path("../made").touch(),
    "orphan": left_behind,
    "hang": signal.pause,
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_seen(defect, tmp_path, monkeypatch):
    trying = attack.trying
    monkeypatch.setattr(trying, "GRACE", 0.1)

    def planted(place):
        return lambda work, draw: trying.Attempt(
            how="planted", run=DEFECTS[defect], wrong=lambda: "a time of -1 s", seconds=1
        )

    monkeypatch.setitem(attack.KINDS, "planted", planted)
    ((verdict, _, _),) = attack.attacked("planted", 1, 0, tmp_path)
    assert verdict == defect
