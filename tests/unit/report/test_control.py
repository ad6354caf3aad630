"""The run's control: which cells were measured twice, and the floor that follows; made-up times."""

import math

import pandas as pd
import pytest
from stepscope.report.data.control import control_pairs, floors
from stepscope.report.kit.order import with_order
from stepscope.report.studies.timing.findings import findings
from stepscope.report.studies.timing.tables import control_table


def cell(step, size="small", repeat=1, limited_by="gpu", hardware="gpu", **more) -> dict:
    row = {"cell": f"{hardware}/{size}/{repeat}", "hardware": hardware, "size": size, "context": 128.0, "batch": 4.0}
    row |= {"precision": "fp32", "mode": "step", "attention": "naive", "compile": "none", "optimizer": "own"}
    row |= {"checkpoint": 0, "repeat": repeat, "parameters": 1e8, "status": "ok", "reason": None, "throttle": None}
    return row | {"step_median_ms": step, "step_status": "ok", "step_limited_by": limited_by, "step_processes": 3,
                  "step_noisy": False} | more  # fmt: skip


def table(*rows) -> pd.DataFrame:
    return with_order(pd.DataFrame(rows))


def test_a_repeated_cell_is_beside_its_first_run():
    found = control_pairs(table(cell(10.0), cell(11.0, repeat=2), cell(9.0, "medium"), cell(10.5, repeat=3)))
    assert [(pair.cells, pair.medians, pair.phase) for pair in found] == [
        (("gpu/small/1", "gpu/small/2"), (10.0, 11.0), "step"),
        (("gpu/small/1", "gpu/small/3"), (10.0, 10.5), "step"),
    ]
    assert found[0].difference == pytest.approx(math.log(1.1))
    assert control_pairs(pd.DataFrame()) == [] and floors(pd.DataFrame()).by_class == {}


def test_a_floor_is_the_largest_of_few_pairs_and_all_but_one_in_twenty_of_many():
    few = [cell(10.0), cell(11.0, repeat=2), cell(10.0, "medium"), cell(10.3, "medium", repeat=2)]
    assert floors(table(*few)).by_class == {("gpu", "gpu"): pytest.approx(math.log(1.1))}
    many = [one for at in range(1, 41) for one in (cell(1.0, f"s{at}"), cell(1 + at / 1000, f"s{at}", repeat=2))]
    assert floors(table(*many)).by_class == {("gpu", "gpu"): pytest.approx(math.log(1.038))}  # the 38th of 40


def test_each_machine_and_class_has_a_floor_of_its_own():
    rows = [cell(10.0), cell(10.1, repeat=2), cell(1.0, "nano", limited_by="launches"),
            cell(1.3, "nano", repeat=2, limited_by="launches"), cell(10.0, hardware="other"),
            cell(12.0, hardware="other", repeat=2)]  # fmt: skip
    found = floors(table(*rows)).by_class
    expected = {("gpu", "gpu"): 1.01, ("gpu", "launches"): 1.3, ("other", "gpu"): 1.2}
    assert {which: math.exp(floor) for which, floor in found.items()} == pytest.approx(expected)


def test_the_floor_and_the_processes_are_told():
    rows = [cell(10.0), cell(10.04, repeat=2), cell(1.0, "nano", limited_by="launches"),
            cell(1.031, "nano", repeat=2, limited_by="launches")]  # fmt: skip
    (told,) = [each for each in findings(table(*rows), pd.DataFrame()) if "unchanged" in each.question]
    assert told.text == (
        "A cell was measured by 3 fresh processes. Unchanged cells of this run differ by up to 3.1 % where launches "
        "limit and 0.40 % where the GPU limits (19 in 20 of the 2 phases that were measured twice); nothing smaller "
        "than that, or than 2 %, is called a difference."
    )
    assert told.numbers["launches"].cells == ("gpu/nano/1", "gpu/nano/2")
    (told,) = [each for each in findings(table(cell(10.0)), pd.DataFrame()) if "unchanged" in each.question]
    assert told.text.endswith("No cell was measured twice, so that no floor is known but 2 %.")


def test_the_table_of_the_control():
    rows = [cell(10.0), cell(10.5, repeat=2), cell(10.0, "large"), cell(9.0, "large", repeat=2)]
    made = control_table(table(*rows))
    assert [column.label for column in made.columns] == [
        "size", "context", "precision", "phase", "limited by", "first", "again", "difference", "floor",
    ]  # fmt: skip
    assert [[each.text for each in row[4:]] for row in made.rows] == [
        ["gpu", "10.00", "9.000", "11", "11"], ["gpu", "10.00", "10.50", "5.0", "11"],
    ]  # fmt: skip
    assert control_table(table(cell(10.0))) is None
