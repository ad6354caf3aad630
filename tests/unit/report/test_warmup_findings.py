"""Findings and ratios of the warm-up study, from round records whose answers are worked out by hand."""

import pandas as pd
import pytest
import synthetic_warmup as made
from stepscope.report.data.warmup import Warmups, by_step, part_excess, profiled_excess, set_up_excess
from stepscope.report.studies.warmup import findings as warmup_findings
from stepscope.report.studies.warmup.findings import off
from stepscope.report.studies.warmup.tables import verdicts_table
from stepscope.tables.reader import Tables

COLD = "what does a benchmark without warm-up get"
ONE_OR_TWO = "what do one and two warm-up steps leave"
ENOUGH = "how many warm-up steps are enough"
FIRST = "how long is the first step"
CONTENTS = "what does the first step spend it on"
PHASES = "which phase pays for the first step"
UNSETTLED = "what has no steady state"
PROCESSES = "how much do processes differ"
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
    assert list(found) == [COLD, ONE_OR_TWO, ENOUGH, FIRST, CONTENTS, PHASES, PROCESSES]
    cold = values(found[COLD])
    assert (cold["least"], cold["most"]) == pytest.approx((2692 / 1400 - 1, 1610.5 / 350 - 1))
    assert cold["std"] == pytest.approx([2.45, 1.46], abs=0.005) and cold["median_off"] == pytest.approx(0, abs=1e-9)
    # One warm-up step leaves 3 %; two leave 1 %, which is less than what counts as a difference.
    assert values(found[ONE_OR_TWO]) == {"one": pytest.approx([1.03] * 2)}
    assert "after 2 warm-up steps the mean is within what fresh processes differ by" in found[ONE_OR_TWO].text
    assert values(found[ENOUGH]) == {"enough_1": 1} and found[ENOUGH].text.endswith("1 for s and m (all 2 sizes).")
    first = values(found[FIRST])
    assert (first["least"], first["most"]) == pytest.approx((1390 / 140, 1285 / 35))
    assert first["excess"] == pytest.approx([1250] * 2)
    shares = {"module_loading": 780, "memory_allocation": 190, "matrix_products": 140, "other_api_calls": 90}
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
    assert set_up_excess(point.profiled) == pytest.approx(780 + 190 + 140 + 50 + 90)
    assert sum(part_excess(point.profiled, part) for part in made.PARTS) == pytest.approx(1360)
    assert point.excess("step") == pytest.approx(1250) and point.excess("forward") == pytest.approx(1000)


def test_a_single_process_is_compared_with_nothing(plan, warmups):
    plan.cell("s", 0)
    found = warmups()
    (opening,) = warmup_findings.opening(found)
    assert values(opening) == {"counts": [0]} and "in a process of its own" in opening.text
    (only,) = said(found).values()
    assert only.question == UNSETTLED and "of a single process" not in only.answer.split(",")[0]
    assert only.text.startswith("The steady state is not known well enough of s, of which a single process")


def test_one_size_of_two_processes(plan, warmups):
    plan.cell("s", 0)
    plan.cell("s", 10)
    found = said(warmups())
    assert list(found) == [COLD, ENOUGH, FIRST, PHASES, PROCESSES]
    assert values(found[COLD])["least"] == pytest.approx(1610.5 / 350 - 1) and "most" not in values(found[COLD])
    assert values(found[FIRST]) == {"least": pytest.approx(1285 / 35), "excess": pytest.approx([1250])}


def test_what_is_within_the_steady_states_interval_is_not_called_off(plan, warmups):
    # Two processes of 35 and 42 ms: ln 1.2 / √2 = 0.129 with one degree of freedom; t = 12.7 says nothing of 1.5 times.
    for count, factor in ((1, 1.5), (5, 1.0), (10, 1.2)):
        plan.cell("s", count, steady=tuple(factor * each for each in made.STEADY["s"]))
    found = said(warmups())
    assert found[ONE_OR_TWO].text == "After 1 warm-up step the mean is within what fresh processes differ by."
    assert not found[ONE_OR_TWO].numbers and ENOUGH not in found
    # ± half of 35·√1.2·(e^x − e^−x), x = 12.706 · 0.129 / √2 = 1.158
    assert values(found[UNSETTLED]) == {"width_1": pytest.approx(1.435, abs=0.002)}


def test_an_excess_of_all_sizes_is_said_where_processes_agree(plan, warmups):
    # Six processes of each size, 1 % apart in turn: t of ten degrees is 2.2, and 1.5 times is beyond.
    for size in ("s", "m"):
        plan.cell(size, 1, steady=tuple(1.5 * each for each in made.STEADY[size]))
        for at in range(6):
            plan.cell(size, 10 + at, steady=tuple((1 + 0.01 * (at % 2)) * each for each in made.STEADY[size]))
    told = said(warmups())[ONE_OR_TWO]
    # 1.5 · 1.03 over 1.01^(1/2)
    assert values(told) == {"one": pytest.approx([1.5 * 1.03 / 1.01**0.5] * 2)} and "(all 2 sizes)" in told.text


def test_enough_means_that_all_larger_numbers_are_close_too(plan, warmups):
    plan.cell("s", 0, first=(0.0, 0.0, 0.0), steady=(10.0, 20.0, 5.0))  # 1.03 of the steady state
    plan.cell("s", 1, steady=(12.0, 24.0, 6.0))  # another process that is slower throughout
    plan.cell("s", 5)
    plan.cell("s", 10)
    (point,) = warmups().settings[0].points
    assert point.steady("step") == pytest.approx(35)
    assert point.enough("step") == 5
    assert point.enough("forward") == 5


def test_no_size_is_dropped_silently(plan, warmups):
    for size in ("s", "m"):
        first = (1000.0, -15.0, 50.0) if size == "m" else made.FIRST
        for count in (0, 5, 10):
            plan.cell(size, count, first=first)
    plan.cell("l", 0, status="oom", shape=(256, 512, 2, 2), steady=(1.0, 1.0, 1.0))
    found = said(warmups())
    why = "(1 of 3 sizes; not m: its first backward was faster than a steady one; not l: no result)"
    assert found[PHASES].text.endswith(f"in the optimizer {why}.")
    assert values(found[PHASES]) == {"forward": [0.8], "backward": [0.16], "optimizer": [0.04]}
    assert found[FIRST].text.endswith("(2 of 3 sizes; not l: no result).")
    assert found[COLD].text.endswith("(2 of 3 sizes; not l: no result).")


def test_a_phase_that_was_faster_by_as_much_as_processes_differ_by_keeps_its_share(plan, warmups):
    plan.cell("s", 0, first=(1000.0, -0.1, 50.0))  # 0.5 % of 20 ms
    plan.cell("s", 10)
    assert values(said(warmups())[PHASES])["backward"] == pytest.approx([-0.1 / 1049.9])


def test_a_mean_may_be_too_low(plan, warmups):
    plan.cell("s", 1, steady=(8.0, 16.0, 4.0))
    plan.cell("s", 5)
    plan.cell("s", 10)
    # 28 ms x 1.03 = 28.84 of 35.
    told = said(warmups())[ONE_OR_TWO]
    assert values(told) == {"one": pytest.approx([28.84 / 35])} and "18 % too low" in told.text


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


def test_what_processes_differ_by_in_each_class(plan, warmups):
    for size, launched in (("s", 0.97), ("m", 0.4)):
        for count, factor in ((5, 1.0), (10, 1.1 if size == "s" else 1.0)):
            plan.cell(size, count, launched=launched, steady=tuple(factor * each for each in made.STEADY[size]))
    told = said(warmups())[PROCESSES]
    assert values(told) == {"spread_1": pytest.approx(0.0953102 / 2**0.5), "spread_2": pytest.approx(0, abs=1e-12)}
    assert "6.7 % (1 point that launches limit, 2 processes)" in told.text
    assert "(1 point that the GPU limits, 2 processes)" in told.text


def test_a_size_whose_processes_disagree_is_no_part_of_what_processes_differ_by(plan, warmups):
    sizes = {"s": 1.01, "m": 0.99, "l": 1.01, "xl": 2.0}  # the second process over the first
    for size, factor in sizes.items():
        for count in (5, 10):
            steady = tuple((factor if count == 10 else 1.0) * each for each in made.STEADY["s"])
            plan.cell(size, count, launched=0.4, steady=steady, shape=made.SHAPES["s"])
    told = said(warmups())
    # Two processes' standard deviation is the difference of their logarithms over the root of 2: near 0.01 / 1.414.
    assert values(told[PROCESSES]) == {"spread_1": pytest.approx(0.01 / 2**0.5, rel=0.01)}
    assert "0.71 % (3 points that the GPU limits, 6 processes). Left out" in told[PROCESSES].text
    assert told[PROCESSES].text.endswith("differ by more than chance allows: xl (fp32).")
    assert told[UNSETTLED].text.startswith("The steady state is not known well enough of xl, whose two processes")


def test_a_size_whose_steady_state_is_unsure_has_no_number_of_warm_up_steps(plan, warmups):
    for size, other in (("m", 1.0), ("s", 1.7)):
        for count in (0, 1, 2, 5, 10):
            factor = other if count == 5 else 1.0
            launched = {"m": 0.4, "s": 0.97}[size]
            plan.cell(size, count, launched=launched, steady=tuple(factor * each for each in made.STEADY[size]))
    found = warmups()
    told = said(found)
    assert told[ENOUGH].text.endswith("1 for m (1 of 2 sizes; not s: steady state not known well enough).")
    assert told[UNSETTLED].text.startswith("The steady state is not known well enough of s (over ± 100 %)")
    table = verdicts_table(found, found.settings[0])
    rows = {row[0].text: [cell.text for cell in row[-4:]] for row in table.rows}
    assert rows["m"] == ["1", "1", "1", "1"] and rows["s"][-1].startswith("(")
    assert table.notes[1] == "In brackets: s, of which the steady state has no interval within ± 5 %."


def test_parts_that_are_no_parts_of_the_whole_give_no_shares(plan, warmups):
    waits = {"waiting for the device": 0.5}
    plan.cell("s", 0)
    plan.cell("s", 10)
    plan.cell("s", 10, profiled=True, parts=(made.IN_FIRST, made.IN_STEADY | waits))
    # Waiting takes 0.02 s instead of 0.5 s, of an excess of 1.360 - 0.520 = 0.840 s: set-up would be 149 % of it.
    told = said(warmups())[CONTENTS]
    assert not told.numbers and told.text == (
        "The profiles give no shares of what the first step takes longer (less time went to waiting for the device in "
        "the first step)."
    )


def test_set_up_that_takes_longer_than_the_unprofiled_excess_is_no_share_of_it(plan, warmups):
    first = (200.0, 50.0, 50.0)  # 300 ms without a profiler, beside 1,250 ms of set-up in 1,360 ms with one
    for count in (0, 5, 10):
        plan.cell("s", count, first=first)
        plan.cell("m", count)
    for size in ("s", "m"):
        plan.cell(size, 10, profiled=True)
    told = said(warmups())[CONTENTS]
    assert values(told)["profiled"] == pytest.approx([1250 / 1360] * 2)
    assert values(told)["unprofiled"] == pytest.approx([1.0])
    why = "(1 of 2 sizes; not s: under the profiler it takes longer than the whole excess without)"
    assert f"of the unprofiled excess {why}" in told.text and "417" not in told.text


def test_the_set_up_of_an_older_record(plan, warmups):
    older = {"module loading": 0.8, "compilation and autotuning": 0.2, "Python and the rest": 0.4}
    steady = dict.fromkeys(older, 0.1)
    for count in (0, 5, 10):
        plan.cell("s", count)
    plan.cell("s", 10, profiled=True, parts=(older, steady))
    told = values(said(warmups())[CONTENTS])  # an excess of 1.1 s
    assert told["matrix_products"] == pytest.approx([0.1 / 1.1]) and told["profiled"] == pytest.approx([0.8 / 1.1])
