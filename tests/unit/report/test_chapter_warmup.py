"""The chapter warm-up: every number against one worked out by hand from synthetic_warmup, and its budgets."""

import json
import statistics
from dataclasses import replace

import page_one_maker
import pandas as pd
import pytest
import synthetic_ladder
import synthetic_warmup as made
from chapter_checks import example
from stepscope.report.chapters.warmup import chapter, first_step, first_steps_table, later_steps
from stepscope.report.data.ladder import ladders
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.warmup import Setting, SizeRuns, Warmups
from stepscope.report.data.warmup_process import Process, chance_of_at_least, main_setting, processes
from stepscope.report.kit.chapter import MOST_PICTURES, MOST_ROWS, MOST_TABLES, MOST_TAKEAWAY_WORDS, fitted, words
from stepscope.report.kit.compare import Floors
from stepscope.tables.reader import Tables

PHASES = ("forward", "backward", "optimizer")
# The ten steps of size s without warm-up: 1,250 ms more in the first, a fifth more in the second, a tenth in the third.
COLD = [1285.0, 42.0, 38.5, *[35.0] * 7]


def values(finding) -> dict:
    return {name: number.value for name, number in finding.numbers.items()}


def setting_of(folder, plan=None) -> tuple[Warmups, Setting]:
    plan = plan or made.points(made.Plan(folder / "cells"))
    warmups = Warmups(Tables(plan.write(folder / "tables"), page_one_maker.STUDIES))
    return warmups, main_setting(warmups, "gpu")


def by_size(warmups, setting) -> dict[str, list[Process]]:
    return {point.size: processes(warmups, point) for point in setting.measured}


def process(*steps, size="s", warmup=0, lates=5, late=(10.0, 20.0, 5.0)) -> Process:
    """The first steps, (forward, backward, optimizer) in ms each, plain ones up to the fifth, then the late ones."""
    rows = [*steps, *[late] * (5 - len(steps) + lates)]
    times = pd.DataFrame(rows, columns=list(PHASES), dtype=float)
    return Process(size, f"gpu/{size}/{warmup}", warmup, times.assign(step=times.sum(axis=1)))


# A process by itself --------------------------------------------------------------------------------------------------


def test_a_process_beside_its_late_steps(tmp_path):
    warmups, setting = setting_of(tmp_path)
    own = by_size(warmups, setting)["s"]
    assert [(each.warmup, each.lates) for each in own] == [(0, 5), (1, 6), (2, 7), (5, 10), (10, 15)]
    for each in own:
        assert each.late() == pytest.approx(35) and each.ratio(0) == pytest.approx(1285 / 35)
        assert each.excess(0, "optimizer") == pytest.approx(50) and each.excess(1) == pytest.approx(7)
        assert each.is_above_late_ones(1) and not each.is_above_late_ones(6)


def test_a_process_with_too_few_late_steps_tells_nothing(tmp_path):
    plan = made.Plan(tmp_path / "cells")
    plan.cell(warmup=0, steps=7)
    plan.cell(warmup=1, steps=7)
    warmups, setting = setting_of(tmp_path, plan)
    assert [each.warmup for each in processes(warmups, setting.points[0])] == [1]  # 2 and 3 late ones


def test_chances_of_independent_events():
    assert [chance_of_at_least(count, [0.5, 0.5]) for count in (0, 1, 2, 3)] == [1.0, 0.75, 0.25, 0]
    assert chance_of_at_least(1, [0.1, 0.2]) == pytest.approx(1 - 0.9 * 0.8)


def test_the_setting_with_most_sizes_is_spoken_of(tmp_path):
    plan = made.Plan(tmp_path / "cells")
    plan.cell("s", 0, context=64)
    made.points(plan)
    _, setting = setting_of(tmp_path, plan)
    assert setting.context == 128 and len(setting.measured) == 2


# The first step -------------------------------------------------------------------------------------------------------


def test_the_first_step_over_late_ones(tmp_path):
    """s: 1,285 of 35 ms; m: 1,390 of 140 ms."""
    found = first_step.ratios(by_size(*setting_of(tmp_path)), "gpu", "fp32")
    assert values(found) == {"small": pytest.approx([1285 / 35] * 5), "large": pytest.approx([1390 / 140] * 5)}
    assert (
        "36.7 times as long as late ones in s and 9.93 in m" in found.text
        and "(fp32; 5 processes a size)" in found.text
    )
    one = first_step.ratios({"s": [process((20, 40, 10))]}, "gpu", "fp32")
    assert values(one) == {"small": [2.0]} and "(fp32; 1 process)" in one.text
    assert first_step.ratios({}, "gpu", "fp32") is None


def test_what_a_profile_puts_it_down_to(tmp_path):
    """Of 1,360 ms: module loading 780, allocation 190, matrix products 140, other API calls 90."""
    _, setting = setting_of(tmp_path)
    found = first_step.contents(setting)
    assert values(found) == {
        "module_loading": pytest.approx(780 / 1360),
        "memory_allocation": pytest.approx(190 / 1360),
        "matrix_products": pytest.approx(140 / 1360),
        "other_api_calls": pytest.approx(90 / 1360),
    }
    assert found.text.startswith(
        "In m the profile puts what the first step takes longer down to module loading (57 %), at each kernel's first "
        "launch"
    )


def test_a_profile_that_is_no_sum_of_parts(tmp_path):
    first = made.IN_FIRST | {"waiting for the device": 0.0}
    steady = made.IN_STEADY | {"waiting for the device": 0.2}
    plan = made.points(made.Plan(tmp_path / "cells"), profiled=False)
    plan.cell("s", 10, profiled=True, parts=(first, steady))
    _, setting = setting_of(tmp_path, plan)
    assert first_step.contents(setting).text.startswith("No profile of a first step splits")
    _, without = setting_of(tmp_path / "none", made.points(made.Plan(tmp_path / "none/cells"), profiled=False))
    assert first_step.contents(without) is None


def profiled(*events) -> Setting:
    names = ("name", "part", "calls_first", "calls_steady", "first_seconds", "steady_seconds")
    text = json.dumps([dict(zip(names, event, strict=True)) for event in events])
    point = SizeRuns("s", 1e6, (), {"cell": "c", "largest": text}, Floors())
    return Setting("gpu", 128, "fp32", 4, "", 1, (point,))


@pytest.mark.parametrize(
    ("calls", "first", "is_told"),
    [(105, 0.0030, True), (106, 0.0030, False), (99, 0.0030, False), (100, 0.0021, True), (100, 0.0019, False)],
)
def test_as_many_calls_that_take_longer(calls, first, is_told):
    """A steady step has 100 of them, which take 1 ms; in the first they must take 1 ms longer to be named."""
    found = first_step.first_use(profiled(("aten::mm", "matrix products", calls, 100, first, 0.001)))
    assert bool(found) is is_told
    if found:
        assert values(found) == {"calls": calls, "first": pytest.approx(1e3 * first), "steady": 1.0}


def test_calls_of_the_first_step_alone():
    setting = profiled(("cudaMalloc", "memory allocation", 700, 0, 0.1, 0.0), ("x", "operators", 3, 0, 0.01, 0.0))
    found = first_step.first_use(setting)
    assert found.text == (
        "cudaMalloc is called 700 times in the first step, never in a steady one: the allocator keeps its memory."
    )
    other = first_step.first_use(profiled(("x", "operators", 3, 0, 0.01, 0.0)))
    assert "allocator" not in other.text and first_step.first_use(profiled()) is None


@pytest.mark.parametrize(("forward", "cause"), [(51, True), (49, False)])
def test_which_phase_pays(forward, cause):
    """100 ms more, of which backward has what forward and 1 ms of the optimizer leave."""
    own = [process((10 + forward, 20 + 99 - forward, 6)), process((10, 30, 5))]
    found = first_step.phases({"s": own}, "gpu")
    name = "forward" if cause else "backward"
    assert values(found) == {"most": [pytest.approx(51 if cause else 50)]} and f"in {name} (1 of 2" in found.text
    assert bool(found.cause) is cause
    assert first_step.phases({"s": own[1:]}, "gpu") is None


def test_the_optimizer_creates_its_state(tmp_path):
    """m has 780,928 parameters: 2 · 128 · 1000 + 2 · (4 · 128² + 3 · 128 · 512 + 2 · 128) + 128."""
    warmups, setting = setting_of(tmp_path)
    found = first_step.optimizer_state(by_size(warmups, setting), setting.measured, "gpu")
    assert values(found) == {"excess": pytest.approx([50] * 5), "state": 8 * 780_928}
    faster = {"m": [process((20, 40, 4), size="m"), process((20, 40, 10), size="m")]}
    assert first_step.optimizer_state(faster, setting.measured, "gpu") is None


def test_the_mean_without_warmup(tmp_path):
    of_m, found = first_step.means(by_size(*setting_of(tmp_path)), "gpu")
    assert "In m the mean" in of_m.text
    assert values(found) == {
        "off": pytest.approx(sum(COLD) / 350 - 1),
        "std": pytest.approx(statistics.stdev(COLD) / (sum(COLD) / 10)),
        "alone": pytest.approx(1250 / 350),
        "median": pytest.approx(0, abs=1e-12),
    }


def test_a_mean_that_is_not_above_the_late_steps():
    (found,) = first_step.means({"s": [process((5, 20, 5))]}, "gpu")
    assert "below the late ones" in found.text and not found.cause
    assert first_step.means({"s": [process((20, 40, 5), warmup=1)]}, "gpu") == ()
    assert first_step.means({}, "gpu") == ()


def test_what_launches_limit_on_a_slow_host_is_no_example_of_a_mean():
    """Of three sizes the smallest is slowed by its host; the next one's host was slow too, but the GPU limits it."""
    limits = {"s": "launches", "m": "gpu", "l": "gpu"}
    own = {name: replace(process((20, 40, 5), size=name), slow_host=name != "l", limited_by=by)
           for name, by in limits.items()}  # fmt: skip
    found = first_step.means({name: [each] for name, each in own.items()}, "gpu")
    assert [each.text.split()[1] for each in found] == ["l", "m"]
    cells = [row[-1] for row in first_steps_table({name: [each] for name, each in own.items()}, "").rows]
    assert [each.badges for each in cells] == [("slow_host",), ("slow_host",), ()]


def test_the_table_of_first_steps(tmp_path):
    table = first_steps_table(by_size(*setting_of(tmp_path)), "context 128")
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["s", "5", "1,285", "42.0", "35.0", "4.60"],  # 161.05 / 35
        ["m", "5", "1,390", "168", "140", "1.92"],  # (1,390 + 168 + 154 + 7 · 140) / 1,400
    ]
    assert first_steps_table({}, "") is None


# Later steps ----------------------------------------------------------------------------------------------------------


def test_the_second_step_is_still_slow(tmp_path):
    """In both sizes 1 / 6 + 1 / 7 + 1 / 8 + 1 / 11 + 1 / 16 by chance; 4 of 7 parts of the excess are backward's."""
    found = later_steps.second_step(by_size(*setting_of(tmp_path)), "gpu")
    chance = 2 * (1 / 6 + 1 / 7 + 1 / 8 + 1 / 11 + 1 / 16)
    assert values(found) == {"above": 10, "chance": pytest.approx(chance), "share": pytest.approx([400 / 7] * 2)}
    assert "10 of 10 processes of s and m" in found.text
    assert "57 % of what it takes longer is in backward" in found.text


def test_the_second_step_is_judged_size_by_size():
    """In each size 5 processes of 5 late steps: 4 or more of 5 by chance with probability 5 (1/6)^4 (5/6) + (1/6)^5 =
    0.0033, 1 or more with 0.6; together 5 of 10, by chance with 0.015. In s 6 ms more are forward's, 2 backward's."""
    slow, plain = process((20, 40, 10), (16, 22, 5)), process((20, 40, 10))
    by = {"s": [slow] * 4 + [plain], "m": [slow] + [plain] * 4}
    found = later_steps.second_step(by, "gpu")
    assert values(found) == {"above": 4, "chance": pytest.approx(5 / 6), "share": [75.0]}
    assert "in 4 of 5 processes of s;" in found.text and "still slow there: 75 % of" in found.text
    none = later_steps.second_step({"s": by["m"], "m": by["m"]}, "gpu")
    assert values(none) == {"above": 2, "chance": pytest.approx(10 / 6)} and "In no size" in none.text


@pytest.mark.parametrize(("lates", "is_slow"), [(19, True), (18, False)])
def test_what_chance_may_explain_is_not_called_slow(lates, is_slow):
    """One process: 1 / 20 is the level itself, 1 / 19 above it."""
    found = later_steps.second_step({"s": [process((20, 40, 10), (11, 20, 5), lates=lates)]}, "gpu")
    assert ("still slow" in found.cause) is is_slow and ("In no size" in found.cause) is not is_slow
    assert later_steps.second_step({}, "gpu") is None


def test_how_far_the_second_step_is_off(tmp_path):
    found = later_steps.scatter(by_size(*setting_of(tmp_path)), "gpu")
    assert values(found) == {"small": pytest.approx([1.2] * 5), "large": pytest.approx([1.2] * 5)}
    assert found.text.startswith("The second step takes 1.20 times as long as the late steps of its process in s")
    assert later_steps.scatter({"s": [process((20, 40, 10))]}, "gpu") is None


@pytest.mark.parametrize(("after", "word"), [(1.2, "more than fresh"), (1.1, "no more than")])
def test_what_one_and_two_warmup_steps_leave(tmp_path, monkeypatch, after, word):
    """Ten steps of which the first takes 1.2 and the second 1.1 times as long: 3 % too much, beyond 2 %; with one of
    1.1 alone 1 %, within that."""
    monkeypatch.setattr(made, "AFTER", {1: after, 2: 1.1} if after == 1.2 else {1: after})
    _, setting = setting_of(tmp_path, made.points(made.Plan(tmp_path / "cells"), noise=1e-4))
    found = later_steps.after_one_or_two(setting, first_step.biggest(setting.points))
    off = {1.2: (0.03, 0.01), 1.1: (0.01, 0.0)}[after]
    assert values(found) == {"after_1": pytest.approx(off[0], abs=1e-3), "after_2": pytest.approx(off[1], abs=1e-3)}
    assert word in found.text and "after 2 warm-up steps" in found.text


def test_one_process_tells_nothing_of_others(tmp_path):
    plan = made.Plan(tmp_path / "cells")
    plan.cell(warmup=1)
    _, setting = setting_of(tmp_path, plan)
    assert later_steps.after_one_or_two(setting, first_step.biggest(setting.points)) is None
    assert later_steps.enough(setting) is None and later_steps.after_one_or_two(setting, None) is None


def test_how_many_warmup_steps_are_enough(tmp_path):
    """Means over the steady state: 4.60, 1.03, 1.01, 1, 1 in s, 1.92, 1.03 … in m; within 5 % from 1 on."""
    _, setting = setting_of(tmp_path, made.points(made.Plan(tmp_path / "cells"), noise=1e-4))
    found = later_steps.enough(setting)
    assert values(found) == {"count": 1} and found.text.endswith("(s and m).")


def test_a_steady_state_that_is_not_known_well_enough(tmp_path):
    plan = made.Plan(tmp_path / "cells")
    for count, steady in ((5, (10.0, 20.0, 5.0)), (10, (15.0, 30.0, 7.5))):
        plan.cell(warmup=count, steady=steady)
    _, setting = setting_of(tmp_path, plan)
    found = later_steps.enough(setting)
    assert "not known" in found.text and "more processes" in found.advice and values(found)["width"] > 0.05
    assert found.answer.endswith("only (s).")


def test_the_spread_of_sizes_that_is_taken_together_is_no_sizes_own(tmp_path):
    plan = made.Plan(tmp_path / "cells")
    for size, scale in (("s", 1.0), ("m", 4.0)):
        for count, slower in ((5, 1.0), (10, 1.5)):
            plan.cell(size, count, steady=tuple(scale * slower * phase for phase in (10.0, 20.0, 5.0)))
    _, setting = setting_of(tmp_path, plan)
    assert "(in each of 2 sizes, whose spread is taken together)" in later_steps.enough(setting).text


def compiled(folder, block: float, **more):
    steps = [("bf16", synthetic_ladder.TRITON, 15.0, None), ("bf16", synthetic_ladder.BLOCK, block, 21.5)]
    cells = [synthetic_ladder.cell("small", 128, name, options, step=step, compile_seconds=seconds, **more)
             for name, options, step, seconds in steps]  # fmt: skip
    synthetic_ladder.write(folder, cells)
    return later_steps.compiling(ladders(Tables(folder, ["ladder", "timing"])))


def test_compiling_takes_what_it_took_first(tmp_path):
    """Later cells find kernels in the cache; what the whole model took first is no time of blocks."""
    cells = [synthetic_ladder.cell("small", 128, "bf16", synthetic_ladder.TRITON, step=15.0)]
    cells += [synthetic_ladder.cell("small", 128, "bf16", own, step=10.0, compile_seconds=seconds)
              for own, seconds in ((synthetic_ladder.BLOCK, 3.0), (synthetic_ladder.GRAPHS, 8.0))]  # fmt: skip
    cells[1].record["provenance"]["started"] = "2025-03-01T10:00:01+00:00"
    synthetic_ladder.write(tmp_path, cells)
    tables = Tables(tmp_path, ["ladder", "timing"])
    assert values(later_steps.compiling(ladders(tables))) == {"seconds": [8.0], "steps": [pytest.approx(1600)]}
    whole = synthetic_ladder.whole()
    whole.record["provenance"]["started"] = "2025-03-01T09:00:00+00:00"
    synthetic_ladder.write(tmp_path, [*cells, whole])
    assert later_steps.compiling(ladders(Tables(tmp_path, ["ladder", "timing"]))) is None


@pytest.mark.parametrize(("block", "is_saved"), [(10.0, True), (15.0, False), (20.0, False)])
def test_what_compiling_adds_and_when_it_is_saved(tmp_path, block, is_saved):
    """21.5 s at 5 ms a step: 4,300 steps."""
    found = compiled(tmp_path, block)
    assert values(found) == {"seconds": [21.5], **({"steps": [pytest.approx(4300)]} if is_saved else {})}
    assert "(small at 128)" in found.text and "no verdict" not in found.text
    assert ("No step is sure to gain" in found.text) is not is_saved


def test_a_single_process_gives_no_verdict_on_compiling(tmp_path):
    assert "no verdict" in compiled(tmp_path, 10.0, processes=1).text
    assert later_steps.compiling([]) is None


# The whole ------------------------------------------------------------------------------------------------------------


def _keeps_budgets(one):
    shown = [each for part in one.parts for each in part.shows]
    tables = [each for each in shown if hasattr(each, "rows")]
    assert words(" ".join(each.text for each in one.takeaway)) <= MOST_TAKEAWAY_WORDS and one.words <= 450
    assert len(tables) <= MOST_TABLES and all(len(each.rows) <= MOST_ROWS for each in tables)
    assert len(shown) - len(tables) <= MOST_PICTURES
    assert all("{" not in each.text for each in one.findings)


def test_budgets_of_the_example_and_that_nothing_falls_off():
    whole = chapter(example())
    _keeps_budgets(whole)
    assert fitted(whole) == whole


def test_budgets_of_two_machines(tmp_path):
    tables = made.believable(made.Plan(tmp_path / "cells")).write(tmp_path / "tables")
    _keeps_budgets(chapter(Machine(Tables(tables, page_one_maker.STUDIES))))


def test_a_ladder_alone_tells_of_compiling(tmp_path):
    compiled(tmp_path, 10.0)
    one = chapter(Machine(Tables(tmp_path, page_one_maker.STUDIES)))
    assert [part.question for part in one.parts] == ["What does compiling add?"]


def test_no_chapter_without_tables(tmp_path):
    assert chapter(Machine(Tables(tmp_path, page_one_maker.STUDIES))) is None
