"""The chapter on changes, against numbers worked out from synthetic_ladder.STEPS: ms of a step 40, 25, 20, 16, 15, 10,
5 and 4, of which the optimizer takes 4 and at last 1 (5 % more where phases are synchronised)."""

import page_one_maker as made
import pytest
import synthetic_ladder as ladder
import synthetic_profile
from chapter_checks import check, example, told, values
from stepscope.report.chapters.changes import chapter, climb, places
from stepscope.report.chapters.changes.climb import FAR, UNLIKE
from stepscope.report.data.spotlight import Machine
from stepscope.report.kit.chapter import fitted
from stepscope.tables.reader import Tables

GIB = ladder.GIB
COPY = synthetic_profile.ceilings(tflops=50.0, gb_per_s=3000.0)
SMALL = 128_625_408  # parameters
FITS, SAVES = "what fits without checkpointing", "what does checkpointing save and cost"


def machine(folder, rungs, timing=(), ceilings=(), cells=(), change=None) -> Machine:
    return Machine(made.write(folder, cells, timing, ceilings, rungs, change))


def found(folder, rungs, **more) -> dict:
    own = chapter(machine(folder, rungs, **more))
    check(own)
    return told(own)


def steps(**changed) -> list[tuple]:
    """STEPS with other ms of a step: `at_6=9.0`."""
    return [
        (name, options, changed.get(f"at_{at}", step), *rest)
        for at, (name, options, step, *rest) in enumerate(ladder.STEPS)
    ]


def alone(size="small", context=128, own=ladder.STEPS, **more) -> list:
    """A ladder that a single process measured."""
    return [
        ladder.cell(size, context, precision, options, step, optimizer, peak=GIB, kernels=kernels, launches=launches,
                    compile_seconds=seconds, processes=1, **more)
        for precision, options, step, optimizer, kernels, launches, seconds in own
    ]  # fmt: skip


# Where, and how much --------------------------------------------------------------------------------------------------


def test_the_places_are_the_largest_ladder_and_the_largest_that_was_profiled(tmp_path):
    rungs = [*ladder.chain("small", 128), *ladder.chain("medium", 128), *ladder.chain("2.7B", 128)]
    cell = synthetic_profile.cell() | {"size": "small"}
    profiled = machine(tmp_path / "both", rungs, timing=[made.timed(cell, 40.0)], cells=[cell])
    assert [one.size for one in places(profiled)] == ["2.7B", "small"]
    assert [one.size for one in places(machine(tmp_path / "ladders", rungs))] == ["2.7B", "medium"]


def test_the_whole_ladder_is_the_takeaway(tmp_path):
    whole = found(tmp_path, ladder.chain())["what does the ladder bring to small at 128"]
    assert values(whole) == pytest.approx({"start": 40, "top": 4, "gain": 10}) and "faster" in whole.text


def test_where_the_first_rung_does_not_fit_the_first_that_does_is_told(tmp_path):
    rungs = ladder.chain()
    rungs[:3] = [ladder.without_step(each, both=at < 2) for at, each in enumerate(rungs[:3])]
    whole = found(tmp_path, rungs)["what does the ladder bring to small at 128"]
    assert values(whole) == pytest.approx({"fits": 16, "top": 4}) and "SDPA is the first rung that fits" in whole.text


def test_the_greatest_change_is_named_with_its_place_and_those_that_bring_nothing(tmp_path):
    own = found(tmp_path, ladder.chain(steps=steps(at_4=16.1)))["which change brings most in small at 128"]
    assert values(own) == pytest.approx({"gain": 2.0, "poor_0": 16 / 16.1})
    assert (
        "In small at 128 most comes from CUDA graphs: × 2.00" in own.verdict
        and "over blocks compiled" in own.verdict
        and "Use CUDA graphs." in own.reasons
    )
    assert "No sure gain comes from Triton attention (× 0.99" in own.reasons


@pytest.mark.parametrize(
    ("bf16", "first", "advice"), [(14.0, "TF32 (later bf16)", "Use bf16."), (16.0, "TF32", "Use TF32.")]
)
def test_what_a_later_rung_replaces_is_not_advised(bf16, first, advice, tmp_path):
    """TF32 makes 40 ms 16; bf16 stands in its place."""
    own = found(tmp_path, ladder.chain(steps=steps(at_1=16.0, at_2=bf16, at_3=13.0, at_4=12.0)))
    own = own["which change brings most in small at 128"]
    assert f"most comes from {first}: × 2.50" in own.verdict and own.advice == advice


def test_a_larger_gain_that_is_not_sure_hides_none_that_is(tmp_path, monkeypatch):
    # of 40/25, 25/20, 20/16, 16/15, 15/10, 10/5 and 5/4 those below 1.55 are sure
    monkeypatch.setattr(climb, "is_sure", lambda speed: speed.ratio < 1.55)
    own = found(tmp_path, ladder.chain())["which change brings most in small at 128"]
    assert values(own) == pytest.approx({"gain": 1.5, "poor_0": 40 / 25, "poor_1": 2.0})
    assert "In small at 128 most comes for sure from blocks compiled: × 1.50" in own.verdict
    assert "No sure gain comes from TF32 (× 1.60" in own.reasons and "Use blocks compiled." in own.reasons


def test_ratios_of_a_single_process_have_no_verdict(tmp_path):
    own = found(tmp_path, alone())
    assert "Try CUDA graphs." in own["which change brings most in small at 128"].reasons
    text = " ".join(each.text for each in own.values())
    assert "faster" not in text and "slower" not in text
    assert values(own["what has no verdict"]) == {"cells": 8}
    assert "what has no verdict" not in found(tmp_path / "three", ladder.chain())


def test_where_nothing_is_gained_nothing_brings_most(tmp_path):
    own = found(tmp_path, alone(own=steps(**{f"at_{at}": 40.0 + at for at in range(8)})))
    assert values(own["which change brings most in small at 128"]) == {"changes": 7}
    assert (
        "no rung takes less time than fp32, naive (40.0 ms)" in own["what does the ladder bring to small at 128"].text
    )


def test_a_ladder_of_which_only_the_first_rung_ran_compares_nothing(tmp_path):
    first, *others = alone()
    own = found(
        tmp_path, [first, *(ladder.without_step(each, "unsupported", "no kernel", both=True) for each in others)]
    )
    told_of = own["what does the ladder bring to small at 128"].text
    assert told_of == "In small at 128 fp32, naive takes 40.0 ms; no other rung could be measured."


@pytest.mark.parametrize(("factor", "is_told"), [(0.99 / UNLIKE, True), (1.01 / UNLIKE, False)])
def test_a_change_that_depends_on_the_place_is_told(factor, is_told, tmp_path):
    # Graphs make 10 ms 5 in small; in medium, whose steps take three times as long, they gain `factor` of that.
    medium = [(name, options, 3 * step, *rest) for name, options, step, *rest in ladder.STEPS]
    medium[6] = (*medium[6][:2], 15.0 / factor, *medium[6][3:])
    medium[7] = (*medium[7][:2], 12.0 / factor, *medium[7][3:])
    rungs = [*ladder.chain(), *ladder.chain("medium", steps=medium)]
    own = found(tmp_path, rungs).get("which change depends on the place")
    assert (own is not None) == is_told
    if own:  # 1,800 launches in 30 and in 10 ms
        expected = {"gain": 2 * factor, "other": 2.0, "span": 30e3 / 1800, "other_span": 10e3 / 1800}
        assert values(own) == pytest.approx(expected) and "long steps hide launches" in own.cause


# Predictions ----------------------------------------------------------------------------------------------------------


def test_the_fused_optimizer_stands_beside_what_its_bytes_take(tmp_path):
    least = 28 * SMALL / 3000e9 * 1e3  # 1.2005 ms
    own = found(tmp_path, ladder.chain(), ceilings=COPY)["what does the fused optimizer bring"]
    expected = {"predicted": 5 / (5 - 4.2 + least), "gain": 1.25, "before": 4.2, "after": 1.05, "least": least}
    assert values(own) == pytest.approx(expected)
    assert "what does the fused optimizer bring" not in found(tmp_path / "none", ladder.chain())


def test_a_rungs_prediction_is_that_of_the_profiled_step_of_its_place(tmp_path):
    # Busy for 12 of 20 ms: products 8, attention beside them 0.95, other kernels 1.05.
    cells = [synthetic_profile.cell(name) | {"size": "small"} for name in ("fp32", "tf32", "bf16")]
    rates = [each for name, rate in (("fp32", 50.0), ("tf32", 100.0), ("bf16", 400.0))
             for each in synthetic_profile.ceilings(tflops=rate, gb_per_s=1.0, precision=name)]  # fmt: skip
    timing = [made.timed(cell, 20.0) for cell in cells]
    own = chapter(machine(tmp_path, ladder.chain(), timing, rates, cells))
    table = next(each for each in own.parts[0].shows if each.name.startswith("chapter-changes"))
    at = [(column.group, column.label) for column in table.columns].index(("times as fast", "predicted"))
    predicted = {row[0].text: row[at].sort for row in table.rows if row[at].sort}
    expected = {"TF32": 20 / 16, "bf16": 20 / 14, "SDPA": 20 / 19.05, "blocks compiled": 20 / 18.95}
    assert predicted == pytest.approx(expected)  # at 1 GB/s the bytes of AdamW take longer than AdamW took


@pytest.mark.parametrize(("measured", "is_told"), [(0.99, False), (1.01, True)])
def test_a_prediction_that_fails_is_told(measured, is_told, tmp_path):
    least = 28 * SMALL / 3000e9 * 1e3
    predicted = 5 / (5 - 4.2 + least)
    own = found(tmp_path, ladder.chain(steps=steps(at_7=5 * FAR * measured / predicted)), ceilings=COPY)
    assert ("which prediction fails" in own) == is_told


def test_a_prediction_within_the_measured_interval_does_not_fail(tmp_path):
    rungs = ladder.chain()
    wide = [each for at, name in enumerate(ladder.STEPS) for each in [_scattered(at, name)] if at > 5]
    own = found(tmp_path, [*rungs[:6], *wide], ceilings=COPY)
    assert "which prediction fails" not in own and "what does the fused optimizer bring" in own


def _scattered(at, own):
    """The rung, whose processes differ by more than its gain."""
    precision, options, step, optimizer, kernels, launches, seconds = own
    return ladder.cell("small", 128, precision, options, step, optimizer, peak=GIB, kernels=kernels, launches=launches,
                       compile_seconds=seconds, scatter=1.0)  # fmt: skip


# Checkpointing --------------------------------------------------------------------------------------------------------


def checkpointed(step=60.0, k=1, peak=2 * GIB):
    """Checkpoints over the rung that nothing is fused in."""
    return ladder.cell("small", 128, "bf16", {"checkpoint": k}, step, 4.0, peak=peak, kernels=1, launches=1)


def without_plain_step() -> list:
    """The chain, of which no rung before SDPA fits; its peaks fall from 4 GiB by a tenth from rung to rung."""
    rungs = ladder.chain()
    return [*(ladder.without_step(each) for each in rungs[:3]), *rungs[3:]]


def test_checkpoints_are_told_beside_the_first_rung_that_fits_without(tmp_path):
    own = found(tmp_path, [*without_plain_step(), checkpointed()])
    saves, fits = own[SAVES], own[FITS]
    # Forward and backward take 16 ms without and 56 with; the phased forward pass of the latter 1.05 x 56 / 4.
    assert values(saves)["before"] == pytest.approx(16) and values(saves)["after"] == pytest.approx(56)
    assert values(saves)["predicted"] == pytest.approx(16 + 14.7) and "runs out of memory" in saves.text
    expected = {"peak": 4 * GIB * 0.9**3, "gain": 60 / 16, "step": 16.0, "slow": 60.0}
    assert {name: values(fits)[name] for name in expected} == pytest.approx(expected)
    # The scores and their softmax: 12 blocks keep 4 x 12 heads x 128² of them.
    assert values(fits)["naive"] > values(fits)["fused"] and "stores no context × context scores" in fits.cause
    assert "SDPA fits, in 2.92 GiB" in fits.text and "Use SDPA first; checkpoint where" in fits.advice


def test_checkpointing_is_advised_where_nothing_else_fits_or_is_faster(tmp_path):
    nothing = found(tmp_path / "nothing", [*(ladder.without_step(each) for each in ladder.chain()[:4]), checkpointed()])
    assert nothing[FITS].advice == "Checkpoint the blocks."
    slow = found(tmp_path / "slow", [*without_plain_step(), checkpointed(step=15.0)])
    assert slow[FITS].advice == "Checkpoint where memory ends." and "slower" in slow[FITS].text


def test_where_the_plain_step_fits_the_leanest_rung_is_told(tmp_path):
    own = found(tmp_path / "leaner", [*ladder.chain(), checkpointed()])
    assert values(own[SAVES])["without"] == pytest.approx(4 * GIB * 0.81)
    assert (
        values(own[FITS])["peak"] == pytest.approx(4 * GIB * 0.9**7)
        and "Without it all changes up to fused AdamW need 1.91 GiB" in own[FITS].text
    )
    cells = [*ladder.chain()[:3], checkpointed()]
    assert FITS not in found(tmp_path / "none", cells)
    lost = [ladder.without_step(each, both=True) for each in ladder.chain()[:5]]
    fits = found(tmp_path / "lost", [*lost, *ladder.chain()[5:], checkpointed()])[FITS]
    assert "Without it all changes up to blocks compiled fit, in" in fits.text


# Compiling, the best, and trust ---------------------------------------------------------------------------------------


def test_compiling_is_earned_back_after_so_many_steps(tmp_path):
    own = found(tmp_path / "gain", [*ladder.chain(), ladder.whole()])
    assert values(own["what does compiling cost in small at 128"]) == pytest.approx(
        {"seconds": 21.5, "gain": 1.5, "steps": 4300, "kernels": 1800, "before": 3100}
    )
    assert values(own["what does compiling the whole model bring"]) == pytest.approx(
        {"whole": 60.0, "blocks": 21.5, "gain": 10 / 9}
    )
    late = ladder.chain()
    late[5].record["provenance"]["started"] = "2025-03-01T10:00:01+00:00"  # the graphs compiled before, in 23 s
    late = found(tmp_path / "late", [*late, ladder.whole()])
    assert values(late["what does compiling cost in small at 128"]) == pytest.approx(
        {"seconds": 23.0, "later": 21.5, "gain": 1.5, "steps": 4600, "kernels": 1800, "before": 3100}
    )
    assert "takes 60.0 s after its blocks (21.5)" in late["what does compiling the whole model bring"].text
    none = found(tmp_path / "none", ladder.chain(steps=steps(at_5=15.0)))["what does compiling cost in small at 128"]
    assert none.text.endswith("not earned back.") and "steps" not in none.numbers


def test_the_best_configuration_names_its_options(tmp_path):
    own = found(tmp_path, ladder.chain())["which configuration is best in small at 128"]
    assert "bf16, attention=triton, compile=graphs, optimizer=fused" in own.text
    assert values(own)["tokens"] == pytest.approx(512 / 4e-3) and "takes 4.00 ms a step with 128,000" in own.text


def test_what_the_timing_study_measured_otherwise_is_told(tmp_path):
    cell = synthetic_profile.cell() | {"size": "small"}
    own = found(tmp_path / "apart", ladder.chain(), timing=[made.timed(cell, 80.0, 3)])["do runs at another time agree"]
    assert values(own) == pytest.approx({"apart": 1, "here": 40.0, "there": 80.0})
    alike = found(tmp_path / "alike", ladder.chain(), timing=[made.timed(cell, 40.2, 3)])
    assert "do runs at another time agree" not in alike


@pytest.mark.parametrize(("busy", "is_told"), [(35.9, True), (36.1, False)])
def test_where_kernels_fill_neither_run_the_host_is_the_reason(busy, is_told, tmp_path):
    """90 % of the shorter run's 40 ms are 36."""
    cell = synthetic_profile.cell("fp32", busy=busy) | {"size": "small"}
    own = found(tmp_path, ladder.chain(), timing=[made.timed(cell, 80.0, 3)], cells=[cell])
    again = own["do runs at another time agree"]
    assert ("launches set the rest" in again.cause) is is_told
    assert values(again).get("busy") == (pytest.approx(busy) if is_told else None)


@pytest.mark.parametrize(("clock", "is_told"), [(1600.0, True), (1900.0, False)])
def test_clocks_that_fall_on_the_way_up_are_told(clock, is_told, tmp_path):
    rungs = ladder.chain()
    for at, options, step, own in ((3, ladder.SDPA, 16.0, 1900.0), (4, ladder.TRITON, 15.0, clock)):
        throttle = ["power cap"] if at == 4 else []  # the clocks that fell are those of the rungs before it, too
        rungs[at] = ladder.cell("small", 128, "bf16", options, step, throttle=throttle, clock=own)
    clocks = found(tmp_path, rungs)["did the clocks hold"]
    assert values(clocks) == {"slow_0": 1} | ({"first_0": 1900.0, "last_0": 1600.0} if is_told else {})
    assert ("later rungs may gain more" in clocks.cause) is is_told


def test_clocks_are_told_of_each_ladder(tmp_path):
    small, medium = ladder.chain(), ladder.chain("medium")
    small[3] = ladder.cell("small", 128, "bf16", ladder.SDPA, 16.0, throttle=["power cap"], clock=1900.0)
    for at, options, clock in ((3, ladder.SDPA, 1800.0), (4, ladder.TRITON, 1700.0)):
        medium[at] = ladder.cell("medium", 128, "bf16", options, 15.0, throttle=["power cap"], clock=clock)
    assert found(tmp_path, [*small, *medium])["did the clocks hold"].text == (
        "2 of 8 rungs of medium at 128 and 1 of 8 of small at 128 ran at lowered clocks (power cap). "
        "Clocks fell from 1,800 to 1,700 MHz in medium: at equal clocks later rungs may gain more."
    )


def test_lowered_clocks_and_wrong_gradients_are_told(tmp_path):
    rungs = ladder.chain()
    own = found(tmp_path / "right", rungs)
    assert "did the clocks hold" not in own and values(own["do all rungs compute the same step"]) == {"own": 7}
    rungs[1] = ladder.cell("small", 128, "tf32", {}, 25.0, throttle=["power cap"], off=0.9)
    own = found(tmp_path / "wrong", rungs)
    assert own["did the clocks hold"].text == "1 of 8 rungs of small at 128 ran at lowered clocks (power cap)."
    same = own["do all rungs compute the same step"]
    assert values(same) == {"own": 6} and "not TF32 (small at 128)" in same.text


# Whole chapters -------------------------------------------------------------------------------------------------------


def test_the_examples_chapter_keeps_its_budgets_and_its_parts():
    own = chapter(example())
    check(own)
    assert len(own.parts) == 5 and all(part.findings for part in own.parts)
    assert fitted(own).parts[-1].findings[0].question == "did the clocks hold"  # of what is in doubt that comes first


def test_gains_that_stand_already_are_not_told_again(tmp_path):
    """TF32 brings most in medium, 60 to 15 ms, and in small nothing, 40 to 40.4."""
    medium = [(name, options, 1.5 * step, *rest) for name, options, step, *rest in steps(at_1=10.0, at_2=9.5, at_3=9.0,
              at_4=8.5, at_5=8.0, at_6=7.0)]  # fmt: skip
    rungs = [*ladder.chain(steps=steps(at_1=40.4)), *ladder.chain("medium", steps=medium)]
    own = found(tmp_path, rungs)
    assert "most comes from TF32" in own["which change brings most in medium at 128"].text
    assert "gain comes from TF32" in own["which change brings most in small at 128"].text
    assert "which change depends on the place" not in own


def test_without_a_ladder_there_is_no_chapter(tmp_path):
    assert chapter(Machine(Tables(tmp_path, made.STUDIES))) is None
    lost = [ladder.without_step(each, both=True) for each in ladder.chain()]
    assert chapter(machine(tmp_path / "lost", lost)) is None


def test_a_cpus_chapter_keeps_its_budgets(tmp_path):
    rungs = ladder.chain("nano", 64, hardware="cpu")
    check(chapter(machine(tmp_path, rungs)))
