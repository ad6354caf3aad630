"""Sentences and ratios of the warm-up study, from round records whose answers are worked out by hand."""

import pandas as pd
import pytest
import synthetic_warmup as made
from stepscope.report.tables import Tables
from stepscope.report.warmup import findings as warmup_findings
from stepscope.report.warmup import runs as warmup_runs
from stepscope.report.warmup.cells import Warmups, part_excess, profiled_excess, set_up_excess
from stepscope.report.warmup.steps import by_step


@pytest.fixture
def plan(tmp_path):
    return made.Plan(tmp_path / "results")


@pytest.fixture
def warmups(plan, tmp_path):
    return lambda: Warmups(Tables(plan.write(tmp_path / "tables"), ["warmup"]))


def said(warmups) -> list[str]:
    return warmup_findings.findings(warmups)


def one(sentences, start):
    (found,) = [sentence for sentence in sentences if sentence.startswith(start)]
    return found


def test_two_sizes_in_full(plan, warmups):
    # s: 1,285 + 42 + 38.5 + 7 x 35 = 1,610.5 ms in ten steps, 4.60 times 350.
    # m: 1,390 + 168 + 154 + 7 x 140 = 2,692 ms, 1.92 times 1,400.
    made.points(plan)
    sentences = said(warmups())
    assert one(sentences, "Without") == (
        "Without warm-up the mean time of a step is 92 % (m) to 360 % (s) too high, with a standard deviation of 146 "
        "to 245 % of that mean; the median of the same steps is off by 0.0 % at most."
    )
    assert one(sentences, "After") == (
        "After 1 warm-up step the mean is 3.0 % too high and after 2 warm-up steps 1.0 % too high."
    )
    assert one(sentences, "Warm-up steps after which") == (
        "Warm-up steps after which the mean stays within 5 % of the steady state: 1 for s and m."
    )
    assert one(sentences, "The first step") == (
        "The first step takes 9.93 (m) to 36.7 (s) times as long as a steady one, which is 1,250 ms more."
    )
    assert one(sentences, "A profile") == (
        "A profile puts what the first step takes longer down to module loading (57 %), memory allocation (14 %), "
        "compilation and autotuning (14 %) and other API calls (6.6 %); set-up (module loading, memory allocation, "
        "compilation and autotuning and other API calls) makes up 92 % of the profiled excess and 100 % of the "
        "unprofiled excess."
    )
    assert one(sentences, "Of what") == (
        "Of what the first step takes longer, 80 % falls in forward, 16 % backward and 4.0 % optimizer."
    )
    assert not any("memory in" in sentence for sentence in sentences)


def test_the_parts_add_up(plan, warmups):
    made.points(plan, ("s",))
    (setting,) = warmups().settings
    (point,) = setting.points
    assert profiled_excess(point.profiled) == pytest.approx(1360)
    assert set_up_excess(point.profiled) == pytest.approx(780 + 190 + 190 + 90)
    assert sum(part_excess(point.profiled, part) for part in made.PARTS) == pytest.approx(1360)
    assert point.excess("step") == pytest.approx(1250) and point.excess("forward") == pytest.approx(1000)


def test_one_size_and_one_number_of_warm_up_steps(plan, warmups):
    plan.cell("s", 0)
    found = warmups()
    assert warmup_findings.opening(found) == [
        "Exactly 10 steps were measured after 0 warm-up steps, in a process of its own. Nothing ran before the first "
        "step and nothing was discarded."
    ]
    sentences = said(found)
    assert one(sentences, "Without").startswith("Without warm-up the mean time of a step is 360 % too high (s), with")
    assert one(sentences, "Warm-up steps").endswith("steady state: more than the 0 that were tried for s.")
    assert "takes 36.7 times as long as a steady one (s), which is 1,250 ms more" in one(sentences, "The first step")
    assert not any(sentence.startswith(("After", "A profile", "Fresh")) for sentence in sentences)


def test_enough_means_that_all_larger_numbers_are_close_too(plan, warmups):
    plan.cell("s", 0, first=(0.0, 0.0, 0.0), steady=(10.0, 20.0, 5.0))  # 1.03 of the steady state
    plan.cell("s", 1, steady=(12.0, 24.0, 6.0))  # another process that is slower throughout
    plan.cell("s", 5)
    plan.cell("s", 10)
    (point,) = warmups().settings[0].points
    assert point.enough("step") == 5
    assert point.enough("forward") == 5


def test_phases_have_no_shares_where_one_of_them_was_faster_at_first(plan, warmups):
    plan.cell("s", 0, first=(1000.0, -5.0, 50.0))
    plan.cell("s", 10)
    assert not any(sentence.startswith("Of what") for sentence in said(warmups()))


def test_a_mean_may_be_too_low(plan, warmups):
    plan.cell("s", 1, steady=(8.0, 16.0, 4.0))
    plan.cell("s", 10)
    # 28 ms x 1.03 = 28.84 of 35.
    assert one(said(warmups()), "After") == "After 1 warm-up step the mean is 18 % too low."
    plan.cell("m", 1)
    plan.cell("m", 10)
    assert one(said(warmups()), "After") == "After 1 warm-up step the mean is between 18 % too low and 3.0 % too high."


def test_cells_without_a_result(plan, warmups):
    plan.cell("s", 0, status="oom")
    found = warmups()
    assert said(found) == ["Out of memory in 1 of 1 warm-up cell (s)."]
    assert warmup_findings.opening(found) == ["No warm-up cell was measured."]
    plan.cell("s", 1, status="unsupported", reason="no bf16 here")
    assert said(warmups()) == ["Out of memory in 1 of 2 warm-up cells (s); not possible in 1 of 2 warm-up cells (s)."]


def test_no_table_at_all(tmp_path):
    assert said(Warmups(Tables(tmp_path, ["warmup"]))) == ["No warm-up cell is in the tables."]


def test_machines_and_settings_are_named(plan, warmups):
    made.points(plan, ("s",), (0, 10), hardware="a")
    made.points(plan, ("s",), (0, 10), hardware="b")
    made.points(plan, ("s",), (0, 10), hardware="b", precision="bf16")
    sentences = said(warmups())
    assert all(sentence.startswith(("On a: ", "On b: ")) for sentence in sentences)
    mine = [sentence for sentence in sentences if "Without" in sentence]
    assert len(mine) == 3 and mine[0].endswith("the median of the same steps is off by 0.0 %.")
    for each, name in zip(mine[1:], ("fp32", "bf16"), strict=True):
        assert each.endswith(f" % (context 128, {name}, batch 4).")


def test_steps_over_processes():
    rows = [("a", 0, phase, 1.0) for phase in ("forward", "backward", "optimizer")]
    rows += [("b", 0, "forward", 2.0), ("b", 0, "backward", 3.0), ("b", 0, "optimizer", 4.0), ("b", 1, "forward", 0.5)]
    found = by_step(pd.DataFrame(rows, columns=["cell", "step", "phase", "seconds"])).set_index(["phase", "step"])
    assert list(found.loc[("step", 0)]) == [6000, 3000, 9000, 2]
    assert list(found.loc[("forward", 1)]) == [500, 500, 500, 1]
    assert ("step", 1) not in found.index  # the step ran out of memory after forward


def test_runs_of_this_study_are_its_warm_processes(plan, warmups):
    plan.cell("s", 2, steady=(90.0, 90.0, 90.0))
    plan.cell("s", 5, steady=(10.0, 20.0, 5.0))
    plan.cell("s", 10, steady=(11.0, 20.0, 5.0))
    plan.cell("s", 10, profiled=True)
    found = warmup_runs.runs(warmups())
    assert list(found["study"].unique()) == ["warmup"] and list(found["phase"]) == ["forward", "backward", "step"]
    forward = found.iloc[0]
    assert sorted(forward["medians"]) == pytest.approx([10, 11]) and forward["spread"] == pytest.approx(1 / 10.5)
    assert warmup_runs.told(found, "gpu") == (
        "Fresh processes of the same cell differ in the median time of a step by up to 2.8 % (s, context 128, fp32), "
        "which is more than the widest interval within a run (0.0 %)."
    )
    assert warmup_runs.told(found, "other") == ""


def test_repeats_of_the_timing_study_are_runs(plan, tmp_path):
    plan.cell("s", 0)
    folder = plan.write(tmp_path / "tables")
    rows = []
    for size, first, second in (("s", 10.0, 10.2), ("m", 40.0, 40.02)):
        for repeat, median in ((1, first), (2, second)):
            row = {
                "cell": f"{size}{repeat}",
                "hardware": "gpu",
                "size": size,
                "context": 512,
                "batch": 4,
                "mode": "step",
            }
            row |= {"precision": "fp32", "repeat": repeat, "parameters": 1e6, "status": "ok", "step_median_ms": median}
            rows.append(row | {"step_ci_low_ms": median * 0.995, "step_ci_high_ms": median * 1.005})
    pd.DataFrame(rows).to_csv(folder / "timing.csv", index=False)
    found = warmup_runs.runs(Warmups(Tables(folder, ["timing", "warmup"])))
    assert warmup_runs.told(found, "gpu") == (
        "Fresh processes of the same cell differ in the median time of a step by up to 2.0 % (s, context 512, fp32), "
        "and by more than the widest interval within a run, at most 1.0 %, in 1 of 2 points."
    )
    table = warmup_runs.runs_table(found)
    assert [cell.text for cell in table.rows[0]] == ["m", "512", "fp32", "timing", "2", "0.050", "1.0", "0.050"]
    assert warmup_runs.runs(Warmups(Tables(folder, ["warmup"]))).empty
