"""Points that several studies measured, from tables whose comparisons follow by hand."""

import pandas as pd
import pytest
import synthetic_warmup
from stepscope.report.agreement import agreement_findings, agreement_table
from stepscope.report.data.agreement import measured_again
from stepscope.tables.reader import Tables


def row(study="timing", ms=10.0, size="small", deviation=0.005, processes=3, phase="step", **more) -> dict:
    """A cell of three processes in a class whose spread is `deviation` with 30 degrees of freedom."""
    options = {"attention": "naive", "compile": "none", "optimizer": "own", "checkpoint": 0} | more.pop("options", {})
    name = f"gpu/{study}/{size}/{'/'.join(map(str, (*options.values(), more.get('repeat', 1))))}"
    place = {"cell": name, "hardware": "gpu", "size": size, "context": 128, "precision": "fp32", "batch": 4}
    place |= {"mode": "step", "repeat": 1, "parameters": 1e8, "status": "ok", "reason": "", **options}
    times = {"median_ms": ms, "ci_low_ms": 0.99 * ms, "ci_high_ms": 1.01 * ms, "processes": processes}
    times |= {"spread": deviation, "spread_degrees": 30, "limited_by": "launches"} if processes > 1 else {}
    return place | {f"{phase}_{key}": value for key, value in times.items()} | more


def tables(folder, timing, ladder=(), studies=("timing", "ladder", "warmup")) -> Tables:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("timing", timing), ("ladder", ladder)):
        if rows:
            pd.DataFrame(rows).to_csv(folder / f"{name}.csv", index=False)
    return Tables(folder, list(studies))


def test_studies_that_disagree_are_named_with_what_differed(tmp_path):
    machine = {"sm_clock_median_mhz": 1980.0, "device_uuid": "GPU-1"}
    slow = machine | {"host_python_ms": 4.0, "started": "2030-01-01T10:00:00+00:00"}
    fast = machine | {"host_python_ms": 2.1, "started": "2030-01-01T08:00:00+00:00"}
    found = tables(tmp_path, [row(ms=28.5, **fast)], [row("ladder", ms=59.9, **slow)])
    (finding,) = agreement_findings(found)
    assert finding.text == (
        "Studies that measured the same point disagree beyond the floor in 1 of 1 comparisons with the timing study: "
        "small at 128 in fp32, step: 28.5 ms in timing, 59.9 in ladder (host loop 2.1 and 4.0 ms and started "
        "2030-01-01 08:00 and 2030-01-01 10:00)."
    )
    assert finding.hardware == "gpu" and len(finding.cells) == 2
    (line,) = agreement_table(found).rows
    assert [cell.text for cell in line[-5:]] == ["28.5", "59.9", "ladder", "2.10", "slower"]


def test_what_unchanged_cells_differ_by_is_no_disagreement(tmp_path):
    # The control differs by 24 %, the studies by 15 %.
    control = [row(ms=10.0), row(ms=12.4, repeat=2)]
    (finding,) = agreement_findings(tables(tmp_path, control, [row("ladder", ms=11.5)]))
    assert "the same within 24 % in 1 of 1 comparisons" in finding.text


def test_where_unchanged_cells_differ_by_much_nothing_is_the_same(tmp_path):
    control = [row(ms=10.0), row(ms=14.0, repeat=2)]  # 40 %
    assert agreement_findings(tables(tmp_path, control, [row("ladder", ms=13.0)])) == []


@pytest.mark.parametrize(
    "ms, words", [(10.05, "the same within 2.0 % in 1 of 1 comparisons."), (11.0, "disagree beyond the floor")]
)
def test_within_two_per_cent_they_agree(tmp_path, ms, words):
    (finding,) = agreement_findings(tables(tmp_path, [row()], [row("ladder", ms=ms)]))
    assert words in finding.text


def test_single_processes_and_other_points_tell_nothing(tmp_path):
    one = {"processes": 1, "ms": 20.0}
    assert agreement_findings(tables(tmp_path, [row()], [row("ladder", **one)])) == []
    others = [row("ladder", ms=20.0, options={"attention": "sdpa"}), row("ladder", ms=20.0, size="medium")]
    assert measured_again(tables(tmp_path / "b", [row()], others)) == []
    assert agreement_table(tables(tmp_path / "b", [row()], others)) is None
    assert measured_again(tables(tmp_path / "none", [], [row("ladder")])) == []


def test_the_warm_up_studys_phases_stand_beside_the_timing_studys(tmp_path):
    plan = synthetic_warmup.Plan(tmp_path / "results")
    for count in (5, 10):
        plan.cell("s", count)  # forward 10, backward 20, optimizer 5 ms
    plan.cell("s", 10, profiled=True)
    plan.write(tmp_path / "tables")
    point = row(size="s", phase="forward", ms=10.0) | row(size="s", phase="backward", ms=30.0)
    found = measured_again(tables(tmp_path / "tables", [point]))
    assert [(each.phase, each.found.times, each.found.verdict) for each in found] == [
        ("forward", (10.0, pytest.approx(10.0)), "same"),
        ("backward", (30.0, pytest.approx(20.0)), "faster"),
    ]
    (finding,) = agreement_findings(tables(tmp_path / "tables", [point]))
    assert (
        "in 1 of 2 comparisons" in finding.text
        and "s at 128 in fp32, backward: 30.0 ms in timing, 20.0 in warm-up" in (finding.text)
    )
