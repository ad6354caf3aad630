"""What `snakemake plan` prints."""

import re

import pytest
from stepscope.config.estimate import CEILINGS, FORMULA, SAME, UNKNOWN, Estimate
from stepscope.config.grid import Cell
from stepscope.config.summary import WIDTH, Machine, Todo, page

GIB = 2**30
COMMAND = "snakemake --cores 1 report"


def todo(name, why="missing", reason="", seconds=60.0, basis=FORMULA, peak=0, fits=None, recorded=0, label="gpu"):
    cell = Cell(f"{label}/{name}", name.partition("/")[0], "a", "program.py", {})
    return Todo(why, reason, Estimate(cell, seconds, basis, peak, fits, recorded))


def machine(*todo, label="gpu", **changed):
    usual = {"name": "NVIDIA X", "capacity": 80 * GIB, "cells": {"timing": 5, "memory": 2}}
    return Machine(label, todo=list(todo), **(usual | changed))


def shown(*machines, free=10 * GIB):
    text = page("default", machines, free, COMMAND)
    assert all(len(line) <= WIDTH for line in text.splitlines()), text
    return text


def rows(text):
    """Name → numbers of the table's lines."""
    lines = text.split("\n\n")[1].splitlines()
    return {parts[0]: parts[1:] for parts in (re.split(r"  +", line.strip()) for line in lines)}


def said(text, name):
    """What is said of something, on one line."""
    (found,) = re.findall(rf"^{name} +(.*(?:\n {{10}}.*)*)", text, re.MULTILINE)
    return re.sub(r"\s+", " ", found)


def test_cells_are_counted_by_study_and_reason_and_their_costs_added():
    text = shown(
        machine(
            todo("timing/a", seconds=90.0, peak=3 * GIB),
            todo("timing/b", "code", seconds=30.0, peak=5 * GIB),
            todo("memory/c", "spec", "steps is 3 there, 5 now", recorded=3 * 2**20),
        )
    )
    assert text.startswith("Preset default on gpu: 3 of 7 cells are to be measured. They take about 3 min (2 min to 9")
    head = ["cells", "to measure", "missing", "spec", "code", "minutes", "peak GiB", "disk MiB"]
    assert rows(text) == {
        "study": head,
        "timing": ["5", "2", "1", "–", "1", "2.0", "5.0", "–"],
        "memory": ["2", "1", "–", "1", "–", "1.0", "–", "3.0"],
        "all": ["7", "3", "1", "1", "1", "3.0", "5.0", "3.0"],
    }
    assert "spec, 1 cell: steps is 3 there, 5 now (memory/c)" in text
    assert "code, 1 cell: measured by other code, and no edit was accepted (timing/b)" in text
    assert said(text, "Disk") == "about 3 MiB for traces and snapshots; 10.0 GiB are free"
    assert said(text, "Next") == COMMAND


def test_nothing_to_do_is_said():
    text = shown(machine())
    assert text.startswith("Preset default on gpu: all 7 cells hold; nothing is to be measured.")
    assert "Memory" not in text and "Time" not in text


def test_the_share_of_each_basis_is_told():
    found = [todo("timing/a", seconds=30.0, basis=SAME), todo("timing/b", seconds=90.0, basis=CEILINGS)]
    assert said(shown(machine(*found)), "Time") == (
        "25% by records of the same cells; 75% by FLOP and the measured ceilings"
    )
    little = said(shown(machine(todo("timing/a", seconds=0.1, basis=SAME), todo("timing/b", seconds=99.9))), "Time")
    assert little.startswith("less than 1% by records of the same cells; 100% by ")
    found.append(todo("timing/c", seconds=None, basis=UNKNOWN))
    text = shown(machine(*found))
    assert said(text, "Time").endswith("; 1 cell of unknown time, counted as the mean of the others")
    assert rows(text)["all"][3] == "3.0"
    text = shown(machine(found[-1]))
    assert "How long that takes is not known." in text
    assert rows(text)["timing"][3] == "?"


def test_what_rests_on_another_machines_rates_is_given_as_a_range():
    found = [todo("timing/a", seconds=600.0, basis=SAME), todo("timing/b", seconds=240.0)]
    text = shown(machine(*found))  # 10 min, and 0.5 to 3 times 4 min
    assert "They take about 14 min (12 min to 22 min), one after another." in text.replace("\n", " ")
    assert said(text, "Time").endswith("; without a record of this machine it may be 0.5 to 3 times that")
    surer = shown(machine(found[0], todo("timing/b", seconds=240.0, basis=CEILINGS)))
    assert "They take about 14 min, one after another." in surer.replace("\n", " ") and "times that" not in surer


def test_cells_that_will_not_fit_are_named_the_largest_first():
    lost = [todo(f"timing/{n}", peak=n * GIB, fits=False) for n in (90, 95, 81, 82, 99)]
    text = said(shown(machine(*lost, todo("timing/a", peak=70 * GIB, fits=True))), "Memory")
    assert text == (
        "5 cells will not fit into the 80.0 GiB of NVIDIA X, which is a result (oom): timing/99 99.0 GiB, timing/95 "
        "95.0 GiB, timing/90 90.0 GiB, timing/82 82.0 GiB and 1 more"
    )
    fitting = said(shown(machine(todo("timing/a", peak=70 * GIB, fits=True))), "Memory")
    assert fitting == "all fit into the 80.0 GiB of NVIDIA X; timing/a needs most, 70.0 GiB by the closed form"
    unknown = said(shown(machine(todo("timing/a", peak=70 * GIB), capacity=None)), "Memory")
    assert unknown.endswith("the memory of NVIDIA X is not known")
    assert said(shown(machine(todo("timing/a"))), "Memory") == "no cell whose peak a formula gives"


@pytest.mark.parametrize(("at_once", "words"), [(1, "about 6 min"), (2, "about 3 min"), (4, "about 3 min")])
def test_several_at_a_time_take_as_much_less_but_no_less_than_the_longest(at_once, words):
    found = [todo("timing/a", seconds=180.0), todo("timing/b", seconds=120.0), todo("timing/c")]
    assert words in shown(machine(*found, at_once=at_once)).splitlines()[0]


def test_several_machines_have_lines_of_their_own_and_used_ones_are_counted():
    text = shown(
        machine(todo("timing/a", label="h100"), label="h100", at_once=None),
        machine(todo("timing/a", label="t4"), todo("memory/b", label="t4"), label="t4", at_once=None),
        machine(label="old", used=True),
    )
    assert text.startswith("Preset default on h100, t4: 3 of 14 cells are to be measured. They take about 3 min (2 min")
    assert {name: line[:2] for name, line in rows(text).items()} == {
        "study": ["cells", "to measure"],
        **{"h100 timing": ["5", "1"], "h100 memory": ["2", "–"]},
        **{"t4 timing": ["5", "1"], "t4 memory": ["2", "1"], "all": ["14", "3"]},
    }
    assert said(text, "Used") == "old: 7 cells as they are, measured elsewhere"


def test_a_disk_that_is_too_small_is_said():
    text = shown(machine(todo("memory/a", recorded=3 * GIB)), free=2 * GIB)
    assert said(text, "Disk") == "about 3.0 GiB for traces and snapshots; 2.0 GiB are free; not enough"
