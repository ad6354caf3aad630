"""The chapter of several devices: who is waited for and why, from tables with known answers."""

import pandas as pd
import pytest
from pytest import approx
from stepscope.report.facts import parallel
from stepscope.report.kit.data import Data
from stepscope.report.kit.quantity import Quantity
from stepscope.results.writing import write

CELL = "box/parallel/small/ctx512/bf16/devices=2"
WHERE = {"machine": "box", "cell": CELL}
PLACE = {"study": "parallel", "size": "small", "context": 512, "batch": 4, "precision": "bf16"}
PARTS = dict.fromkeys(("slowed", "apart", "extra", "gone", "at_once", "waiting", "transfer"), 0.0)
PARTS |= {"idle": 0.001, "residual": 0.0, "beside": 0.0, "waited_by_others": 0.0}


def series(variant, quantity, unit, median):
    own = {"variant": variant, "mode": "step", "phase": "step", "status": "ok"}
    return WHERE | PLACE | own | {"quantity": quantity, "unit": unit, "median": median}


def rank(number, **parts):
    return WHERE | {"devices": 2, "variant": "ddp", "rank": number} | PARTS | parts


SLOWED = ((0, "matmul", 0.03, 0.001), (1, "copy/cast", 0.01, 0.002), (1, "matmul", 0.06, 0.01))
HELD = (("weights", 4e9, 4e9), ("gradients", 4.04e9, 4e9), ("state", 8e9, 8e9), ("all", 20e9, 20e9))


def slowed(number, category, beside, longer):
    own = {"devices": 2, "variant": "ddp", "rank": number, "category": category}
    return WHERE | own | {"beside": beside, "slowed": longer}


def held(part, size, formula):
    own = {"devices": 2, "variant": "ddp", "point": "after", "part": part}
    return WHERE | own | {"held": size, "formula": formula}


@pytest.fixture
def chapter(tmp_path):
    """The facts of a cell whose step on two devices takes 125 ms instead of 100."""

    def made(first, second):
        where = WHERE | {"devices": 2}
        sent = where | {"collective": "all_reduce", "bytes": 2**30, "seconds": 0.004, "bus": 3e11}
        predicted = WHERE | {"variant": "ddp", "devices": 2, "predicted": 0.1, "strong": 0.08}
        predicted["hiding_batch"] = 9
        tables = {
            "cells": [WHERE | PLACE | {"status": "ok", "device": "cuda", "gpu": "H100"}],
            "series": [
                series("alone", "time", "s", 0.1),
                series("ddp", "time", "s", 0.125),
                series("ddp", "energy", "J", 40.96),
                series("ddp", "difference", "1", 2e-6),
            ],
            "ranks": [rank(0, **first), rank(1, **second)],
            "rank_slowed": [slowed(*one) for one in SLOWED],
            "rank_memory": [held(*one) for one in HELD],
            "collectives": [sent],
            "parallel_predicted": [predicted],
            "models": [],
        }
        write(tmp_path, {name: pd.DataFrame(rows) for name, rows in tables.items()})
        return parallel.facts(Data(tmp_path, "box"))

    return made


EARLY = {"clock": 0.125, "alone": 0.08, "waiting": 0.044, "waited_by_others": 0.0}


def test_a_host_that_is_late_is_told_from_a_slow_device(chapter):
    late = {"clock": 0.125, "alone": 0.08, "idle": 0.045, "waited_by_others": 0.044}
    found = chapter(EARLY, late)
    assert (found.waited["rank"].value, found.is_host, found.is_computing) == (1, True, False)
    slow = {"clock": 0.125, "alone": 0.124, "waited_by_others": 0.044}
    found = chapter(EARLY, slow)
    assert (found.waited["rank"].value, found.is_host, found.is_computing) == (1, False, True)
    assert found.is_slower_alone
    assert not chapter(EARLY, slow | {"alone": 0.1, "apart": 0.024}).is_slower_alone


def test_nobody_is_waited_for_where_waiting_is_covered(chapter):
    covered = EARLY | {"waiting": 0.001, "alone": 0.123}
    assert chapter(covered, covered | {"waited_by_others": 0.1}).waited is None


def test_what_a_strategy_costs(chapter):
    found = chapter(EARLY, EARLY | {"slowed": 0.012, "beside": 0.072})
    assert found.best["name"] == "ddp"
    assert found.gain.value == approx(1.6)  # 2 x 100 / 125
    (more,) = found.predictions
    assert more["on2"].value == approx(2.0)
    assert found.strong["times"].value == approx(0.1 / 0.08)
    assert found.best["gap"].value == approx(0.25)
    assert found.best["joules"].value == approx(40.96 / (2 * 4 * 512))
    assert found.slowed["longer"].value == approx(0.2)  # 12 of the 60 that they take alone
    assert (found.hiding.value, found.difference.value) == (9, 2e-6)


def test_more_than_so_many_devices_can_do_is_not_said(chapter):
    found = chapter(EARLY, EARLY)
    faster = found.best["devices"].value
    assert faster <= 2
    found.best["devices"] = Quantity(2.4, "1")
    assert found.gain is None


def test_kernels_of_the_rank_that_is_slowed_most_by_category(chapter):
    found = chapter(EARLY, EARLY | {"slowed": 0.012, "beside": 0.072})
    rows = [(str(row["category"]), row["longer"].value) for row in found.slowed_kernels]
    assert rows == [("matmul", approx(0.2)), ("copy/cast", approx(0.25))]


def test_what_a_rank_holds_by_part(chapter):
    found = chapter(EARLY, EARLY)
    (row,) = found.memory
    assert row["gradients"].value == 4.04e9 and row["after"].value == row["formula"].value == 20e9
    assert found.off_formula.value == approx(0.01)


def test_other_numbers_of_devices_stand_beside_what_was_predicted_of_them(tmp_path):
    """Four devices in 125 ms and two in 110: 4 × 100/125 and 2 × 100/110 times one device's tokens,
    and of another step, which is not set beside them, 2 × 100/160."""

    def own(cell, options, devices, seconds):
        where = {"machine": "box", "cell": cell}
        named = PLACE | where | {"options": f"{options} devices={devices}"}
        steps = (("alone", 0.1), ("ddp", seconds))
        ends = [rank(at, alone=0.08, clock=seconds) for at in range(devices)]
        return {
            "cells": [named | {"status": "ok", "device": "cuda", "gpu": "H100"}],
            "series": [series(name, "time", "s", median) | where for name, median in steps],
            "ranks": [each | where | {"devices": devices} for each in ends],
            "collectives": [
                where | {"devices": devices, "collective": "all_reduce", "bytes": 4, "seconds": 1.0}
            ],
            "parallel_predicted": [
                where | {"variant": "ddp", "devices": each, "predicted": 0.1} for each in (2, 4)
            ],
        }

    cells = [
        own("box/four", "loss=own", 4, 0.125),
        own("box/two", "loss=own", 2, 0.11),
        own("box/other", "loss=torch", 2, 0.16),
    ]
    tables = {
        name: pd.DataFrame([row for each in cells for row in each[name]]) for name in cells[0]
    }
    write(tmp_path, tables | {"models": pd.DataFrame()})
    found = parallel.facts(Data(tmp_path, "box"))
    assert found.cell == "box/four" and found.best["devices"].value == approx(3.2)
    seen = {str(each["options"]): each["devices"].value for each in found.others}
    assert seen == {"None": approx(2 / 1.1), "loss=torch": approx(1.25)}
    (row,) = found.predictions
    assert row["on4"].value == approx(4) and row["measured2"].value == approx(2 / 1.1)
    assert "measured4" not in row
