"""Sentences and ratios of the warm-up study, from round records whose answers are worked out by hand."""

import pandas as pd
import pytest
import synthetic_warmup as made
from stepscope.report.data.warmup import Warmups, part_excess, profiled_excess, set_up_excess
from stepscope.report.studies.warmup import findings as warmup_findings
from stepscope.report.studies.warmup import runs as warmup_runs
from stepscope.report.studies.warmup.steps import by_step
from stepscope.report.studies.warmup.tables import verdicts_table
from stepscope.tables.reader import Tables


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
        "Of what the first step takes longer, 80 % is spent in forward, 16 % in backward and 4.0 % in the optimizer."
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
        "Fresh processes of the same cell differ in the median time of a step by up to 2.8 % (s, context 128, fp32; "
        "warm-up study), which is more than the widest interval within a run (0.0 %)."
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
        "Fresh processes of the same cell differ in the median time of a step by up to 2.0 % (s, context 512, fp32; "
        "timing study), and by more than the widest 95 % interval within one of them in 1 of 2 points."
    )
    table = warmup_runs.runs_table(found)
    assert [cell.text for cell in table.rows[0]] == ["m", "512", "fp32", "timing", "2", "0.050", "1.0", "0.050"]
    assert warmup_runs.runs(Warmups(Tables(folder, ["warmup"]))).empty


def unsettled(plan):
    """s: the process with 5 warm-up steps is 40 % faster than that with 10, 21 against 35 ms; m is settled."""
    made.points(plan, ("m",))
    for count in (0, 1, 2, 10):
        plan.cell("s", count)
    plan.cell("s", 5, steady=(6.0, 12.0, 3.0))


def test_a_size_whose_warm_processes_disagree_is_compared_with_no_steady_state(plan, warmups):
    unsettled(plan)
    found = warmups()
    small, medium = sorted(found.settings[0].points, key=lambda point: point.size, reverse=True)
    assert small.disagreement == pytest.approx((35 - 21) / 28) and not small.is_settled
    assert medium.disagreement == pytest.approx(0) and medium.is_settled
    sentences = said(found)
    assert one(sentences, "s (50") == (
        "s (50 %) has no sure steady state, and the comparisons with it above leave it out: its processes with 5 or "
        "more warm-up steps differ by so much in the median step."
    )
    assert "is 92 % too high (m)" in one(sentences, "Without")
    assert one(sentences, "Warm-up steps after which").endswith("steady state: 1 for m.")
    assert one(sentences, "The first step takes").startswith(
        "The first step takes 9.93 times as long as a steady one (m)"
    )
    table = verdicts_table(found, found.settings[0])
    rows = {row[0].text: [cell.text for cell in row[-4:]] for row in table.rows}
    assert rows["m"] == ["1", "1", "1", "1"] and rows["s"] == ["(10)"] * 4
    assert table.notes[1].startswith(
        "In brackets: s, whose processes with 5 or more warm-up steps differ by more than 5 %"
    )


def test_sizes_that_disagree_are_named_together(plan, warmups):
    for size in ("s", "m"):
        plan.cell(size, 5)
        plan.cell(size, 10, steady=(100.0, 200.0, 50.0))
    (told,) = [sentence for sentence in said(warmups()) if "no sure steady state" in sentence]
    # 350 against 35 ms, and against 140 ms: of medians of 192.5 and 245 ms.
    assert told.startswith(
        "s (164 %) and m (86 %) have no sure steady state, and the comparisons with it above leave them"
    )


def test_one_warm_process_agrees_with_itself(plan, warmups):
    plan.cell("s", 0)
    plan.cell("s", 10)
    assert warmups().settings[0].points[0].disagreement is None and warmups().settings[0].points[0].is_settled


def test_the_steady_state_against_the_timing_study(plan, tmp_path):
    plan.cell("s", 10)
    plan.cell("m", 10)
    folder = plan.write(tmp_path / "tables")
    place = {"hardware": "gpu", "context": 128, "batch": 4, "precision": "fp32", "mode": "step", "parameters": 1e6}
    runs = [("s", 5.0, 10.0, 2.5), ("m", 40.0, 80.0, 20.0), ("s", 5.0, 10.0, 2.5), ("m", 40.0, 80.0, None)]
    rows = [place | {"size": size, "cell": f"{size}{at}", "repeat": at + 1, "forward_median_ms": forward,
                     "backward_median_ms": backward, "optimizer_median_ms": optimizer}
            | {f"{phase}_ci_{end}_ms": 1.0 for phase in made.PHASES for end in ("low", "high")}
            for at, (size, forward, backward, optimizer) in enumerate(runs)]  # fmt: skip
    pd.DataFrame(rows).to_csv(folder / "timing.csv", index=False)
    sentences = said(Warmups(Tables(folder, ["timing", "warmup"])))
    # 17.5 of 35 ms, and 140 of 140 ms.
    assert one(sentences, "The timing study's") == (
        "The timing study's phased steps of the same points, at another time, took 0.50 (s) to 1.00 (m) times the "
        "steady state."
    )


def test_what_takes_less_time_in_the_first_step_is_said(plan, warmups):
    waits = {"waiting for the device": 0.5}
    plan.cell("s", 0)
    plan.cell("s", 10)
    plan.cell("s", 10, profiled=True, parts=(made.IN_FIRST, made.IN_STEADY | waits))
    # 0.02 s instead of 0.5 s, of an excess of 1.360 - 0.520 = 0.840 s.
    assert ", while less time goes to waiting for the device (by up to 57 %); set-up" in one(
        said(warmups()), "A profile"
    )
