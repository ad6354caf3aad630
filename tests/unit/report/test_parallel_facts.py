"""The chapter of several devices: who is waited for and why, from tables with known answers."""

import made_up
import pytest
from made_up import of, series
from pytest import approx
from stepscope.report.facts import parallel
from stepscope.report.kit.data import Data
from stepscope.report.kit.quantity import Quantity

CELL = "box/parallel/small/ctx512/bf16/devices=2"
PLACE = made_up.place("small", 512)
ONCE = PLACE | {"low": None, "high": None}  # by one process, without an interval
PARTS = dict.fromkeys(("slowed", "apart", "extra", "gone", "at_once", "waiting", "transfer"), 0.0)
PARTS |= {"idle": 0.001, "residual": 0.0, "beside": 0.0, "waited_by_others": 0.0}


def tables(cell, devices, seconds, ranks, options=""):
    """A step that takes so long on so many devices, 100 ms on one."""
    where = of(cell, devices=devices)
    about = {"strong": 0.08, "hiding_batch": 9}
    return {
        "cells": [made_up.cell(cell, **PLACE, options=options)],
        "series": [
            series(cell, "time", 0.1, variant="alone", **ONCE),
            series(cell, "time", seconds, variant="ddp", **ONCE),
        ],
        "ranks": [
            where | {"variant": "ddp", "rank": number} | PARTS | own
            for number, own in enumerate(ranks)
        ],
        "collectives": [where | {"collective": "all_reduce", "bytes": 2**30, "seconds": 0.004}],
        "parallel_predicted": [
            of(cell, variant="ddp", devices=number, predicted=0.1) | about for number in (2, 4)
        ],
    }


@pytest.fixture
def chapter(tmp_path):
    """The facts of a cell whose step on two devices takes 125 ms instead of 100."""
    where = of(CELL, devices=2, variant="ddp")
    more = {
        "series": [
            series(CELL, "energy", 40.96, "J", variant="ddp", **PLACE),
            series(CELL, "difference", 2e-6, "1", variant="ddp", **PLACE),
        ],
        "rank_slowed": made_up.rows(
            where,
            "rank category beside slowed",
            (0, "matmul", 0.03, 0.001),
            (1, "copy/cast", 0.01, 0.002),
            (1, "matmul", 0.06, 0.01),
        ),
        "rank_memory": made_up.rows(
            where | {"point": "after"},
            "part held formula",
            ("weights", 4e9, 4e9),
            ("gradients", 4.04e9, 4e9),
            ("state", 8e9, 8e9),
            ("all", 20e9, 20e9),
        ),
    }

    def made(*ranks):
        made_up.write_tables(tmp_path, tables(CELL, 2, 0.125, ranks), more)
        return parallel.facts(Data(tmp_path, "box"))

    return made


EARLY = {"clock": 0.125, "alone": 0.08, "waiting": 0.044, "waited_by_others": 0.0}
SLOWED = EARLY | {"slowed": 0.012, "beside": 0.072}


def test_a_host_that_is_late_is_told_from_a_slow_device(chapter):
    late = {"clock": 0.125, "alone": 0.08, "idle": 0.045, "waited_by_others": 0.044}
    found = chapter(EARLY, late)
    assert (found.waited["rank"].value, found.is_host, found.is_computing) == (1, True, False)
    slow = {"clock": 0.125, "alone": 0.124, "waited_by_others": 0.044}
    found = chapter(EARLY, slow)
    assert (found.waited["rank"].value, found.is_host, found.is_computing) == (1, False, True)
    assert found.is_slower_alone
    assert not chapter(EARLY, slow | {"alone": 0.1, "apart": 0.024}).is_slower_alone


def test_what_explains_less_than_half_of_the_waiting_is_no_reason(chapter):
    """0.5 ms of computing more than the other where it waits for 6.9 ms."""
    found = chapter(EARLY, {"clock": 0.125, "alone": 0.0805, "waited_by_others": 0.0069})
    assert found.waited["rank"].value == 1
    assert not (found.is_host or found.is_computing)


def test_nobody_is_waited_for_where_waiting_is_covered(chapter):
    covered = EARLY | {"waiting": 0.001, "alone": 0.123}
    assert chapter(covered, covered | {"waited_by_others": 0.1}).waited is None


def test_what_a_strategy_costs(chapter):
    found = chapter(EARLY, SLOWED)
    assert found.own.best["name"] == "ddp"
    assert found.gain.value == approx(1.6)  # 2 x 100 / 125
    (more,) = found.predictions
    assert more["on2"].value == approx(2.0)
    assert found.strong["times"].value == approx(0.1 / 0.08)
    assert found.own.best["gap"].value == approx(0.25)
    assert found.own.best["joules"].value == approx(40.96 / (2 * 4 * 512))
    assert found.slowed["longer"].value == approx(0.2)  # 12 of the 60 that they take alone
    assert (found.hiding.value, found.difference.value) == (9, 2e-6)
    rows = [(str(row["category"]), row["longer"].value) for row in found.slowed_kernels]
    assert rows == [("matmul", approx(0.2)), ("copy/cast", approx(0.25))]


def test_more_than_so_many_devices_can_do_is_not_said(chapter):
    found = chapter(EARLY, EARLY)
    faster = found.own.best["devices"].value
    assert faster <= 2
    found.own.best["devices"] = Quantity(2.4, "1")
    assert found.gain is None


def test_what_a_rank_holds_by_part(chapter):
    found = chapter(EARLY, EARLY)
    (row,) = found.memory
    assert row["gradients"].value == 4.04e9 and row["after"].value == row["formula"].value == 20e9
    assert found.off_formula.value == approx(0.01)


def test_other_numbers_of_devices_stand_beside_what_was_predicted_of_them(tmp_path):
    """Four devices in 125 ms and two in 110: 4 × 100/125 and 2 × 100/110 times one device's tokens,
    and of another step, which is not set beside them, 2 × 100/160."""
    four, two, other = (
        tables(
            f"box/parallel/{name}", devices, seconds, [EARLY | {"clock": seconds}] * devices, how
        )
        for name, devices, seconds, how in (
            ("four", 4, 0.125, "loss=own devices=4"),
            ("two", 2, 0.11, "loss=own devices=2"),
            ("other", 2, 0.16, "loss=torch devices=2"),
        )
    )
    made_up.write_tables(tmp_path, four, two, other)
    found = parallel.facts(Data(tmp_path, "box"))
    assert found.own.cell == "box/parallel/four" and found.own.best["devices"].value == approx(3.2)
    seen = {str(each["options"]): each["devices"].value for each in found.others}
    assert seen == {"None": approx(2 / 1.1), "loss=torch": approx(1.25)}
    (row,) = found.predictions
    assert row["on4"].value == approx(4) and row["measured2"].value == approx(2 / 1.1)
    assert "measured4" not in row
