"""Machines side by side: ratios, verdicts, tables and sentences against numbers worked out by hand."""

import re

import hardware_maker as made
import pytest
from hardware_maker import GIB
from pages import Page, markdown_page
from roofline_maker import ceilings
from stepscope.report.data import side_by_side
from stepscope.report.data.machines import Limits, labels, limits
from stepscope.report.data.points import Grid
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding
from stepscope.report.kit.order import merged_labels, with_order
from stepscope.report.studies.hardware import findings, section, tables, tables_studies

BOTH = ["old", "new"]


def grid_of(folder, *rows, **others) -> Grid:
    return Grid(made.write(folder, timing=rows, **others))


def values(finding: Finding) -> dict:
    return {name: number.value for name, number in finding.numbers.items()}


def texts(row) -> list[str]:
    return [cell.text for cell in row]


def both(old_ms=20.0, new_ms=10.0, **place):
    """A cell on `old`, the baseline, and on `new`."""
    return made.timing("old", ms=old_ms, **place), made.timing("new", ms=new_ms, **place)


# The new machine computes four times as fast in fp32 and eight times in bf16, and its memory is twice as fast.
RATES = [
    *ceilings("old", "Unheard", copy=1000.0, fp32=10.0, bf16=50.0),
    *ceilings("new", "Unheard", copy=2000.0, fp32=40.0, bf16=400.0),
]


# Machines and their rates ---------------------------------------------------------------------------------------------


def test_the_first_label_of_the_tables_is_the_baseline(tmp_path):
    grid = grid_of(tmp_path, made.timing("zebra"), made.timing("ant"), made.timing("zebra", context=256))
    assert (grid.baseline, grid.others) == ("zebra", ["ant"])
    assert labels(made.write(tmp_path / "none")) == []


def test_a_baseline_that_lacks_the_first_study_is_still_the_baseline(tmp_path):
    # Timing has no `base`; attention has no `ant`, so that only both tables together tell the whole order.
    found = made.write(
        tmp_path,
        timing=[made.timing("zebra"), made.timing("ant")],
        attention=[*made.attention("base"), *made.attention("zebra")],
    )
    assert labels(found) == ["base", "zebra", "ant"]
    attention = side_by_side.attention(found, labels(found))
    assert (attention.machines, attention.lacking) == (["base", "zebra"], ["ant"])
    assert values(findings.of_attention(attention)) == {"on_zebra": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("orders", "merged"),
    [([], []), ([["b"], ["a", "b"]], ["a", "b"]), ([["c", "d"], ["b", "c"], ["a", "b"]], ["a", "b", "c", "d"]),
     ([["b", "c"], ["a", "c"]], ["b", "a", "c"]), ([["a", "b"], ["b", "a"]], ["a", "b"])],
)  # fmt: skip
def test_labels_of_several_tables_are_merged(orders, merged):
    assert merged_labels(orders) == merged


def test_the_whole_report_has_the_machines_in_the_order_of_the_tables(tmp_path):
    rows = [made.timing("zebra"), made.timing("ant"), made.timing("zebra", "bf16"), made.timing("ant", "bf16")]
    found = made.write(tmp_path, timing=rows, ceilings=[*ceilings("zebra", fp32=1.0), *ceilings("ant", fp32=1.0)])
    ordered = with_order(found["timing"])
    assert list(ordered["hardware"]) == ["zebra", "zebra", "ant", "ant"]
    text, _ = made.pages(tmp_path / "page", found)
    for before in ("Time of each phase, fp32, on", "Throughput and memory, fp32, on", "*On"):
        assert 0 < text.index(f"{before} zebra") < text.index(f"{before} ant")
    assert "|  | zebra | ant |" in text


def test_ratios_are_of_data_sheets_else_of_what_was_measured(tmp_path):
    known = made.write(tmp_path / "a", timing=[made.timing("a", gpu=made.A100), made.timing("l", gpu=made.L40S)])
    found = limits(known, "l", "a", "fp32")
    assert (found.arithmetic, found.memory) == (pytest.approx(91.6 / 19.5), pytest.approx(864 / 2039))
    assert found.sources == ("data sheet", "data sheet")
    assert limits(known, "l", "a", "bf16").arithmetic == pytest.approx(362.05 / 312)
    measured = made.write(tmp_path / "b", timing=[made.timing("old"), made.timing("new")], ceilings=RATES)
    assert limits(measured, "new", "old", "bf16") == Limits(8.0, 2.0, ("measured", "measured"))
    assert limits(measured, "new", "old", "fp16") == Limits(None, 2.0, ("", "measured"))


@pytest.mark.parametrize(
    ("speed", "word"),
    [(4.0, "arithmetic"), (3.3, "arithmetic"), (2.0, "memory"), (2.4, "memory"), (3.0, "between"), (1.1, "neither"),
     (0.9, "neither"), (6.0, "beyond")],
)  # fmt: skip
def test_which_ratio_a_faster_machine_follows(speed, word):
    assert Limits(4.0, 2.0).follows(speed) == word


@pytest.mark.parametrize(
    ("speed", "word"),
    [(0.25, "arithmetic"), (0.5, "memory"), (0.35, "between"), (0.9, "neither"), (1.2, "neither"), (0.1, "beyond")],
)
def test_which_ratio_a_slower_machine_follows(speed, word):
    assert Limits(0.25, 0.5).follows(speed) == word


@pytest.mark.parametrize(
    ("ratios", "speed", "word"),
    [
        # ln 0.6 = -0.51 is farther from 0 than ln 1.15 = 0.14; ln 0.9 = -0.105 nearer than ln 2 = 0.69.
        ((1.1, 1.15), 0.6, "beyond"), ((4.0, 2.0), 0.4, "beyond"), ((4.0, 2.0), 0.9, "neither"),
        ((0.9, 0.87), 1.5, "beyond"), ((2.0, 0.9), 0.7, "beyond"),
    ],
)  # fmt: skip
def test_a_speed_up_on_the_other_side_of_1(ratios, speed, word):
    assert Limits(*ratios).follows(speed) == word


def test_only_what_is_nearer_to_1_than_both_ratios_is_told_so(tmp_path):
    rates = [*ceilings("old", "Unheard", copy=1000.0, fp32=10.0), *ceilings("new", "Unheard", copy=1150.0, fp32=11.0)]
    assert "neither" not in findings.limits(grid_of(tmp_path, *both(6.0, 10.0), ceilings=rates), "new").numbers


def test_ratios_that_are_near_each_other_or_unknown():
    assert Limits(2.0, 2.1).follows(2.0) == "arithmetic or memory"
    assert Limits(4.0, 0.5).follows(1.0) == "between"
    assert Limits(None, 2.0).follows(2.0) == "" and Limits(None, 2.0).reached("arithmetic", 2.0) is None
    assert Limits(4.0, 2.0).reached("arithmetic", 3.2) and not Limits(4.0, 2.0).reached("arithmetic", 3.1)


def test_the_table_of_machines(tmp_path):
    rows = [made.timing("old", gpu=made.A100), made.timing("new", gpu=made.L40S, device_memory_bytes=48 * GIB)]
    found = made.write(tmp_path, timing=rows, ceilings=ceilings("new", made.L40S, copy=700.0, bf16=300.0))
    table = tables.machines_table(found, ["old", "new"])
    shown = {row[0].text: [(cell.text, cell.below) for cell in row[1:]] for row in table.rows}
    assert shown["device"] == [(made.A100, ""), (made.L40S, "")]
    assert shown["memory (GiB)"] == [("80.0", ""), ("48.0", "× 0.60")]
    assert shown["data sheet: fp32 (TFLOP/s)"] == [("19.5", ""), ("91.6", "× 4.70")]
    assert shown["data sheet: memory (GB/s)"] == [("2,039", ""), ("864", "× 0.42")]
    assert shown["measured: bf16 (TFLOP/s)"] == [("–", ""), ("300", "")]
    assert shown["measured: copy (GB/s)"] == [("–", ""), ("700", "")]
    assert "measured: fp32 (TFLOP/s)" not in shown


# The timing grid ------------------------------------------------------------------------------------------------------


def test_a_cell_beside_that_of_the_baseline(tmp_path):
    rows = [*both(), *both(10.0, 10.1, context=256), *both(10.0, 20.0, context=512)]
    rows += [made.timing("old", context=1024, ms=30.0), made.lost("new", context=1024)]
    rows += [made.lost("old", size="large"), made.lost("new", size="large")]
    rows += [made.timing("new", size="medium", ms=7.0), made.lost("old", size="medium", context=256, status="missing")]
    rows += [made.timing("new", size="medium", context=256, ms=7.0)]
    table = tables.grid_table(grid_of(tmp_path, *rows))
    assert [texts(row)[:2] for row in table.rows] == [
        ["small", "128"], ["small", "256"], ["small", "512"], ["small", "1,024"],
        ["medium", "256"], ["large", "128"],
    ]  # fmt: skip
    shown = [(row[2].text, row[2].below, row[2].badges) for row in table.rows]
    assert "OOM: out of memory; missing: not measured." in table.notes
    assert shown == [
        ("2.00", "[1.98, 2.02], 20.0 → 10.0", ()),
        ("0.99", "[0.982, 0.998] same, 10.0 → 10.1", ()),
        ("0.50", "[0.496, 0.504] slower, 10.0 → 20.0", ()),
        ("", "30.0 → –", ("oom",)),
        ("", "– → 7.00", ("missing",)),
        ("", "", ("oom",)),
    ]


def test_unsupported_noisy_and_throttled_cells_are_marked(tmp_path):
    rows = [made.timing("old", step_noisy=True), made.timing("new", throttle="power cap")]
    rows += [made.timing("old", "bf16"), made.lost("new", "bf16", "unsupported")]
    (row,) = tables.grid_table(grid_of(tmp_path, *rows)).rows
    assert [cell.badges for cell in row[2:]] == [("noisy", "throttled"), ("unsupported",)]


@pytest.mark.parametrize(("ms", "word"), [(9.5, "same"), (8.0, "faster"), (12.5, "slower")])
def test_a_difference_is_larger_than_the_larger_floor_of_both_machines(tmp_path, ms, word):
    rows = made.repeated("old", 10.0, 1.1) + made.repeated("new", ms, 1.03)
    grid = grid_of(tmp_path, *rows)
    speed = grid.speed(grid.points[0], "new", "step")
    assert (speed.verdict, speed.margin) == (word, pytest.approx(1.1))


def test_launches_of_hosts_that_are_not_as_fast_do_not_compare(tmp_path):
    limits = {f"{phase}_limited_by": "launches" for phase in made.PHASES}
    old, same, slow = (limits | {"host_python_ms": 2.0, "host_launches_ms": ms} for ms in (4.0, 4.2, 5.0))
    for host, word in ((same, "faster"), (slow, "not comparable")):
        rows = [made.timing("old", ms=20.0, **old), made.timing("new", ms=10.0, **host)]
        grid = grid_of(tmp_path / word, *rows)
        assert grid.speed(grid.points[0], "new", "step").verdict == word
        (table,) = tables.grid_table(grid).rows
        assert table[2].text == ("2.00" if word == "faster" else "(2.00)")
    assert "not comparable in 1 of 1 cell" in findings.speed_up(grid, "new").text


def test_batches_and_options_are_columns_where_they_vary(tmp_path):
    table = tables.grid_table(grid_of(tmp_path, *both(), *both(8.0, 2.0, attention="sdpa")))
    assert [column.label for column in table.columns] == ["size", "context", "options", "× (ms)"]
    assert [texts(row)[2:] for row in table.rows] == [["–", "2.00"], ["attention=sdpa", "4.00"]]


def test_the_summary_counts_and_compares_with_the_ratios(tmp_path):
    rows = [*both(40.0, 10.0), *both(20.0, 10.0, context=256), *both(10.0, 10.0, context=512)]
    table = tables.summary_table(grid_of(tmp_path, *rows, ceilings=RATES))
    step = next(texts(row) for row in table.rows if row[1].text == "step")
    # Speed-ups of 4, 2 and 1; 80 % of 4 is 3.2, of 2 it is 1.6.
    # Two are faster and one is the same.
    assert step == ["fp32", "step", "3", "1.000", "2.00", "4.00", "2", "1", "4.00", "1", "2.00", "2"]
    assert len(table.rows) == 5
    bare = tables.summary_table(grid_of(tmp_path / "b", *rows))
    assert texts(bare.rows[0])[-4:] == ["–"] * 4


def test_every_phase_with_the_ratio_that_it_follows(tmp_path):
    rows = [made.timing("old", ms=40.0), made.timing("new", ms=10.0, optimizer_median_ms=20.0)]
    table = tables.phases_table(grid_of(tmp_path, *rows, ceilings=RATES))
    shown = {row[3].text: texts(row)[4:] for row in table.rows}
    assert shown["step"] == ["40.00", "10.00", "4.00", "4.00", "2.00", "arithmetic"]
    assert shown["optimizer"] == ["40.00", "20.00", "2.00", "4.00", "2.00", "memory"]
    assert not table.folded
    many = [row for context in range(9) for row in both(context=128 + context)]
    assert tables.phases_table(grid_of(tmp_path / "many", *many)).folded


def test_what_is_lost_stands_in_its_place_in_the_table_of_phases(tmp_path):
    table = tables.phases_table(grid_of(tmp_path, made.timing("old"), made.lost("new", status="failed")))
    assert [cell.badges for cell in table.rows[0][4:6]] == [(), ("failed",)]
    assert texts(table.rows[0])[6:] == ["–"] * 4


# Findings -------------------------------------------------------------------------------------------------------------


def test_the_numbers_of_one_cell(tmp_path):
    grid = grid_of(tmp_path, *both(20.0, 10.0), ceilings=RATES)
    cells = ("old/timing/small/ctx128/fp32/1", "new/timing/small/ctx128/fp32/1")
    speed = findings.speed_up(grid, "new")
    assert values(speed) == {"range": 2.0, "faster": 1} and speed.cells == cells
    assert speed.text == "new runs a step at 2.00 [1.98, 2.02] times the speed of old; faster in 1 of 1 cell."
    assert values(findings.by_phase(grid, "new")) == {phase: [2.0] for phase in made.PHASES[:4]}
    limits = findings.limits(grid, "new")
    assert values(limits) == {"arithmetic": 0, "arithmetic_fp32": 4.0, "memory": 1, "memory_fp32": 2.0}
    assert "in no cell; of the ratio of bandwidths, 2.00 (measured), in the 1 cell." in limits.text


def test_the_numbers_of_several_cells(tmp_path):
    rows = [*both(40.0, 10.0), *both(20.0, 10.0, context=256), *both(10.0, 10.0, context=512)]
    rows += [made.lost("old", context=1024), made.timing("new", context=1024)]
    grid = grid_of(tmp_path, *rows, ceilings=RATES)
    speed = findings.speed_up(grid, "new")
    assert values(speed) == {"range": [4.0, 2.0, 1.0], "median": 2.0, "faster": 2, "same": 1}
    assert speed.numbers["same"].cells == ("new/timing/small/ctx512/fp32/1",)
    # 80 % of 4 is 3.2, of 2 it is 1.6; a speed-up of 1 is nearer to 1 than both ratios.
    assert values(findings.limits(grid, "new")) == {
        "arithmetic": 1, "arithmetic_fp32": 4.0, "memory": 2, "memory_fp32": 2.0, "neither": 1
    }  # fmt: skip
    (fits,) = findings.fits(grid, "new")
    assert values(fits) == {"fitting": 1} and fits.text.startswith("On new, but not on old, ")


@pytest.mark.parametrize(
    ("count", "total", "text"),
    [(4, 4, "all 4 cells"), (1, 4, "1 of 4 cells (25 %)"), (0, 4, "none of 4 cells"), (1, 1, "the 1 cell"),
     (0, 1, "no cell")],
)  # fmt: skip
def test_some_of_many(count, total, text):
    assert findings.share_of(count, total) == text and formatting.some_of(count, total) == text.split(" (")[0]


def test_of_single_processes_there_is_no_verdict(tmp_path):
    rows = [*both(20.0, 10.0), made.timing("old", "bf16", processes=1), made.timing("new", "bf16", ms=5.0, processes=1)]
    found = made.write(tmp_path, timing=rows, ceilings=RATES)
    told = [each.text for each in section.findings(found)]
    assert told[0].endswith("median 2.00 of 2 cells; faster in 1 of 2 cells.")
    assert told[-1] == "Single process, or two that disagree: no verdict in 1 of 2 comparisons."
    alone = made.write(tmp_path / "b", timing=rows[2:], ceilings=RATES)
    told = " ".join(each.text for each in section.findings(alone))
    assert (
        told.count("Single process, or two that disagree: no verdict.") == 1
        and "faster" not in told
        and "slower" not in told
    )


def test_ratios_by_precision_are_named_together_where_they_are_alike(tmp_path):
    rows = [made.timing(name, precision, gpu=gpu) for precision in ("fp32", "bf16", "fp16")
            for name, gpu in (("a", made.A100), ("l", made.L40S))]  # fmt: skip
    found = findings.limits(grid_of(tmp_path, *rows), "l")
    assert "rates, 4.70 in fp32, 1.16 in bf16 and fp16 (data sheet), in" in found.text


def test_machines_without_a_cell_in_common(tmp_path):
    grid = grid_of(tmp_path, made.timing("old"), made.timing("new", context=256))
    assert findings.speed_up(grid, "new").numbers == {} and tables.summary_table(grid) is None


def test_the_fastest_of_three(tmp_path):
    rows = [made.timing(name, ms=ms) for name, ms in (("a", 30.0), ("b", 20.0), ("c", 10.0))]
    rows += [made.timing(name, ms=ms, context=256) for name, ms in (("a", 30.0), ("b", 10.0), ("c", 10.1))]
    rows += [made.timing("a", context=512)]
    assert values(findings.fastest(grid_of(tmp_path, *rows))) == {"c": 1, "none": 1}


def test_one_machine_has_no_findings_and_no_section(tmp_path):
    found = made.write(tmp_path / "tables", timing=[made.timing("old")], ceilings=ceilings("old", "Unheard"))
    assert not section.applies(found) and section.findings(found) == []
    text, html = made.pages(tmp_path, found)
    assert "side by side" not in text + html and "Machines are compared cell by cell" not in text


# Mixed precision ------------------------------------------------------------------------------------------------------


def test_mixed_precision_on_each_machine(tmp_path):
    rows = [*both(20.0, 10.0), *both(10.0, 12.0, precision="bf16")]
    table = tables.mixed_table(grid_of(tmp_path, *rows))
    assert [(column.group, column.label) for column in table.columns[2:]] == [
        ("bf16 over fp32", "old"), ("bf16 over fp32", "new")
    ]  # fmt: skip
    assert [(cell.text, cell.below) for cell in table.rows[0][2:]] == [
        ("2.00", "[1.98, 2.02]"),
        ("0.83", "[0.827, 0.840] slower"),
    ]
    assert tables.mixed_table(grid_of(tmp_path / "b", *rows[:3])) is None


def test_mixed_precision_of_two_batches_has_a_row_each(tmp_path):
    # Batch 8 is on the old machine only: 10 ms over 1 ms; batch 3 is on both, 10 ms over 5 ms and over 4 ms.
    rows = [*both(10.0, 10.0), *both(5.0, 4.0, precision="bf16")]
    rows += [made.timing("old", ms=10.0, batch=8), made.timing("old", "bf16", ms=1.0, batch=8)]
    table = tables.mixed_table(grid_of(tmp_path, *rows))
    assert [column.label for column in table.columns] == ["size", "context", "batch", "old", "new"]
    assert [texts(row)[2:] for row in table.rows] == [["3", "2.00", "2.50"], ["8", "10.00", "–"]]


def test_a_newer_machine_in_16_bits_that_loses_to_an_older_one_in_fp32(tmp_path):
    # In bf16 the new one computes at 400 against 10 TFLOP/s, and takes 12 against 10 ms.
    rows = [*both(10.0, 14.0), *both(6.0, 12.0, precision="bf16"), *both(10.0, 2.0, context=256)]
    rows += [*both(6.0, 1.0, precision="bf16", context=256)]
    grid = grid_of(tmp_path, *rows, ceilings=RATES)
    found = side_by_side.inversions(grid)
    assert [(each.machine, each.precision, each.other, each.point.name) for each in found] == [
        ("old", "bf16", "new", "small at 256"), ("new", "bf16", "old", "small at 128")
    ]  # fmt: skip
    told = findings.of_inversions(grid, found)[1]
    assert values(told) == {"slower": 1, "both": 2, "own": 12.0, "other": 10.0, "rates": 40.0}
    assert told.numbers["other"].cells == ("old/timing/small/ctx128/fp32/1",)
    shown = texts(tables.inversions_table(found).rows[1])
    assert shown == ["new", "bf16", "old", "small", "128", "12.0", "10.0", "0.83"]


def test_a_machine_that_must_be_slower_is_no_inversion(tmp_path):
    slow = [*ceilings("old", "Unheard", fp32=500.0, bf16=500.0), *ceilings("new", "Unheard", fp32=1.0, bf16=2.0)]
    rows = [*both(10.0, 90.0), *both(10.0, 80.0, precision="bf16")]
    grid = grid_of(tmp_path, *rows, ceilings=slow)
    assert side_by_side.inversions(grid) == [] and tables.inversions_table([]) is None
    assert [values(each) for each in findings.of_inversions(grid, [])] == [{}]


def test_without_rates_the_time_in_fp32_says_who_should_be_faster(tmp_path):
    # The new one is faster in fp32 (9 against 10 ms), and slower in bf16 (12 ms) than the old one in fp32.
    rows = [*both(10.0, 9.0), *both(11.0, 12.0, precision="bf16")]
    (found,) = side_by_side.inversions(grid_of(tmp_path, *rows))
    assert (found.machine, found.other, found.speed.ratio) == ("new", "old", pytest.approx(10 / 12))
    # Slower in fp32 as well: nothing that should surprise.
    assert side_by_side.inversions(grid_of(tmp_path / "b", *both(10.0, 20.0), *both(9.0, 15.0, precision="bf16"))) == []


# The other studies ----------------------------------------------------------------------------------------------------


def attention_of(folder, *cells) -> side_by_side.Shared:
    return side_by_side.attention(made.write(folder, attention=[row for cell in cells for row in cell]), BOTH)


def test_attention_at_the_longest_length_that_all_finished(tmp_path):
    gone = {"status": "oom", "median_ms": None}
    new = [row | (gone if row["length"] == 16384 else {}) for row in made.attention("new", 0.5)]
    found = attention_of(tmp_path, made.attention("old"), new)
    # 16 ms forward and 32 ms backward at 4,096 on the old one, half of it on the new one.
    ((row,),) = (table.rows for table in tables_studies.attention_tables(found))
    assert texts(row) == ["naive", "bf16", "16", "4,096", "2.00", "2.00"]
    assert [cell.below for cell in row[4:]] == ["[1.98, 2.02], 16.0 → 8.00", "[1.98, 2.02], 32.0 → 16.0"]
    assert values(findings.of_attention(found)) == {"on_new": [2.0, 2.0]}


def test_attention_without_a_length_in_common(tmp_path):
    gone = [row | {"status": "unsupported", "median_ms": None} for row in made.attention("new")]
    found = attention_of(tmp_path, made.attention("old"), gone)
    (table,) = tables_studies.attention_tables(found)
    assert table.rows[0][4].badges == ("unsupported",) and table.rows[0][4].below == "256 → –"
    assert findings.of_attention(found) is None
    alone = attention_of(tmp_path / "b", made.attention("old"))
    assert alone.points == [] and findings.of_attention(alone) is None


def test_attention_that_is_the_same(tmp_path):
    found = attention_of(tmp_path, made.attention("old"), made.attention("new", 1.01))
    (table,) = tables_studies.attention_tables(found)
    assert (table.rows[0][4].text, table.rows[0][4].below.split(",")[1]) == ("0.99", " 0.998] same")


def memory_of(folder, *rows, labels=BOTH) -> side_by_side.Shared:
    return side_by_side.memory(made.write(folder, memory=rows), labels)


def test_peaks_beside_the_closed_form(tmp_path):
    rows = [made.memory("old", 2 * GIB), made.memory("new", 1.5 * GIB, predicted=1.5 * GIB)]
    rows += [made.memory("old", 3 * GIB, "oom", "oom"), made.memory("new", 4 * GIB, "oom")]
    found = memory_of(tmp_path, *rows)
    table = tables_studies.memory_table(found)
    shown = {row[0].text: [(cell.text, cell.below, cell.badges) for cell in row[4:]] for row in table.rows}
    assert shown["small"] == [("2.000 or 1.500", "", ()), ("2.000", "", ()), ("1.500", "", ()),
                              ("−512 MiB", "−25 %", ())]  # fmt: skip
    assert shown["oom"][1:] == [("", "", ("oom",)), ("4.000", "", ()), ("–", "", ())]
    least, fits = findings.of_memory(found)
    assert values(least) == {"widest": pytest.approx(1 / 3), "new": 1} and "on new in the 1 cell" in least.text
    assert values(fits) == {"fitting": 1} and "oom at 128 (fp32, step) fits on new only" in fits.text


def test_a_machine_whose_cell_failed_may_fit_or_not(tmp_path):
    rows = [made.memory("a", GIB), made.memory("b", None, status="oom"), made.memory("c", None, status="failed")]
    (fits,) = findings.of_memory(memory_of(tmp_path, *rows, labels=["a", "b", "c"]))
    assert fits.text.endswith("fits on a, but not on b; of c it is not known.")


def test_a_study_that_one_of_three_machines_lacks_compares_the_others(tmp_path):
    found = made.write(
        tmp_path / "tables",
        timing=[made.timing(name) for name in ("a", "b", "c")],
        memory=[made.memory("a", 4 * GIB), made.memory("b", 5 * GIB)],
        attention=[*made.attention("a"), *made.attention("b", 2.0)],
        ladder=[*made.ladder("a"), *made.ladder("b", steps=(20.0, 5.0))],
    )
    shown = section.context(found)
    for study, table in {**shown, "attention": shown["attention"][0]}.items():
        if study in ("memory", "attention", "ladder"):
            assert f"The {study} study has no cells of c." in table.notes
    assert texts(shown["ladder"].rows[0])[-1] == "2.00" and texts(shown["attention"][0].rows[0])[-1] == "0.50"
    told = " ".join(each.text for each in section.findings(found))
    assert "at the longest length that a and b finished, on b at 0.50 times the speed of a. The attention" in told
    assert "smallest on a in the 1 cell that a and b finished; the largest peak is at most 25 %" in told


def test_the_same_peaks(tmp_path):
    found = memory_of(tmp_path, made.memory("old", 2 * GIB), made.memory("new", 2 * GIB))
    assert [values(each) for each in findings.of_memory(found)] == [{"widest": 0.0}]
    alone = memory_of(tmp_path / "b", made.memory("old", 2 * GIB))
    assert findings.of_memory(alone) == [] and tables_studies.memory_table(alone) is None


def test_peaks_that_are_smaller_here_and_there(tmp_path):
    rows = [made.memory("old", 2 * GIB), made.memory("new", 3 * GIB), made.memory("old", 4 * GIB, "b")]
    rows += [made.memory("new", 2 * GIB, "b"), made.memory("old", 5 * GIB, "c"), made.memory("new", 5 * GIB, "c")]
    (least,) = findings.of_memory(memory_of(tmp_path, *rows))
    assert values(least) == {"widest": 1.0, "old": 1, "new": 1}


def test_the_ends_of_the_ladder(tmp_path):
    names = ("fp32", "bf16", "graphs")
    rows = [*made.ladder("old", names, (40.0, 10.0, 5.0)), *made.ladder("new", names, (20.0, 4.0, None))]
    found = side_by_side.ladder(made.write(tmp_path, ladder=rows), BOTH)
    table = tables_studies.ladder_table(found)
    assert [texts(row) for row in table.rows] == [["small", "128", "fp32", "2.00"], ["small", "128", "bf16", "2.50"]]
    ((last, gains),) = side_by_side.whole_ladders(found)
    assert (last.value("name"), gains) == ("bf16", {"old": 4.0, "new": 5.0})
    alone = side_by_side.ladder(made.write(tmp_path / "b", ladder=rows[:3]), BOTH)
    assert tables_studies.ladder_table(alone) is None


# The report -----------------------------------------------------------------------------------------------------------


def test_the_section_in_both_outputs(tmp_path):
    rows = [*both(), *both(precision="bf16"), made.lost("new", context=512), made.timing("old", context=512)]
    text, html = made.pages(tmp_path, made.write(tmp_path / "tables", timing=rows, ceilings=RATES))
    part = text[text.index("## Machines side by side") :]
    assert "figures/hardware_speedup.svg" in part
    assert 'id="data-hardware"' in html
    assert not re.search(r"[{}]|\bnan\b|\bNone\b|\binf\b", part)
    rich, plain = Page(html).tables, markdown_page(text).tables
    assert len(rich) >= len(plain) > 4
    assert all(len(row) == len(table[0]) for table in plain for row in table)


def test_machines_that_share_nothing_still_have_a_section(tmp_path):
    found = made.write(tmp_path / "tables", timing=[made.timing("old")], ceilings=ceilings("new", "Unheard", fp32=1.0))
    text, _ = made.pages(tmp_path, found)
    assert "No cell of the timing study has a time on the baseline and on another machine." in text
    assert "1 cell of the timing study is in the grid of one machine alone and left out here." in text


def test_findings_without_any_table(tmp_path):
    assert section.findings(made.write(tmp_path)) == []
    assert findings.speed_up(grid_of(tmp_path, ceilings=RATES), "new") is None
