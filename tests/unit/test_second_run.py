"""benchmarks/second_run.py on made-up tables of two runs; and how it plants a slowdown."""

import json
import math
import random
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import planted_step
import second_run
import two_runs
from stepscope.report.kit.compare import Floors
from stepscope.tables import timing
from stepscope.tables.columns import with_intervals

POINT = {
    **{"hardware": "a", "size": "small", "context": 128, "batch": 4, "precision": "fp32", "mode": "step"},
    **{"attention": "naive", "compile": "none", "optimizer": "own", "checkpoint": "0", "repeat": 1},
    **{"device": "cuda", "noise_mark": 0.02},
}


def timing_table(series, launch_share=0.5):
    """A timing table from (what its cell has besides POINT, the processes' medians of its step in ms)."""
    rows = []
    for place, medians in series:
        row = POINT | place
        row["cell"] = f"a/timing/{row['size']}/ctx{row['context']}/{row['precision']}/repeat={row['repeat']}"
        row |= {
            "step_processes": len(medians),
            "step_process_medians_ms": " ".join(map(str, medians)),
            "step_median_ms": math.prod(medians) ** (1 / len(medians)),
            "step_launch_share": launch_share,
        }
        rows.append(row)
    with_intervals(rows, ["step_"])
    return pd.DataFrame(rows)


def run_of(series, **more):
    tables = dict.fromkeys(two_runs.STUDIES, pd.DataFrame())
    return two_runs.run_of(tables | {"timing": timing_table(series, **more)})


def unchanged(seed, factor=1.0, deviation=0.01):
    """200 cells of three processes each, whose logarithms vary with this standard deviation."""
    draw = random.Random(seed)
    return [
        ({"context": context}, [factor * context * math.exp(draw.gauss(0, deviation)) for _ in range(3)])
        for context in range(1, 201)
    ]


def pair(context, fp32, bf16):
    """Cells in fp32 and bf16 at one point; each of three processes close to the given time."""
    return [
        ({"context": context, "precision": precision}, [0.999 * time, time, 1.001 * time])
        for precision, time in (("fp32", fp32), ("bf16", bf16))
    ]


def total(first, second):
    return two_runs.summary(two_runs.repeated(first, second), two_runs.both_verdicts(first, second))[-1]


def test_unchanged_cells_overlap_and_none_is_called():
    found = total(run_of(unchanged(seed=1)), run_of(unchanged(seed=2)))
    # Half an interval is 1.97 standard errors with 400 degrees of freedom; two are apart beyond 2 × 1.97 of them,
    # while their difference has √2: normal tail of 2.78, 0.5 %. |difference| has the median 0.674 × √(2/3) × 1 %.
    assert (found["series"], found["with_intervals"]) == (200, 200)
    assert found["overlapping_share"] >= 0.975
    assert found["called"] == 0
    assert found["median_difference"] == pytest.approx(0.0055, rel=0.2)


def test_a_run_that_is_slower_by_a_tenth_is_called_slower_everywhere():
    series = unchanged(seed=1, deviation=0.002)
    first, second = run_of(series), run_of([(place, [1.1 * one for one in medians]) for place, medians in series])
    found = total(first, second)
    assert (found["overlapping"], found["overlapping_share"]) == (0, 0.0)
    assert (found["called"], found["called_share"]) == (200, 1.0)
    assert found["median_difference"] == pytest.approx(math.log(1.1))
    assert found["largest_difference"] == pytest.approx(math.log(1.1))
    assert {each.comparison.verdict for each in two_runs.repeated(first, second)} == {"slower"}
    assert {each.comparison.verdict for each in two_runs.repeated(second, first)} == {"faster"}


def test_a_difference_within_the_margin_is_not_called():
    series = unchanged(seed=1, deviation=0.0001)
    slower = [(place, [1.015 * one for one in medians]) for place, medians in series]
    assert total(run_of(series), run_of(slower))["called"] == 0


def test_the_larger_floor_of_both_runs_holds():
    cells = [({}, [9.99, 10.0, 10.01]), ({"repeat": 2}, [9.99, 10.0, 10.01])]
    restless = [({}, [9.99, 10.0, 10.01]), ({"repeat": 2}, [11.49, 11.5, 11.51])]
    other = {"context": 256}
    first = run_of([*cells, (other, [9.99, 10.0, 10.01])])
    slower = [(other, [10.99, 11.0, 11.01])]
    by_context = {"a/timing/small/ctx256/fp32/repeat=1"}

    def called(second):
        found = two_runs.repeated(first, run_of(second))
        return {each.place.cell for each in found if each.is_called}

    assert called([*cells, *slower]) == by_context
    assert called([*restless, *slower]) == set()  # 10 % is less than the 15 % of the second run's control


def test_larger_floors():
    one, other = Floors({("a", "gpu"): 0.01, ("a", "launches"): 0.05}), Floors({("a", "gpu"): 0.02, ("b", "gpu"): 0.03})
    expected = {("a", "gpu"): 0.02, ("a", "launches"): 0.05, ("b", "gpu"): 0.03}
    assert one.larger(other).by_class == expected


def test_verdicts_that_turn_are_lost_or_gained():
    # fp32 takes 10 ms; bf16 5 or 20 is faster or slower, 10 is the same. One point for each way to change.
    before = [*pair(1, 10, 5), *pair(2, 10, 5), *pair(3, 10, 20), *pair(4, 10, 20), *pair(5, 10, 10), *pair(6, 10, 10)]
    after = [*pair(1, 10, 5), *pair(2, 10, 20), *pair(3, 10, 5), *pair(4, 10, 10), *pair(5, 10, 20), *pair(6, 10, 10)]
    changes = two_runs.both_verdicts(run_of(before), run_of(after))
    found = [(each.first, each.second, each.change) for each in changes]
    assert found == [
        ("faster", "faster", "equal"),
        ("faster", "slower", "turned"),
        ("slower", "faster", "turned"),
        ("slower", "same", "lost"),
        ("same", "slower", "gained"),
        ("same", "same", "equal"),
    ]
    row = two_runs.summary([], changes)[-1]
    assert [row[key] for key in ("verdicts", "equal", "turned", "lost", "gained", "other")] == [6, 2, 2, 1, 1, 0]
    names = two_runs.offenders([], changes)
    assert names["verdicts turned"] == [
        "a/timing/small/ctx2/bf16/repeat=1 step: faster, then slower",
        "a/timing/small/ctx3/bf16/repeat=1 step: slower, then faster",
    ]


def test_only_16_bits_are_set_beside_fp32_and_only_at_the_same_point():
    cells = [*pair(1, 10, 5), ({"context": 1, "precision": "tf32"}, [7.0, 7.0]), *pair(2, 10, 5)[1:]]
    (place,) = two_runs.verdicts(run_of(cells))
    assert place.cell == "a/timing/small/ctx1/bf16/repeat=1"


def test_a_single_process_has_no_interval_and_no_verdict():
    first, second = run_of([({}, [10.0])]), run_of([({}, [20.0])])
    found = total(first, second)
    assert (found["series"], found["with_intervals"], found["judged"], found["called"]) == (1, 0, 0, 0)
    assert (found["overlapping_share"], found["called_share"]) == (None, None)
    assert found["largest_difference"] == pytest.approx(math.log(2))


def test_intervals_of_an_older_version_overlap_but_are_not_judged():
    row = POINT | {"cell": "a/timing/small/ctx128/fp32"}
    row |= {"step_median_ms": 10.0, "step_ci_low_ms": 9.9, "step_ci_high_ms": 10.1}
    run = two_runs.run_of(dict.fromkeys(two_runs.STUDIES, pd.DataFrame()) | {"timing": pd.DataFrame([row])})
    found = total(run, run)
    assert (found["with_intervals"], found["overlapping"], found["judged"]) == (1, 1, 0)
    assert found["called_share"] is None


def test_series_are_grouped_by_what_limits_the_first_run():
    first, second = (run_of([({}, [10.0, 10.0])], launch_share=launched) for launched in (0.95, 0.5))
    series = two_runs.repeated(first, second)
    rows = two_runs.summary(series, [])
    assert [(row["table"], row["limited_by"], row["series"]) for row in rows] == [
        ("timing", "launches", 1),
        ("all", "all", 1),
    ]
    (name,) = two_runs.offenders(series, [])["limited by something else in the second run"]
    assert name.endswith("launches, then gpu")


def test_lengths_and_directions_of_attention_are_series_of_their_own():
    row = {"cell": "a/attention/naive/d64/bf16", "length": 1024.0, "direction": "backward"}
    ((place, prefix),) = two_runs.places("attention", row)
    assert (str(place), prefix) == ("a/attention/naive/d64/bf16 1024 backward", "")


@pytest.mark.parametrize(
    ("phase", "name", "expected"),
    [
        ("backward", "backward", True),
        ("backward", "forward_backward", True),
        ("backward", "step", True),
        ("backward", "forward", False),
        ("backward", "optimizer", False),
        ("forward", "free_forward", True),
        ("forward", "inference", False),
        ("optimizer", "forward_backward", False),
    ],
)
def test_series_that_a_slowdown_is_a_part_of(phase, name, expected):
    assert two_runs.is_part(phase, name) is expected


def planted_outcomes(factor, phase="optimizer", seconds=0.001):
    """Of a step of 10 ms that takes `factor` times as long with 1 ms planted."""
    first, second = ([time * each for each in (0.999, 1.0, 1.001)] for time in (10.0, 10.0 * factor))
    plain, slowed = timing_table([({}, first), ({"repeat": 2}, second)]).to_dict("records")
    return two_runs.judged_planted([two_runs.Planted(phase, seconds, plain, slowed)], Floors())


def test_a_planted_slowdown_is_found():
    (row,) = planted_outcomes(1.1)
    assert row["expected"] == pytest.approx(1.1)
    assert row["ratio"] == pytest.approx(1.1)
    assert 1.09 < row["low"] < 1.1 < row["high"] < 1.11
    assert row["margin"] == pytest.approx(1.02)
    assert (row["series"], row["verdict"], row["outcome"]) == ("step", "slower", "found")


@pytest.mark.parametrize(
    ("factor", "seconds", "outcome"),
    [(1.0, 0.001, "not found"), (1.001, 0.00001, "too small"), (0.9, 0.001, "not found")],
)
def test_a_planted_slowdown_is_not_found(factor, seconds, outcome):
    (row,) = planted_outcomes(factor, seconds=seconds)
    assert row["outcome"] == outcome


def test_series_without_the_planted_phase_have_to_stay(monkeypatch):
    monkeypatch.setattr(two_runs, "is_part", lambda phase, name: False)
    assert [planted_outcomes(factor)[0]["outcome"] for factor in (1.0, 1.1, 0.9)] == ["right", "wrong", "wrong"]


def test_outcomes_are_counted():
    rows = [{"outcome": each} for each in ("found", "found", "not found", "too small", "right", "right", "wrong")]
    assert two_runs.outcomes(rows) == (
        "found in 2 of 3 series that it makes longer by more than the margin, and too small in 1; "
        "of 3 series without it 1 are called faster or slower"
    )


def test_two_folders_of_tables_are_compared(tmp_path, capsys):
    for name, time in (("one", 5), ("two", 20)):
        (tmp_path / name).mkdir()
        timing_table(pair(1, 10, time)).to_csv(tmp_path / name / "timing.csv", index=False)
    second_run.main(["--compare", str(tmp_path / "one"), str(tmp_path / "two"), "--json", str(tmp_path / "all.json")])
    row = json.loads((tmp_path / "all.json").read_text())["summary"][-1]
    assert (row["series"], row["overlapping"], row["called"], row["turned"]) == (2, 1, 1, 1)
    shown = capsys.readouterr().out
    assert "| all | all | 2 | 2 | 1 | 0.5000 | 2 | 1 | 0.5000 | 0.6931 | 1.3863 |" in shown  # ln 4, and half of it
    assert "verdicts turned (1):\n- a/timing/small/ctx1/bf16/repeat=1 step: faster, then slower" in shown


@pytest.mark.parametrize("text", ["backward", "backward=0", "backward=x", "loss=0.1", "backward=nan"])
def test_what_is_no_slowdown_is_refused(text, capsys):
    with pytest.raises(SystemExit) as ended:
        second_run.main(["--folder", "nowhere", "--plant", text])
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


def test_comparing_measures_nothing(capsys):
    with pytest.raises(SystemExit):
        second_run.main(["--compare", "a", "b", "--cores", "2"])
    assert "leave out --cores 2" in capsys.readouterr().err


def test_the_quickest_and_the_slowest_cell():
    assert second_run.smallest_and_largest({"b": 2.0, "a": 1.0, "c": 3.0}) == ["a", "c"]
    assert second_run.smallest_and_largest({"b": 2.0}) == ["b"]


def test_a_kernel_runs_at_the_end_of_its_phase_and_of_no_other():
    done = []

    class Workload:
        def __init__(self, spec):
            done.append("build")

        def _forward(self):
            done.append("forward")

        def _backward(self):
            done.append("backward")

    planted_step.plant(Workload, "backward", lambda device: lambda: done.append(f"kernel on {device}"))
    workload = Workload({"device": "cpu"})
    workload._forward()
    workload._backward()
    assert done == ["build", "forward", "backward", "kernel on cpu"]


def test_a_planted_cell_is_measured_again_when_something_else_is_asked_for(tmp_path):
    asked = {"spec": {"context": 64}, "code": "c0de", "seconds": 0.001}
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    assert not second_run.is_measured(tmp_path, asked)  # it was cut
    (tmp_path / "record.json").touch()
    assert second_run.is_measured(tmp_path, asked)
    assert not second_run.is_measured(tmp_path, asked | {"seconds": 0.002})


def test_a_planted_cell_is_no_part_of_the_control():
    # The plain cell was measured twice and gave the same; the planted one, at the same place, takes 5 % longer.
    rows = []
    for cell, repeat, factor in (("plain", 1, 1.0), ("plain/repeat=2", 2, 1.0), ("plain/planted", 2, 1.05)):
        medians = [10.0 * factor, 10.01 * factor, 10.02 * factor]
        row = dict.fromkeys([*timing.PLACE.names, *(f"{name}_processes" for name in timing.PHASES)]) | POINT
        row |= {"cell": cell, "repeat": repeat, "step_processes": 3, "step_launch_share": 0.5}
        row |= {"step_process_medians_ms": " ".join(map(str, medians)), "step_median_ms": medians[1]}
        rows.append(row)
    two_runs.fill_in(rows, {"plain/planted"})
    assert [row["step_spread_cells"] for row in rows] == [0.0, 0.0, 0.0]
    two_runs.fill_in(rows, set())
    assert rows[0]["step_spread_cells"] == pytest.approx(math.log(1.05) / math.sqrt(2) * math.sqrt(2 / 3), rel=0.01)
