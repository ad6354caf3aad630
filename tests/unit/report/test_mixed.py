"""Mixed precision across the timing grid: speed-ups, verdicts, reasons, findings; numbers worked out by hand."""

import math

import pytest
from stepscope.report.data.mixed import Mixed, bound, speeds_frame
from stepscope.report.data.profile import Profile
from stepscope.report.studies.precision.findings_mixed import findings, only_in, pays_from, slower
from stepscope.report.studies.precision.tables_mixed import slower_table, speedup_tables
from synthetic_precision import GIB, lost, profile, timing, write


@pytest.fixture
def made(tmp_path):
    """Mixed and Profile of rows of the timing table, and of others."""

    def make(*rows, **others):
        tables = write(tmp_path / "tables", {"timing": list(rows), **others})
        return Mixed(tables), Profile(tables)

    return make


def both(ms=10.0, mixed_ms=5.0, precision="bf16", **more):
    return timing(ms=ms, **more), timing(ms=mixed_ms, precision=precision, **more)


def values(finding):
    return {name: number.value for name, number in finding.numbers.items()}


def test_a_speed_up_is_the_ratio_of_medians_with_its_interval_between_processes(made):
    # Two times 0.5 % / √3, in squares: 0.408 %; Student's t of 60 degrees of freedom is 2.000.
    mixed, _ = made(*both())
    speed = mixed.pairs[0].speeds["step"]
    half = math.exp(2.000 * 0.005 * math.sqrt(2 / 3))
    assert speed.ratio == pytest.approx(2.0)
    assert (speed.low, speed.high) == (pytest.approx(2 / half, rel=1e-4), pytest.approx(2 * half, rel=1e-4))
    assert speed.verdict == "faster"


@pytest.mark.parametrize(
    ("mixed_ms", "word"),
    # The interval is ± 0.82 %: 1 % is surely below the margin of 2 %, 1.8 % may be beyond it, 4 % is.
    [(9.6, "faster"), (9.9, "same"), (9.82, "unclear"), (10.0, "same"), (10.18, "unclear"), (10.4, "slower")],
)
def test_a_difference_counts_beyond_two_per_cent(made, mixed_ms, word):
    mixed, _ = made(*both(mixed_ms=mixed_ms))
    assert mixed.pairs[0].speeds["step"].verdict == word


@pytest.mark.parametrize(("mixed_ms", "word"), [(9.4, "same"), (8.0, "faster"), (12.5, "slower")])
def test_a_difference_counts_beyond_what_unchanged_cells_differ_by(made, mixed_ms, word):
    rows = [timing(ms=10.0), timing(ms=11.0, repeat=2), timing(ms=mixed_ms, precision="bf16")]
    speed = made(*rows)[0].pairs[0].speeds["step"]
    assert (speed.verdict, speed.margin) == (word, pytest.approx(1.1))


def test_all_phases_and_points_of_a_table_are_judged_together(made):
    # 2.78 % is 1.9 standard errors above 2 %, a p-value of 0.03: one of five phases may be that by chance, all not.
    alone, _ = made(timing(), timing(precision="bf16", step_median_ms=10.278))
    assert alone.pairs[0].speeds["step"].verdict == "unclear"
    every, _ = made(*both(mixed_ms=10.278))
    assert {speed.verdict for speed in every.pairs[0].speeds.values()} == {"slower"}


def test_of_a_single_process_there_is_no_verdict_and_that_is_said_once(made):
    rows = [*both(processes=1), *both(size="medium", mixed_ms=20.0, processes=1)]
    mixed, profiled = made(*rows)
    assert {speed.verdict for pair in mixed.pairs for speed in pair.speeds.values()} == {"unclear"}
    pays, none = findings(mixed, profiled)
    assert pays.text == "In bf16 a whole step runs at 0.500 to 2.00 times fp32's speed, most with small at 128."
    assert none.text == "Single process, or two that disagree: no verdict."
    (table,) = speedup_tables(mixed)
    assert [(row[6].text, row[6].below) for row in table.rows] == [("2.00", ""), ("0.50", "")]
    assert [note.count("Single process, or two that disagree: no verdict.") for note in table.notes] == [0, 1]


def test_what_has_a_verdict_in_one_precision_is_not_said_of_another(made):
    # fp16 was measured by one process: its "faster" would be from a single run.
    rows = [*both(), timing(precision="fp16", ms=5.0, processes=1)]
    told = [each.text for each in findings(*made(*rows))]
    assert "In bf16 a whole step runs at 2.00 [1.98, 2.02] times" in told[0] and "It is faster" in told[0]
    assert "fp16" in told[1] and "faster" not in told[1]
    assert told[2] == "Single process, or two that disagree: no verdict in 1 of 2 comparisons."


def test_pairs_are_of_the_same_point_only(made):
    mixed, _ = made(timing(), timing(precision="bf16", context=256), timing(precision="bf16", batch=8),
                    timing(precision="bf16", attention="sdpa"), timing(precision="tf32"))  # fmt: skip
    assert mixed.pairs == [] and speedup_tables(mixed) == []


def test_the_table_has_the_speed_up_of_forward_and_backward_together(made):
    times = {f"forward_backward_{name}_ms": 8.0 for name in ("median", "ci_low", "ci_high")}
    mixed, _ = made(timing(ms=10.0, **times), timing(ms=5.0, precision="bf16", **dict.fromkeys(times, 2.0)))
    (table,) = speedup_tables(mixed)
    at = [column.label for column in table.columns].index("forward+backward")
    assert table.rows[0][at].text == "4.00"


def test_the_table_marks_what_is_slower_unclear_or_did_not_fit(made):
    rows = [*both(mixed_ms=12.5), *both(mixed_ms=9.9, context=256), *both(mixed_ms=2.5, context=512)]
    rows[-1]["step_peak_allocated_bytes"] = 3 * GIB
    rows += [lost(context=1024), timing(context=1024, precision="bf16", ms=7.0)]
    rows += [lost(size="large"), lost(size="large", precision="bf16")]
    mixed, _ = made(*rows)
    (table,) = speedup_tables(mixed)
    heads = [column.label for column in table.columns]
    assert heads == ["size", "context", "inference", "forward", "backward", "optimizer", "step", "step"]
    step = [row[6] for row in table.rows]
    assert [(cell.text, cell.below) for cell in step[:3]] == [
        ("0.80", "[0.793, 0.807] slower"),
        ("1.01", "[1.002, 1.018] same"),
        ("4.00", "[3.97, 4.03]"),
    ]
    assert (step[3].text, step[3].badges) == ("fp32", ("oom",))
    assert (step[4].text, step[4].badges) == ("", ("oom",))
    assert [row[7].text for row in table.rows[:3]] == ["±0", "±0", "−25"]
    assert any("only fp32 ran out of memory" in note for note in table.notes)


def test_a_difference_that_two_decimals_hide_has_three(made):
    mixed, _ = made(timing(spread=0.0001), timing(precision="bf16", ms=10.02, spread=0.0001))
    cell = speedup_tables(mixed)[0].rows[0][6]
    assert (cell.text, cell.below) == ("0.998", "[0.9978, 0.9982] same")


def launches(**place):
    """A small model whose GPU works 4 of 10 ms in bf16 and 8 in fp32."""
    return [profile(kernels=1000.0, busy=8.0, **place), profile(precision="bf16", kernels=1250.0, busy=4.0, **place)]


def test_launches_and_idle_time_are_those_of_the_nearest_profiled_cell(made):
    rows = [*both(mixed_ms=12.5), *both(mixed_ms=10.0, context=256)]
    mixed, profiled = made(*rows, profile=[*launches(context=256), *launches(context=1024)])
    why = bound(profiled, mixed.pairs[0])
    assert (why.kernels, why.where) == ((1000.0, 1250.0), "context 256")
    assert why.idle == (pytest.approx(0.2), pytest.approx(0.6))
    assert why.launch_bound
    table = slower_table(mixed, profiled)
    assert [cell.text for cell in table.rows[0][:3]] == ["small", "128", "bf16"]
    assert [cell.text for cell in table.rows[0][5:]] == ["1,000", "1,250", "20", "60", "context 256"]
    assert len(table.rows) == 1


def test_bf16_stands_in_for_fp16_and_that_is_said(made):
    mixed, profiled = made(*both(mixed_ms=12.5, precision="fp16"), *both(context=256), profile=launches(context=256))
    (pair,) = (pair for pair in mixed.pairs if pair.precision == "fp16")
    assert bound(profiled, pair).where == "context 256 in bf16"


def test_without_a_profile_there_is_no_reason(made):
    mixed, profiled = made(*both(mixed_ms=12.5))
    assert [cell.text for cell in slower_table(mixed, profiled).rows[0][5:]] == ["–", "–", "–", "–", "–"]
    finding = slower(mixed.pairs, profiled)
    assert values(finding) == {"speed_0": pytest.approx(0.8)}
    assert "No profile of these sizes says why." in finding.text


def test_the_size_from_which_on_it_pays(made):
    rows = [*both(mixed_ms=12.5), *both(size="medium", mixed_ms=8.0), *both(size="large", mixed_ms=4.0)]
    rows += [*both(context=512), *both(size="medium", context=512), *both(size="large", context=512)]
    mixed, profiled = made(*rows, profile=launches(context=128))
    pays, is_slower = findings(mixed, profiled)
    assert pays.numbers["speed"].value == pytest.approx([0.8, 2.0, 1.25, 2.0, 2.5, 2.0])
    assert len(pays.cells) == 12 and pays.hardware == "gpu"
    assert "from medium (400.0 M parameters) on at context 128; in every size at context 512" in pays.text
    assert values(is_slower) == {"speed_0": pytest.approx(0.8), "kernels": 250.0, "idle": pytest.approx(1 - 4 / 12.5)}
    assert is_slower.cells == (
        *("gpu/timing/small/ctx128/fp32", "gpu/timing/small/ctx128/bf16"),
        *("gpu/profile/small/ctx128/fp32", "gpu/profile/small/ctx128/bf16"),
    )
    assert is_slower.text.endswith("launch-bound.")


def test_a_busy_gpu_is_not_launch_bound(made):
    profiles = [profile(context=128, busy=9.0), profile(context=128, precision="bf16", kernels=900.0, busy=12.0)]
    mixed, profiled = made(*both(mixed_ms=12.5), profile=profiles)
    finding = slower(mixed.pairs, profiled)
    assert (finding.numbers["kernels"].value, finding.numbers["idle"].value) == (100.0, pytest.approx(0.04))
    assert "fewer a step" in finding.text and "launches alone do not explain it" in finding.text


def test_every_size_means_those_that_finished(made):
    reference, row = both(size="large")
    reference |= {"step_status": "oom", "step_median_ms": None}
    mixed, _ = made(*both(), *both(size="medium"), reference, row)
    assert "in every size that finished in both precisions at context 128" in pays_from(mixed.pairs).text


def test_a_larger_size_that_is_slower_again_breaks_the_row(made):
    mixed, _ = made(*both(), *both(size="medium", mixed_ms=12.5))
    assert "in no size that stays faster in larger ones at context 128" in pays_from(mixed.pairs).text


def test_one_cell_is_said_in_the_singular(made):
    mixed, profiled = made(*both())
    pays, memory = findings(mixed, profiled, with_memory=True)
    assert pays.numbers["speed"].value == pytest.approx(2.0)
    assert "2.00 [1.98, 2.02] times fp32's speed with small at 128" in pays.text and "faster" in pays.text
    assert values(memory) == {"step_least": 0.0, "step_most": 0.0} and str(memory.numbers["step_least"]) == "±0 %"


def test_the_least_and_the_largest_change_of_the_peak(made):
    rows = [*both(), *both(size="medium")]
    rows[-1]["step_peak_allocated_bytes"] = 3 * GIB
    mixed, profiled = made(*rows)
    *_, memory = findings(mixed, profiled, with_memory=True)
    assert values(memory) == {"step_least": -0.25, "step_most": 0.0}
    assert memory.text.startswith("bf16 changes the peak memory of the timing study's cells: ")
    assert memory.text.endswith(" in all 2 cells.")
    assert memory.numbers["step_least"].cells == ("gpu/timing/medium/ctx128/fp32", "gpu/timing/medium/ctx128/bf16")


def test_what_fits_only_in_16_bits(made):
    mixed, _ = made(lost(), timing(precision="bf16"))
    assert only_in(mixed.pairs).text == "A whole step fits in bf16 but not in fp32 with small at 128."
    assert pays_from(mixed.pairs) is None
    assert speeds_frame(mixed)["lost"].all()


def test_no_timing_table_at_all(tmp_path):
    tables = write(tmp_path, {"precision": []})
    mixed = Mixed(tables)
    assert mixed.pairs == [] and mixed.hardware == []
    assert findings(mixed, Profile(tables)) == []
