"""The warm-up study's tables, from records with round numbers: see tests/unit/report/synthetic_warmup.py."""

import csv
import json
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))

import synthetic_warmup as made
from stepscope.tables import warmup


@pytest.fixture
def plan(tmp_path):
    return made.Plan(tmp_path / "results")


def rows_of(plan, tmp_path) -> list[dict]:
    plan.write(tmp_path / "tables")
    with (tmp_path / "tables" / "warmup.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_means_beside_the_steady_state(plan, tmp_path):
    for count in (0, 1, 10):
        plan.cell("s", count)
    cold, one, ten = rows_of(plan, tmp_path)
    # Ten steps from the first on: 1,285 ms, then 42 and 38.5 ms, then seven of 35 ms; one of the phases beside it.
    steps = [1285, 42, 38.5, *[35] * 7]
    mean = sum(steps) / 10
    assert float(cold["step_mean_ms"]) == pytest.approx(mean) and cold["step_samples"] == "10"
    assert float(cold["step_std_ms"]) == pytest.approx(math.sqrt(sum((each - mean) ** 2 for each in steps) / 9))
    assert float(cold["forward_mean_ms"]) == pytest.approx((1010 + 12 + 11 + 7 * 10) / 10)
    assert float(cold["forward_backward_mean_ms"]) == pytest.approx((1230 + 36 + 33 + 7 * 30) / 10)
    assert float(cold["step_mean_over_steady"]) == pytest.approx(mean / 35)
    assert float(cold["step_median_over_steady"]) == pytest.approx(1)
    assert float(cold["step_std_over_mean"]) == pytest.approx(float(cold["step_std_ms"]) / mean)
    assert float(cold["step_tokens_per_s"]) == pytest.approx(4 * 128 / mean * 1e3)
    # After one warm-up step the first measured one is step 1; after ten all are steady.
    assert float(one["step_first_ms"]) == pytest.approx(42)
    assert float(one["step_mean_ms"]) == pytest.approx((42 + 38.5 + 8 * 35) / 10)
    assert float(ten["step_mean_over_steady"]) == pytest.approx(1)
    assert float(cold["step_first_ms"]) == pytest.approx(1285)


def steady(row: dict, phase: str = "step") -> list[float | None]:
    """The steady state and the ends of its interval, ms."""
    texts = [row[f"{phase}_steady_{name}"] for name in ("ms", "ci_low_ms", "ci_high_ms")]
    return [float(text) if text else None for text in texts]


def test_a_process_without_late_steps_is_no_part_of_the_steady_state(plan, tmp_path):
    plan.cell("s", 0)
    plan.cell("s", 2, steady=(1.0, 1.0, 1.0))  # steps 10 and 11: too few
    plan.cell("s", 5, steady=(20.0, 20.0, 5.0))
    plan.cell("s", 10, steady=(20.0, 20.0, 5.0))
    for row in rows_of(plan, tmp_path):  # steps 10 to 14 of the third cell, 10 to 19 of the last
        assert (row["steady_from"], row["steady_processes"], row["steady_samples"]) == ("10", "2", "15")
        assert steady(row, "forward") == pytest.approx([20, 20, 20])
        assert steady(row) == pytest.approx([45, 45, 45])


def test_earlier_steps_count_where_later_ones_are_of_one_process_alone(plan, tmp_path):
    plan.cell("s", 0)
    plan.cell("s", 10)
    for row in rows_of(plan, tmp_path):  # steps 5 to 9 of the first cell, 5 to 19 of the other
        assert (row["steady_from"], row["steady_processes"], row["steady_samples"]) == ("5", "2", "20")


def test_one_process_has_no_interval(plan, tmp_path):
    plan.cell("s", 10)
    (row,) = rows_of(plan, tmp_path)
    assert row["steady_processes"] == "1" and steady(row) == [pytest.approx(35), None, None]


def test_the_steady_state_is_the_geometric_mean_of_its_processes(plan, tmp_path):
    plan.cell("s", 5, steady=(10.0, 15.0, 5.0))
    plan.cell("s", 10, steady=(15.0, 20.0, 5.0))
    row, _ = rows_of(plan, tmp_path)
    assert (row["steady_processes"], row["steady_samples"]) == ("2", "15")
    # Steps of 30 and 40 ms: the logarithms' standard deviation is ln(4/3) / √2, with one degree of freedom.
    middle, half = math.sqrt(30 * 40), 12.7062 * math.log(4 / 3) / 2
    assert steady(row) == pytest.approx([middle, middle * math.exp(-half), middle * math.exp(half)], rel=1e-4)
    assert steady(row, "optimizer") == pytest.approx([5, 5, 5])  # both took the same
    assert float(row["step_steady_spread"]) == pytest.approx(math.log(4 / 3) / math.sqrt(2))
    assert row["step_steady_spread_degrees"] == "1"
    assert float(row["step_mean_over_steady"]) == pytest.approx(30 / middle)


def test_the_spread_is_that_of_all_points_of_the_machine(plan, tmp_path):
    for hardware in ("gpu", "other"):
        plan.cell("s", 5, steady=(10.0, 15.0, 5.0), hardware=hardware)
        plan.cell("s", 10, steady=(15.0, 20.0, 5.0), hardware=hardware)
    plan.cell("m", 5)
    plan.cell("m", 10, steady=tuple(1.1 * each for each in made.STEADY["m"]))
    rows = {(row["hardware"], row["size"]): row for row in rows_of(plan, tmp_path)}
    # Of two processes the variance is half the difference's square; on the other machine the first point is alone.
    spread = math.sqrt((math.log(4 / 3) ** 2 + math.log(1.1) ** 2) / 4)
    half, middle = 4.30265 * spread / math.sqrt(2), 140 * math.sqrt(1.1)
    expected = [middle, middle * math.exp(-half), middle * math.exp(half)]
    assert steady(rows["gpu", "m"]) == pytest.approx(expected, rel=1e-4)
    assert rows["gpu", "s"]["step_steady_spread_degrees"] == "2"
    assert rows["other", "s"]["step_steady_spread_degrees"] == "1"


def test_points_that_launches_limit_have_a_spread_of_their_own(plan, tmp_path):
    for size, launched in (("s", 0.99), ("m", 0.5)):
        plan.cell(size, 5, launched=launched)
        plan.cell(size, 10, launched=launched, steady=tuple(2 * each for each in made.STEADY[size]))
    rows = {row["size"]: row for row in rows_of(plan, tmp_path)}
    assert {size: row["step_steady_limited_by"] for size, row in rows.items()} == {"s": "launches", "m": "gpu"}
    assert [row["step_steady_spread_degrees"] for row in rows.values()] == ["1", "1"]


@pytest.mark.parametrize(
    ("warmup", "steps", "start", "count"), [(0, 10, "5", "5"), (2, 3, "2", "3"), (4, 4, "5", "3"), (0, 2, "", "")]
)
def test_with_fewer_steps_the_steady_state_begins_earlier(plan, tmp_path, warmup, steps, start, count):
    plan.cell("s", warmup, steps=steps)
    (row,) = rows_of(plan, tmp_path)
    assert (row["steady_from"], row["steady_samples"]) == (start, count)
    assert bool(row["step_mean_over_steady"]) == bool(start)


def test_cells_without_a_result_give_no_steady_state(plan, tmp_path):
    plan.cell("s", 0)
    plan.cell("s", 5, status="oom")
    plan.cell("s", 10, measure=False)
    plan.cell("s", 10, profiled=True, steady=(1.0, 1.0, 1.0))
    plan.cell("m", 0)
    cold, lost, missing, profiled, other = rows_of(plan, tmp_path)
    assert (cold["steady_processes"], cold["steady_from"]) == ("1", "5")
    assert (lost["status"], lost["step_mean_ms"], lost["peak_allocated_bytes"]) == ("oom", "", str(3 * 2**30))
    assert "2.00 GiB" in lost["reason"] and float(lost["step_steady_ms"]) == pytest.approx(35)
    assert (missing["status"], missing["log"]) == ("missing", "")
    assert (profiled["first"], profiled["step_first_ms"]) == ("profiled", "")
    assert float(other["step_steady_ms"]) == pytest.approx(140)


def test_cells_on_a_slow_host_are_marked(plan, tmp_path):
    """Loops of 2.0, 2.5 and 2.51 ms: 1.25 times the quickest is no more than the mark."""
    for count, ms in ((0, 2.0), (5, 2.5), (10, 2.51)):
        plan.cell("s", count, host={"python": [ms / 1e3]})
    assert [row["slow_host"] for row in rows_of(plan, tmp_path)] == ["False", "False", "True"]


def test_the_parts_of_the_profiled_first_step(plan, tmp_path):
    plan.cell("s", 10, profiled=True)
    (row,) = rows_of(plan, tmp_path)
    assert float(row["profiled_first_ms"]) == pytest.approx(1400)
    assert float(row["profiled_steady_ms"]) == pytest.approx(40)
    assert float(row["module_loading_first_ms"]) == pytest.approx(800)
    assert float(row["waiting_for_the_device_steady_ms"]) == pytest.approx(-20)
    assert (row["operators_first_calls"], row["python_and_the_rest_first_calls"]) == ("900", "")
    assert (row["page_faults_first"], row["page_faults_steady"]) == ("54321", "12")
    assert '"name": "cudaLaunchKernel"' in row["largest"]
    assert float(row["matrix_products_first_ms"]) == pytest.approx(150)
    assert float(row["compiled_code_first_ms"]) == pytest.approx(50)


def test_an_older_record_has_matrix_products_and_compiled_code_in_one_part(plan, tmp_path):
    older = {"compilation and autotuning": 0.2, "module loading": 0.8}
    plan.cell("s", 10, profiled=True, parts=(older, dict.fromkeys(older, 0.01)))
    (row,) = rows_of(plan, tmp_path)
    assert float(row["matrix_products_first_ms"]) == pytest.approx(200)
    assert (row["compiled_code_first_ms"], row["compiled_code_first_calls"]) == ("", "")
    assert {event["part"] for event in json.loads(row["largest"])} == {"module loading", "matrix products"}


def test_every_sample_stands_after_its_cells_key(plan, tmp_path):
    plan.cell("s", 1, steps=2)
    rows_of(plan, tmp_path)
    lines = (tmp_path / "tables" / "warmup_samples.csv").read_text().splitlines()
    assert lines[0].startswith("cell,hardware,size,context,precision,repeat,process,mode,kind,step,phase,warmup")
    assert len(lines) == 1 + 3 * 3
    assert lines[1].startswith("gpu/warmup/s/ctx128/fp32/warmup=1,gpu,s,128,fp32,1,1,step,phased,0,forward,True,1.01")


def test_the_parts_are_those_of_the_program():
    pytest.importorskip("torch")
    from stepscope.measure import warmup_steps

    assert {*warmup_steps.PARTS, warmup_steps.OPERATORS, warmup_steps.REST} == set(warmup.PARTS)
    assert warmup.REST == warmup_steps.REST
