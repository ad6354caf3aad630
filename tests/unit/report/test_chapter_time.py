"""The chapter on time: its findings against numbers worked out by hand, and what it does with little data.

By synthetic_profile, of its shape at batch 4 and context 128: 3 x 233,308,160 FLOP a step, 257,344 parameters; ms of a
profiled step: products 3 forward and 5 backward, other kernels 1 and 1, optimizer 2; busy for 12.
"""

import page_one_maker as made
import pytest
import synthetic
import synthetic_profile
from chapter_checks import check, example, told, values
from stepscope.report.chapters.time import chapter
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.timing_grid import timing_grid
from stepscope.tables.reader import Tables

CEILINGS = synthetic_profile.ceilings(tflops=0.175, gb_per_s=10.0)  # a step's FLOP take 4.00 ms, AdamW's bytes 0.7206
FLOP_MS = 3 * 233_308_160 / 0.175e9
LAYER = 4 * 64**2 + 3 * 64 * 256 + 2 * 64  # parameters


def row(step=20.0, size="s", context=128, precision="fp32", **more) -> dict:
    cell = synthetic_profile.cell(precision)
    name = f"gpu/timing/{size}/ctx{context}/{precision}/{more.get('repeat', 1)}"
    return made.timed(cell, step, **({"size": size, "context": context, "cell": name} | more))


def of_layers(layers: int, step: float, **more) -> dict:
    """A size with so many layers."""
    parameters = 2 * 1000 * 64 + layers * LAYER + 64
    return row(step, f"l{layers}", num_layers=layers, parameters=parameters, **more)


def found(folder, *rows, cells=(), ceilings=CEILINGS, change=None) -> dict:
    own = chapter(Machine(made.write(folder, cells, rows, ceilings, change=change)))
    check(own)
    return told(own)


# How near to the machine's rates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "above"), [(1.98, 1), (2.02, 0)])
def test_flop_explain_most_of_a_step_from_a_half_on(step, above, tmp_path):
    rate = found(tmp_path, row(step * FLOP_MS), row(3 * FLOP_MS, "t", parameters=300_000))[
        "how near is a step to the machine's rate"
    ]
    assert values(rate)["fp32"] == pytest.approx([1 / step, 1 / 3])
    assert rate.text.endswith(f"That is half or more in {above} of 2 cells in fp32.")


def test_a_step_beyond_the_large_product_is_said_to_have_no_ceiling(tmp_path):
    above = found(tmp_path / "above", row(0.9 * FLOP_MS, optimizer_median_ms=0.1))
    assert "was no ceiling" in above["how near is a step to the machine's rate"].text
    assert above["what lies between prediction and measurement"].cause == ""
    below = found(tmp_path / "below", row(1.1 * FLOP_MS))
    assert "was no ceiling" not in below["how near is a step to the machine's rate"].text


def test_without_ceilings_nothing_is_said_of_rates(tmp_path):
    own = found(tmp_path, row(forward_median_ms=10.0, backward_median_ms=20.0), ceilings=[])
    assert next(iter(own)) == "how long do the passes take"
    assert values(own["how long do the passes take"]) == {"forward_0": 10.0, "backward_0": 20.0}
    assert "what lies between prediction and measurement" not in own


def test_the_gap_is_what_the_profile_shows_beside_products(tmp_path):
    cells, timing = made.both(fp32=30.0, bf16=20.0)
    limits = [*CEILINGS, *synthetic_profile.ceilings(tflops=0.35, precision="bf16")]
    gap = found(tmp_path, *timing, cells=cells, ceilings=limits)["what lies between prediction and measurement"]
    expected = {
        "predicted": FLOP_MS / 2,
        "measured": 20.0,
        "products": 8.0,
        "optimizer": 2.0,
        "memory": 2.0,
        "idle": 8.0,
    }
    assert values(gap) == pytest.approx(expected)


def test_without_a_profile_the_gap_is_that_of_the_largest_step(tmp_path):
    rows = [row(20.0, optimizer_median_ms=5.0), row(60.0, context=256, optimizer_median_ms=6.0)]
    gap = found(tmp_path, *rows)["what lies between prediction and measurement"]
    assert values(gap)["measured"] == 60.0 and values(gap)["optimizer"] == 6.0
    assert values(gap)["predicted"] > 2 * FLOP_MS  # twice the tokens, four times the scores


@pytest.mark.parametrize(("measured", "is_told"), [(1.49, False), (1.51, True)])
def test_an_optimizer_far_from_its_bytes_has_a_cause(measured, is_told, tmp_path):
    least = 28 * 257_344 / 10e9 * 1e3
    own = found(tmp_path, row(optimizer_median_ms=measured * least))["what sets the optimizer's time"]
    assert values(own)["predicted"] == pytest.approx(0.72056, rel=1e-4)
    assert ("72 bytes" in own.cause) == is_told
    if is_told:  # 18 numbers of 4 bytes, of each of 257,344 parameters, at 10 GB/s
        assert values(own)["written_out"] == pytest.approx(1.85288, rel=1e-5)


def test_the_optimizers_share_is_of_a_step(tmp_path):
    rows = [row(20.0, optimizer_median_ms=2.0), row(10.0, context=64, optimizer_median_ms=2.0)]
    share = found(tmp_path / "one", *rows)["what is the optimizer's share"]
    assert values(share)["fp32"] == pytest.approx([0.2, 0.1]) and share.text.endswith("most in s at 64.")
    rows.append(row(10.0, precision="bf16", optimizer_median_ms=4.0))
    share = found(tmp_path / "two", *rows)["what is the optimizer's share"]
    assert share.text.endswith("most in s at 64 (fp32) and s at 128 (bf16).")


# Backward over forward ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "is_twice"), [(1.74, False), (1.76, True), (2.24, True), (2.26, False)])
def test_what_is_about_twice(ratio, is_twice, tmp_path):
    own = found(tmp_path, row(forward_median_ms=10.0, backward_median_ms=10 * ratio))
    backward = own["what does a backward pass take in fp32"]
    assert values(backward)["middle"] == pytest.approx(ratio)
    assert ("about twice" in backward.text) == is_twice
    assert ("multiplied twice" in backward.cause) == is_twice


def test_the_usual_reason_is_given_once(tmp_path):
    rows = [row(precision=name, forward_median_ms=10.0, backward_median_ms=20.0) for name in ("fp32", "bf16")]
    own = found(tmp_path, *rows)
    causes = [own[f"what does a backward pass take in {name}"].cause for name in ("fp32", "bf16")]
    assert "multiplied twice" in causes[0] and causes[1] == ""


def test_products_that_are_not_twice_as_long_speak_against_the_usual_reason(tmp_path):
    cells = [synthetic_profile.cell()]
    timing = [made.timed(cells[0], 20.0, forward_median_ms=10.0, backward_median_ms=20.0)]
    own = found(tmp_path / "less", *timing, cells=cells)["what does a backward pass take in fp32"]  # 5 over 3 ms
    assert values(own)["products"] == pytest.approx([5 / 3]) and own.cause.startswith("Yet its products do not")
    own = found(tmp_path / "twice", *timing, cells=cells, change=slow_others(4.0, 6.0))
    assert "multiplied twice" in own["what does a backward pass take in fp32"].cause


def slow_others(forward, backward):
    """Products take 1 ms forward and 2 backward, so that the others take what is left of these passes."""

    def change(frames):
        frame = frames["profile_categories"]
        for phase, time in (("forward", 1.0), ("backward", 2.0)):
            frame.loc[(frame["phase"] == phase) & (frame["category"] == "matmul"), "ms_per_step"] = time
        frame = frames["profile_phases"]
        for phase, time in (("forward", forward), ("backward", backward)):
            frame.loc[frame["phase"] == phase, "gpu_ms_per_step"] = time

    return change


@pytest.mark.parametrize(
    ("passes", "is_told"),
    [
        ((4.0, 6.0), True),
        ((4.0, 7.2), True),
        ((4.0, 7.3), False),
        ((2.1, 3.7), False),
    ],  # others: 4/3, 5.2/3, 5.3/3; few
)
def test_other_kernels_are_the_cause_where_they_are_most_and_not_twice_as_long(passes, is_told, tmp_path):
    cells = [synthetic_profile.cell()]
    timing = [made.timed(cells[0], 20.0, forward_median_ms=10.0, backward_median_ms=15.0)]
    own = found(tmp_path, *timing, cells=cells, change=slow_others(*passes))["what does a backward pass take in fp32"]
    assert ("other kernels" in own.cause) == is_told
    if is_told:
        assert values(own)["products"] == pytest.approx([2.0])
        assert values(own)["others"] == pytest.approx([(passes[1] - 2) / (passes[0] - 1)])


@pytest.mark.parametrize(("step", "is_told"), [(17.2, True), (17.1, False)])  # busy for 12 ms: 69.8 and 70.2 %
def test_where_the_gpu_waits_kernels_do_not_set_the_ratio_of_the_passes(step, is_told, tmp_path):
    cells = [synthetic_profile.cell()]
    timing = [made.timed(cells[0], step, forward_median_ms=10.0, backward_median_ms=15.0)]
    passes = slow_others(4.0, 6.0)

    def change(frames):
        passes(frames)
        frame = frames["profile_phases"]
        for phase, count in (("forward", 400), ("backward", 640)):
            frame.loc[frame["phase"] == phase, "kernels_per_step"] = count

    own = found(tmp_path, *timing, cells=cells, change=change)["what does a backward pass take in fp32"]
    assert ("it launches 1.60 times as many kernels and takes 1.50 times as long." in own.text) == is_told
    assert ("launched" in values(own)) == is_told


# Growth ---------------------------------------------------------------------------------------------------------------


def flop(layers: int) -> float:
    """Of a step, in millions: 2 m n k by hand, at batch 4 and context 128."""
    linear = 2 * 512 * (4 * 64**2 + 3 * 64 * 256)
    scores = 2 * 2 * 4 * 128 * 128 * 64
    return 3 * (layers * (linear + scores) + 2 * 512 * 64 * 1000) / 1e6


def test_a_law_needs_four_sizes(tmp_path):
    rows = [of_layers(layers, flop(layers)) for layers in (1, 2, 4, 8)]
    law = found(tmp_path / "four", *rows)["how does time grow with parameters"]
    assert values(law)["fp32"] == pytest.approx(values(law)["flop"]) and law.cause == ""
    few = found(tmp_path / "three", *rows[:3])["how does time grow with parameters"]
    larger = (128_064 + 4 * LAYER) / (128_064 + LAYER)
    expected = {"larger": larger, "flop": flop(4) / flop(1), "fp32": flop(4) / flop(1)}
    assert values(few) == pytest.approx(expected)
    assert "how does time grow with parameters" not in found(tmp_path / "one", *rows[:1])


@pytest.mark.parametrize(("power", "word"), [(0.5, "higher"), (2.0, "lower")])
def test_a_law_beside_that_of_flop(power, word, tmp_path):
    rows = [of_layers(layers, flop(layers) ** power) for layers in (1, 2, 4, 8)]
    law = found(tmp_path, *rows)["how does time grow with parameters"]
    assert law.cause == f"Larger sizes reach {word} rates."


def test_growth_with_context_is_of_the_sizes_that_every_precision_has(tmp_path):
    rows = [row(10.0), row(15.0, context=256), row(45.0, context=512), row(99.0, "t"),
            row(8.0, precision="bf16"), row(8.8, context=256, precision="bf16"),
            row(11.0, context=512, precision="bf16")]  # fmt: skip
    growth = values(found(tmp_path, *rows)["how does time grow with context"])
    assert growth["fp32_0"] == pytest.approx([1.5]) and growth["bf16_0"] == pytest.approx([1.1])
    assert growth["fp32_1"] == pytest.approx([3.0]) and growth["bf16_1"] == pytest.approx([1.25])
    scores = 3 * 2 * 2 * 4 * 64 * 2 / 1e6  # of two layers, for each square of the context
    linear = flop(2) - scores * 128**2
    assert growth["flop_0"] == pytest.approx([(2 * linear + scores * 256**2) / flop(2)])


@pytest.mark.parametrize(("kernels", "step", "is_told"), [(1049, 18.0, True), (1051, 18.0, False), (1049, 17.0, False)])
def test_launches_are_the_cause_where_their_number_stays_and_the_gpu_waits(kernels, step, is_told, tmp_path):
    cells = [synthetic_profile.cell(), synthetic_profile.cell(context=256, cell="gpu/profile/s/ctx256/fp32")]

    def change(frames):
        frame = frames["profile_phases"]
        frame.loc[(frame["cell"] == cells[1]["cell"]) & (frame["phase"] == "step"), "kernels_per_step"] = kernels

    timing = [made.timed(cells[0], step), made.timed(cells[1], 40.0)]  # busy for 12 of 18 ms, and of 17: 67 and 71 %
    growth = found(tmp_path, *timing, cells=cells, change=change)["how does time grow with context"]
    assert ("launches 1,000 to 1,049 kernels" in growth.text) == is_told


def test_the_ends_of_a_range_say_what_disturbed_their_cells(tmp_path):
    rows = [row(10.0), row(15.0, context=256, slow_host=True),
            row(10.0, "t", step_unsteady=True, step_noisy=True), row(9.0, "t", context=256),
            row(10.0, "u"), row(12.0, "u", context=256, throttle="power"),
            row(10.0, precision="bf16", step_noisy=True), row(10.5, context=256, precision="bf16"),
            row(10.0, "t", precision="bf16"), row(11.0, "t", context=256, precision="bf16"),
            row(10.0, "u", precision="bf16"), row(12.0, "u", context=256, precision="bf16")]  # fmt: skip
    growth = found(tmp_path / "growth", *rows)["how does time grow with context"]
    assert "time 0.900 (unsteady) to ~1.50 in fp32 and ~1.05 to 1.20 in bf16" in growth.text
    rows = [row(20.0, phases_minus_step_ms=-1.0, forward_unsteady=True), row(20.0, "t", phases_minus_step_ms=2.0)]
    phases = found(tmp_path / "phases", *rows)["do the phases add up"]
    assert "by −5.0 (unsteady) to +10.0 % from" in phases.text
    alone = [row(10.0), row(15.0, context=256, slow_host=True),
             row(10.0, precision="bf16"), row(15.0, context=256, precision="bf16", step_unsteady=True)]  # fmt: skip
    growth = found(tmp_path / "alone", *alone)["how does time grow with context"]
    assert "time ~1.50 in fp32 and 1.50 (unsteady) in bf16" in growth.text
    phases = found(tmp_path / "one", row(20.0, phases_minus_step_ms=2.0, forward_unsteady=True))["do the phases add up"]
    assert "by +10.0 % (unsteady) from" in phases.text


# Phases and steps -----------------------------------------------------------------------------------------------------


def test_phases_that_do_not_add_up_count_beyond_what_unchanged_cells_differ_by(tmp_path):
    rows = [row(20.0, phases_minus_step_ms=1.0), row(20.0, context=256, phases_minus_step_ms=0.41),
            row(20.0, context=512, phases_minus_step_ms=-0.39)]  # fmt: skip
    own = found(tmp_path / "gpu", *rows)["do the phases add up"]
    assert values(own)["shares"] == pytest.approx([0.05, 0.0205, -0.0195])
    assert values(own)["beyond"] == 2 and "beyond the floor in 2 of 3 cells" in own.text
    again = row(20.0 * 1.04, repeat=2)  # the floor of its class is 4 % then
    assert values(found(tmp_path / "twice", *rows, again)["do the phases add up"])["beyond"] == 1


def test_variation_within_a_run_says_nothing_of_another_run(tmp_path):
    first = row(20.0, step_mean_ms=20.0, step_std_ms=0.2)
    again = row(21.0, repeat=2)
    own = found(tmp_path / "twice", first, again)["do measurements vary"]
    assert values(own) == pytest.approx({"middle": 0.01, "most": 0.01}) and own.advice == ""
    alone = found(tmp_path / "once", first)["do measurements vary"]
    assert "no cell was measured twice" in alone.advice


@pytest.mark.parametrize(("noisy", "is_told"), [(1, False), (2, True)])
def test_that_most_cells_are_noisy_is_said_first(noisy, is_told, tmp_path):
    rows = [row(context=128 * 2**at, step_noisy=at < noisy) for at in range(3)][: 2 if noisy == 1 else 3]
    assert ("what not to trust" in found(tmp_path, *rows)) == is_told


# Tables ---------------------------------------------------------------------------------------------------------------


def table_of(folder, name: str, *rows):
    own = chapter(Machine(made.write(folder, timing=rows, ceilings=CEILINGS)))
    return next(each for part in own.parts for each in part.shows if each.name == name)


def test_predictions_stand_beside_what_was_measured(tmp_path):
    one = row(20.0, forward_median_ms=5.0, backward_median_ms=9.0, optimizer_median_ms=1.0)
    table = table_of(tmp_path, "chapter-time-predicted", one)
    (line,) = table.rows
    assert [cell.text for cell in line] == [
        "fp32",
        "s",
        "5.00",
        "9.00",
        "1.80",
        "1.00",
        "0.721",
        "20.0",
        "4.00",
        "20.0",
    ]


def test_steps_are_shown_at_four_contexts_of_the_largest_sizes(tmp_path):
    rows = [row(20.0, f"s{size:02d}", context, parameters=1000 + size) for size in range(14) for context in range(1, 8)]
    table = table_of(tmp_path, "chapter-time-steps", *rows)
    assert [column.label for column in table.columns[2:]] == ["1", "3", "5", "7"]
    assert [line[0].text for line in table.rows] == [f"s{size:02d}" for size in range(2, 14)]


def test_what_ran_out_of_memory_has_its_badge_and_what_was_not_asked_for_a_dash(tmp_path):
    rows = [row(20.0), row(40.0, "t", 256, parameters=300_000), made.lost(synthetic_profile.cell(), 256)]
    table = table_of(tmp_path, "chapter-time-steps", *rows)
    first, second = ([(cell.text, cell.badges) for cell in line[2:]] for line in table.rows)
    assert first == [("20.00", ()), ("", ("oom",))] and second == [("–", ()), ("40.00", ())]


def test_the_context_of_most_cells_is_the_longest_of_those_with_as_many(tmp_path):
    rows = [row(context=context) for context in (128, 256)]
    rows += [row(size="t", context=context, parameters=9) for context in (64, 128, 256, 512)]
    own = timing_grid(Machine(made.write(tmp_path, timing=rows)))
    assert own.fullest_context() == 256 and own.shown == ["fp32"]
    assert [size["size"] for size in own.sizes] == ["t", "s"]


def test_without_fp32_or_bf16_the_first_two_precisions_are_shown(tmp_path):
    rows = [row(precision=name) for name in ("tf32", "bf16", "fp16")]
    assert timing_grid(Machine(made.write(tmp_path, timing=rows))).shown == ["tf32", "bf16"]


# Whole chapters -------------------------------------------------------------------------------------------------------


def test_the_examples_chapter_keeps_its_budgets():
    own = chapter(example())
    check(own)
    assert len(own.parts) == 5 and all(part.findings for part in own.parts)


@pytest.mark.parametrize("variant", ["h100", "cpu", "two"])
def test_chapters_of_made_up_tables_keep_their_budgets(variant, tmp_path):
    check(chapter(Machine(Tables(synthetic.write(variant, tmp_path), made.STUDIES))))


def test_without_times_there_is_no_chapter(tmp_path):
    assert chapter(Machine(Tables(tmp_path, made.STUDIES))) is None
    assert chapter(Machine(made.write(tmp_path / "lost", timing=[made.lost(synthetic_profile.cell(), 256)]))) is None
