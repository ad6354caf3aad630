"""Findings and ratios of the warm-up study, from round records whose answers are worked out by hand."""

import pandas as pd
import pytest
import synthetic_warmup as made
from stepscope.report.data.warmup import Warmups, by_step, part_excess, profiled_excess, runs, set_up_excess
from stepscope.report.studies.warmup import findings as warmup_findings
from stepscope.report.studies.warmup.findings import off
from stepscope.report.studies.warmup.tables import runs_table, verdicts_table
from stepscope.tables.reader import Tables

COLD = "what does a benchmark without warm-up get"
ONE_OR_TWO = "what do one and two warm-up steps leave"
ENOUGH = "how many warm-up steps are enough"
FIRST = "how long is the first step"
CONTENTS = "what does the first step spend it on"
PHASES = "which phase pays for the first step"
UNSETTLED = "what has no steady state"
AGREES = "does the timing study agree"
RUNS = "how much do runs differ"
LOST = "what has no result"


@pytest.fixture
def plan(tmp_path):
    return made.Plan(tmp_path / "results")


@pytest.fixture
def warmups(plan, tmp_path):
    return lambda: Warmups(Tables(plan.write(tmp_path / "tables"), ["warmup"]))


def said(warmups) -> dict:
    """Question -> finding, of one setting."""
    found = warmup_findings.findings(warmups)
    assert len({each.question for each in found}) == len(found)
    return {each.question: each for each in found}


def values(finding) -> dict:
    return {name: number.value for name, number in finding.numbers.items()}


def test_two_sizes_in_full(plan, warmups):
    # s: 1,285 + 42 + 38.5 + 7 x 35 = 1,610.5 ms in ten steps, 4.60 times 350.
    # m: 1,390 + 168 + 154 + 7 x 140 = 2,692 ms, 1.92 times 1,400.
    made.points(plan)
    found = said(warmups())
    assert list(found) == [COLD, ONE_OR_TWO, ENOUGH, FIRST, CONTENTS, PHASES, RUNS]
    cold = values(found[COLD])
    assert (cold["least"], cold["most"]) == pytest.approx((2692 / 1400 - 1, 1610.5 / 350 - 1))
    assert cold["std"] == pytest.approx([2.45, 1.46], abs=0.005) and cold["median_off"] == pytest.approx(0, abs=1e-9)
    assert values(found[ONE_OR_TWO]) == {"one": pytest.approx([1.03] * 2), "two": pytest.approx([1.01] * 2)}
    assert values(found[ENOUGH]) == {"enough_1": 1} and found[ENOUGH].text.endswith("1 for s and m.")
    first = values(found[FIRST])
    assert (first["least"], first["most"]) == pytest.approx((1390 / 140, 1285 / 35))
    assert first["excess"] == pytest.approx([1250] * 2)
    shares = {"module_loading": 780, "memory_allocation": 190, "compilation_and_autotuning": 190, "other_api_calls": 90}
    expected = {name: pytest.approx([ms / 1360] * 2) for name, ms in shares.items()}
    whole = {"profiled": pytest.approx([1250 / 1360] * 2), "unprofiled": pytest.approx([1.0] * 2)}
    assert values(found[CONTENTS]) == expected | whole
    paid = {"forward": 0.8, "backward": 0.16, "optimizer": 0.04}
    assert values(found[PHASES]) == {name: pytest.approx([share] * 2) for name, share in paid.items()}


def test_numbers_name_the_cells_that_they_are_from(plan, warmups):
    made.points(plan)
    found = said(warmups())
    start = "gpu/warmup/{}/ctx128/fp32/"
    assert found[FIRST].numbers["most"].cells == (start.format("s") + "warmup=0",)
    assert found[CONTENTS].numbers["profiled"].cells == tuple(start.format(size) + "first=profiled" for size in "sm")
    assert found[ENOUGH].cells == tuple(start.format(size) + "warmup=1" for size in "sm")


@pytest.mark.parametrize("ratios, text", [
    ([1.12, 1.5], "12 to 50 % too high"), ([0.82, 0.88], "12 to 18 % too low"), ([1.03, 1.03], "3.0 % too high"),
    ([0.82, 1.03], "between 18 % too low and 3.0 % too high"),
])  # fmt: skip
def test_how_far_ratios_are_off_in_words(ratios, text):
    assert off(ratios) == text


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
    (opening,) = warmup_findings.opening(found)
    assert values(opening) == {"counts": [0]} and "in a process of its own" in opening.text
    found = said(found)
    assert list(found) == [COLD, ENOUGH, FIRST, PHASES]
    assert values(found[COLD])["least"] == pytest.approx(1610.5 / 350 - 1) and "most" not in values(found[COLD])
    assert values(found[ENOUGH]) == {"tried": 0}
    assert values(found[FIRST]) == {"least": pytest.approx(1285 / 35), "excess": pytest.approx([1250])}


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
    assert PHASES not in said(warmups())


def test_a_mean_may_be_too_low(plan, warmups):
    plan.cell("s", 1, steady=(8.0, 16.0, 4.0))
    plan.cell("s", 10)
    # 28 ms x 1.03 = 28.84 of 35.
    assert values(said(warmups())[ONE_OR_TWO]) == {"one": pytest.approx([28.84 / 35])}


def test_cells_without_a_result(plan, warmups):
    plan.cell("s", 0, status="oom")
    found = warmups()
    assert values(said(found)[LOST]) == {"oom": 1}
    (opening,) = warmup_findings.opening(found)
    assert opening.text == "No warm-up cell was measured."
    plan.cell("s", 1, status="unsupported", reason="no bf16 here")
    found = said(warmups())
    assert list(found) == [LOST] and values(found[LOST]) == {"oom": 1, "unsupported": 1}


def test_no_table_at_all(tmp_path):
    (found,) = warmup_findings.findings(Warmups(Tables(tmp_path, ["warmup"])))
    assert found.text == "No warm-up cell is in the tables."


def test_machines_and_settings_are_named(plan, warmups):
    made.points(plan, ("s",), (0, 10), hardware="a")
    made.points(plan, ("s",), (0, 10), hardware="b")
    made.points(plan, ("s",), (0, 10), hardware="b", precision="bf16")
    found = warmup_findings.findings(warmups())
    assert {each.hardware for each in found} == {"a", "b"}
    ends = [(each.hardware, each.text.rpartition(" (")[2]) for each in found if each.question == COLD]
    assert ends[1:] == [("b", "context 128, fp32, batch 4)."), ("b", "context 128, bf16, batch 4).")]
    assert "context" not in ends[0][1]


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
    found = runs(warmups())
    assert list(found["study"].unique()) == ["warmup"] and list(found["phase"]) == ["forward", "backward", "step"]
    forward = found.iloc[0]
    assert sorted(forward["medians"]) == pytest.approx([10, 11]) and forward["spread"] == pytest.approx(1 / 10.5)
    told = said(warmups())[RUNS]
    assert values(told) == pytest.approx({"spread": 1 / 35.5, "points": 1})
    assert sorted(told.cells) == [f"gpu/warmup/s/ctx128/fp32/warmup={count}" for count in (10, 5)]


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
    warmups = Warmups(Tables(folder, ["timing", "warmup"]))
    found = said(warmups)[RUNS]
    assert values(found) == pytest.approx({"spread": 0.2 / 10.1, "points": 2})
    assert "(s, context 512, fp32; timing study; 2 points)" in found.text and found.cells[:2] == ("s1", "s2")
    table = runs_table(runs(warmups))
    assert [cell.text for cell in table.rows[0]] == ["m", "512", "fp32", "timing", "2", "0.050"]
    assert runs(Warmups(Tables(folder, ["warmup"]))).empty


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
    told = said(found)
    assert values(told[UNSETTLED]) == {"differ_1": pytest.approx(0.5)} and told[UNSETTLED].text.startswith(
        "s (50 %) has"
    )
    assert values(told[COLD])["least"] == pytest.approx(2692 / 1400 - 1) and "most" not in values(told[COLD])
    assert values(told[ENOUGH]) == {"enough_1": 1} and told[ENOUGH].text.endswith("1 for m.")
    assert values(told[FIRST])["least"] == pytest.approx(1390 / 140)
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
    told = said(warmups())[UNSETTLED]
    # 350 against 35 ms, and against 140 ms: of medians of 192.5 and 245 ms.
    assert values(told) == pytest.approx({"differ_1": 315 / 192.5, "differ_2": 210 / 245})
    assert "have no sure steady state" in told.text


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
    found = said(Warmups(Tables(folder, ["timing", "warmup"])))[AGREES]
    # 17.5 of 35 ms, and 140 of 140 ms.
    assert values(found) == pytest.approx({"least": 0.5, "most": 1.0})
    assert found.numbers["least"].cells == ("s0", "s2") and found.numbers["most"].cells == ("m1",)


def test_what_takes_less_time_in_the_first_step_is_said(plan, warmups):
    waits = {"waiting for the device": 0.5}
    plan.cell("s", 0)
    plan.cell("s", 10)
    plan.cell("s", 10, profiled=True, parts=(made.IN_FIRST, made.IN_STEADY | waits))
    # 0.02 s instead of 0.5 s, of an excess of 1.360 - 0.520 = 0.840 s.
    less = values(said(warmups())[CONTENTS])["less_waiting_for_the_device"]
    assert less == pytest.approx(0.48 / 0.84, rel=1e-6)
