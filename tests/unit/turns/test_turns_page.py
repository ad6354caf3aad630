"""Verdicts, table and page of two sides that were measured in turns."""

import csv
import json
import math
import random
import subprocess
import sys

import pytest
from stepscope.report import turns
from stepscope.report.kit.compare import FASTER, NOT_COMPARABLE, SAME, SLOWER, UNCLEAR, judged_in_turns
from stepscope.turns import TurnsError
from stepscope.turns.measuring import COLUMNS

SIDE = {"commit": "0123456789abcdef", "interpreter": "python", "device": "CPU", "torch": "2.13", "python": "3.12"}


@pytest.fixture
def measured(tmp_path):
    """A function that writes what measure_ab.py would: seconds of each side by series, a list with one for each
    round."""

    def write(values, given=("old", "new"), code=("1", "2")):
        with (tmp_path / "processes.csv").open("w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
            table.writeheader()
            for side, phases in values.items():
                for phase, seconds in phases.items():
                    for number, value in enumerate(seconds, 1):
                        row = {"cell": "box/timing/<b>x</b>", "mode": "step", "kind": "free", "phase": phase}
                        table.writerow(row | {"round": number, "side": side, "seconds": value, "sm_clock_mhz": 1500})
        sides = {name: SIDE | {"given": given[name == "b"], "code": {"x": code[name == "b"]}} for name in values}
        (tmp_path / "sides.json").write_text(json.dumps({"sides": sides, "rounds": 4, "cells": ["x"]}))
        return tmp_path

    return write


def pairs(*logarithms):
    """(own, reference) of rounds whose ln(reference / own) are these, on a host that is twice as slow each time."""
    return [(2.0**i, 2.0**i * math.exp(value)) for i, value in enumerate(logarithms)]


def test_the_interval_is_that_of_a_paired_t_test():
    # mean 0.03, standard deviation 0.0081650, of 4: error 0.0040825; Student's t at 3 degrees of freedom is 3.182446
    (found,) = judged_in_turns([pairs(0.02, 0.03, 0.04, 0.03)])
    assert math.log(found.ratio) == pytest.approx(0.03)
    assert math.log(found.low) == pytest.approx(0.03 - 3.182446 * 0.0040825, rel=1e-4)
    assert math.log(found.high) == pytest.approx(0.03 + 3.182446 * 0.0040825, rel=1e-4)
    assert found.verdict == FASTER


@pytest.mark.parametrize(
    ("logarithms", "verdict"),
    [
        ((-0.02, -0.03, -0.04, -0.03), SLOWER),
        ((0.0, 0.001, -0.001, 0.0), SAME),
        ((0.011, 0.0111, 0.0109, 0.011), FASTER),
        ((0.004, 0.0041, 0.0039, 0.004), SAME),  # sure, but not more than half a percent
        ((0.2, -0.2, 0.1, -0.1), UNCLEAR),
        ((0.02, 0.02, 0.02, 0.02), FASTER),
    ],
)
def test_verdicts(logarithms, verdict):
    (found,) = judged_in_turns([pairs(*logarithms)])
    assert found.verdict == verdict


def test_a_single_round_says_nothing():
    assert judged_in_turns([pairs(0.5), []]) == [None, None]


def made_up(chance, change, rounds=8, spread=0.005):
    """Rounds on a host whose speed changes by 10 % between them; processes of a round differ by `spread`."""
    found = []
    for _ in range(rounds):
        speed = math.exp(chance.gauss(0, 0.1))
        found.append((speed * math.exp(chance.gauss(0, spread)) * change, speed * math.exp(chance.gauss(0, spread))))
    return found


def test_unchanged_code_is_called_different_in_less_than_one_percent():
    chance = random.Random(7)
    found = [each for _ in range(250) for each in judged_in_turns([made_up(chance, 1.0) for _ in range(6)])]
    called = [each for each in found if each.verdict in (FASTER, SLOWER)]
    same = [each for each in found if each.verdict == SAME]
    assert len(called) <= 0.01 * len(found) and len(same) >= 0.75 * len(found)


def test_two_percent_are_found_where_the_host_drifts_by_ten():
    chance = random.Random(8)
    found = [judged_in_turns([made_up(chance, 1.02)])[0] for _ in range(200)]
    assert sum(each.verdict == SLOWER for each in found) >= 0.9 * len(found)
    assert not any(each.verdict == FASTER for each in found)


def test_a_change_is_that_of_time_and_above_zero_where_b_takes_longer(measured):
    folder = measured({"a": {"step": [0.01, 0.02, 0.03, 0.04]}, "b": {"step": [0.011, 0.022, 0.033, 0.044]}})
    (line,) = turns.read(folder, 1.01).lines
    assert line.change == pytest.approx(0.1) and line.verdict == SLOWER and line.clocks == 1
    assert line.comparison.times == pytest.approx((1e3 * 0.0221336, 1e3 * 0.0243470), rel=1e-4)


def test_what_one_side_does_not_have_is_not_comparable(measured):
    times = [0.01] * 4
    lines = turns.read(measured({"a": {"step": times, "forward": times}, "b": {"step": times}}), 1.01).lines
    assert [(line.what, line.verdict) for line in lines] == [("step", SAME), ("forward", NOT_COMPARABLE)]


def test_a_control_that_fires_makes_every_verdict_unclear(measured):
    times, others = [0.01] * 4, [0.02] * 4
    found = turns.read(measured({"a": {"step": times}, "b": {"step": others}, "c": {"step": others}}), 1.01)
    assert [line.verdict for line in found.lines] == [UNCLEAR]
    assert any("Do not trust it" in sentence for sentence in turns.sentences(found))
    held = turns.read(measured({"a": {"step": times}, "b": {"step": others}, "c": {"step": times}}), 1.01)
    assert [line.verdict for line in held.lines] == [SLOWER]
    assert any("nothing is called different: 1 series: 1 same." in sentence for sentence in turns.sentences(held))


def test_the_same_on_both_sides_is_called_a_control(measured):
    values = {"a": {"step": [0.01] * 4}, "b": {"step": [0.01] * 4}}
    is_one = [turns.read(measured(values, code=code), 1.01).is_control for code in (("1", "1"), ("1", "2"))]
    assert is_one == [True, False]


def test_the_pages_show_text_as_text(measured, project_root):
    folder = measured({"a": {"step": [0.01] * 4}, "b": {"step": [0.011] * 4}}, given=("<i>old</i>", "n|ew"))
    program = [sys.executable, str(project_root / "scripts/write_ab.py"), str(folder)]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert "+10.00" in done.stdout and "B is slower" in done.stdout
    page = (folder / "index.html").read_text()
    assert "&lt;i&gt;old" in page and "<i>old" not in page and "<b>x</b>" not in page
    assert "n\\|ew" in (folder / "ab.md").read_text()
    (row,) = csv.DictReader((folder / "ab.csv").open(newline=""))
    assert float(row["change"]) == pytest.approx(0.1) and row["verdict"] == SLOWER


@pytest.mark.parametrize("harm", ["sides.json", "processes.csv"])
def test_a_folder_of_something_else_is_one_line(harm, measured):
    folder = measured({"a": {"step": [0.01] * 4}, "b": {"step": [0.01] * 4}})
    (folder / harm).write_text("{")
    with pytest.raises(TurnsError, match=r"holds nothing that measure_ab.py wrote"):
        turns.read(folder, 1.01)
