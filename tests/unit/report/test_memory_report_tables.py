"""The memory section's tables: every number against one that was worked out by hand from synthetic_memory."""

import pandas as pd
import pytest
import synthetic_memory as made
from stepscope.report.data.memory import Memory, limits, part, peak_changes, saved_by_block, title
from stepscope.report.kit.sizes import change, percent_change, size
from stepscope.report.studies.memory import section, tables_blocks, tables_cell
from stepscope.report.studies.memory import tables as memory_tables
from stepscope.tables.reader import Tables

MIB, GIB = 2**20, 2**30


def memory_of(folder, cells, timings=(), change=None) -> Memory:
    return Memory(Tables(made.write(folder, cells, timings, change), ["memory", "timing"]))


def column(table, label: str, group: str = "") -> list:
    """A column's cells."""
    at = next(i for i, one in enumerate(table.columns) if (one.label, one.group) == (label, group))
    return [row[at] for row in table.rows]


def texts(table, label: str, group: str = "") -> list[str]:
    return [cell.text for cell in column(table, label, group)]


@pytest.fixture
def four(tmp_path):
    """fp32 and bf16, inference and step."""
    held = {"parameters": 100, "activations": 60}
    cells = [made.cell(), made.cell("bf16")]
    place = {"mode": "inference", "peak_place": ("inference", "LM head")}
    cells.append(made.cell(held=held, **place))
    cells.append(made.cell("bf16", held=held | {"activations": 30, "cast weights": 50}, **place))
    return memory_of(tmp_path, cells, [made.timing(cells[0]), made.timing(cells[1], step_ms=25.0)])


def test_sizes_in_the_unit_that_suits():
    sizes = {4: "4 B", 2048: "2.00 KiB", 64 * MIB: "64.0 MiB", 1.5 * GIB: "1.50 GiB", 0: "0 B"}
    assert {value: size(value) for value in sizes} == sizes
    assert size(None) == "" and size(float("nan")) == ""
    assert [change(value) for value in (-3 * GIB, 512 * MIB, 0)] == ["−3.00 GiB", "+512 MiB", "±0 B"]
    shares = {-0.25: "−25 %", 0.004: "+0.40 %", 0: "±0 %", 1e-7: "±0 %", None: ""}
    assert {share: percent_change(share) for share in shares} == shares


def test_peaks_beside_time_and_rate_of_the_same_point(four):
    table = memory_tables.peaks_table(four)
    assert texts(table, "mode") == ["inference", "inference", "step", "step"]
    assert texts(table, "precision") == ["fp32", "bf16", "fp32", "bf16"]
    # 160, 180, 1,000 and 800 MiB and 2.4 % of rounding; one of them reaches 1 GiB, so the column is in GiB.
    assert texts(table, "allocated", "peak (GiB)") == ["0.1600", "0.1800", "1.000", "0.8000"]
    assert texts(table, "reserved", "peak (GiB)") == ["0.1953", "0.2197", "1.221", "0.9766"]
    assert texts(table, "mean", "timing study") == ["11.00 ± 0.50", "6.00 ± 0.50", "51.00 ± 0.50", "26.00 ± 0.50"]
    assert texts(table, "tokens/s", "timing study") == ["51,200", "102,400", "10,240", "20,480"]
    assert texts(table, "model made", "allocated once … (GiB)") == ["0.1074"] * 4
    assert texts(table, "first step done", "allocated once … (GiB)")[2:] == ["0.3027"] * 2
    assert [(cell.text, cell.below) for cell in column(table, "peak lies in")][:3:2] == [
        ("inference", "LM head"), ("backward", "loss"),
    ]  # fmt: skip


def test_time_is_of_the_very_point(tmp_path):
    row = made.cell()
    others = {"context": 256, "batch": 8, "precision": "bf16", "attention": "sdpa", "hardware": "other"}
    others = [made.timing(row | {name: value}) for name, value in others.items()]
    table = memory_tables.peaks_table(memory_of(tmp_path, [row], others))
    assert texts(table, "mean", "timing study") == ["–"]
    assert any("measured none of these points" in note for note in table.notes)


def test_a_point_that_timing_could_not_measure_says_why(tmp_path):
    row = made.cell()
    timed = made.timing(row, step_status="oom", step_mean_ms=None, step_median_ms=None, step_tokens_per_s=None)
    (cell,) = column(memory_tables.peaks_table(memory_of(tmp_path, [row], [timed])), "mean", "timing study")
    assert (cell.text, cell.badges) == ("", ("oom",))


def test_on_a_cpu_the_peak_is_the_snapshots(tmp_path):
    table = memory_tables.peaks_table(memory_of(tmp_path, [made.cpu(made.cell())]))
    labels = [one.label for one in table.columns]
    assert "reserved" not in labels and "model made" not in labels
    assert texts(table, "allocated", "peak (MiB)") == ["1,000"] and texts(table, "resident", "peak (MiB)") == ["2,048"]
    assert "On a CPU, which has no such counter" in table.notes[0]


def test_unused_is_told_of_an_allocator_alone(tmp_path):
    def as_recorded_on_a_cpu(frames):
        frames["memory_summary"]["reserved_at_peak_bytes"] = 1250 * MIB
        frames["memory_summary"]["unused_at_peak_bytes"] = 250 * MIB

    cells = [made.cell(), made.cpu(made.cell(hardware="cpu"))]
    table = memory_tables.categories_table(memory_of(tmp_path, cells, change=as_recorded_on_a_cpu))
    assert sorted(texts(table, "unused")) == ["20.0", "–"]


def test_an_account_of_what_ran_out_in_the_warm_up_says_so(tmp_path):
    def unmeasured(frames):
        frames["memory_accounting"]["measured_bytes"] = None

    memory = memory_of(tmp_path, [made.out_of_memory(made.cell())], change=unmeasured)
    table = tables_cell.accounts_table(memory, memory.recorded[0])
    assert set(texts(table, "measured")) == set(texts(table, "difference")) == {"–"}
    assert "ran out before a whole step was seen" in table.notes[-1]
    assert tables_blocks.accounting_table(memory) is None
    whole = memory_of(tmp_path / "whole", [made.cell()])
    assert len(tables_cell.accounts_table(whole, whole.recorded[0]).notes) == 1


def test_categories_with_their_shares(four):
    table = memory_tables.categories_table(four)
    group = "alive at the peak (MiB, % of the sum)"
    assert texts(table, "sum") == ["160.0", "180.0", "1,000", "800.0"]
    activations = [(cell.text, cell.below) for cell in column(table, "activations", group)]
    assert activations == [("60.0", "37.5 %"), ("30.0", "16.7 %"), ("600", "60.0 %"), ("350", "43.8 %")]
    assert texts(table, "cast weights", group) == ["0", "50.0", "0", "50.0"]
    labels = [one.label for one in table.columns]
    assert "gradients" not in labels and "unknown" not in labels
    assert [(cell.text, cell.below) for cell in column(table, "unused")] == [
        ("20.0", "40.0 MiB"), ("20.0", "45.0 MiB"), ("20.0", "250 MiB"), ("20.0", "200 MiB"),
    ]  # fmt: skip


def test_bf16_saves_in_a_step_and_loses_in_inference(four):
    found = peak_changes(four)
    assert [round(pair.share, 9) for pair in found] == [0.125, -0.2]
    assert found[1].named(-1) == {"activations": -250 * MIB}
    assert found[1].named(1) == {
        "cast weights": 50 * MIB
    }  # and 4 MiB less of buffers and more of workspace: too little
    table = memory_tables.precision_table(four)
    assert texts(table, "bytes", "difference") == ["+20.5 MiB", "−205 MiB"]
    assert texts(table, "%", "difference") == ["+12", "−20"]
    assert texts(table, "less of") == ["activations −30.0 MiB", "activations −250 MiB"]
    assert texts(table, "more of") == ["cast weights +50.0 MiB", "cast weights +50.0 MiB"]
    assert "precision" not in [one.label for one in table.columns]


def test_a_peak_that_moved_has_no_categories_to_compare(tmp_path):
    memory = memory_of(tmp_path, [made.cell(), made.cell("bf16", peak_place=("backward", "blocks.3/FFN"))])
    table = memory_tables.precision_table(memory)
    assert texts(table, "less of") == ["the peak moved"] and texts(table, "more of") == ["–"]
    assert texts(table, "%", "difference") == ["−20"]


def test_no_table_with_one_precision(tmp_path):
    memory = memory_of(tmp_path, [made.cell("bf16"), made.cell("fp16", context=256)])
    assert peak_changes(memory) == [] and memory_tables.precision_table(memory) is None


def test_a_precision_that_alone_fits(tmp_path):
    memory = memory_of(tmp_path, [made.out_of_memory(made.cell()), made.cell("bf16")])
    (pair,) = peak_changes(memory)
    assert pair.share is None and pair.changes == {}
    table = memory_tables.precision_table(memory)
    assert texts(table, "less of") == ["fits only in bf16"] and texts(table, "%", "difference") == ["–"]
    assert column(table, "fp32", "peak")[0].badges == ("oom",) and column(table, "bf16", "peak")[0].badges == ()


def test_predicted_against_measured(four):
    table = memory_tables.predicted_table(four)
    assert texts(table, "measured", "peak") == ["160 MiB", "180 MiB", "1,000 MiB", "800 MiB"]
    assert texts(table, "as asked for", "difference (%)") == ["−6.2", "−5.6", "−1.0", "−1.2"]
    assert texts(table, "predicted less measured")[:3] == ["activations −10.0 MiB", "activations −10.0 MiB", "–"]


def test_no_causes_where_all_are_near(tmp_path):
    table = memory_tables.predicted_table(memory_of(tmp_path, [made.cell()]))
    assert "predicted less measured" not in [one.label for one in table.columns]


def test_what_ran_out_of_memory_has_no_difference(tmp_path):
    table = memory_tables.predicted_table(memory_of(tmp_path, [made.out_of_memory(made.cell())]))
    assert texts(table, "as asked for", "difference (%)") == ["–"]
    assert column(table, "measured", "peak")[0].badges == ("oom",)
    assert texts(table, "measured", "it lies in") == ["forward, then OOM"]


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        ({128: "ok", 512: "ok"}, "not reached"),
        ({128: "ok", 1024: "oom"}, "as predicted"),
        ({1024: "oom"}, "as predicted"),
        ({700: "oom"}, "as predicted"),
        ({700: "ok"}, "more fits than predicted"),
        ({128: "ok", 699: "oom"}, "less fits than predicted"),
        ({128: "failed"}, ""),
    ],
)
def test_the_first_context_that_does_not_fit(tmp_path, statuses, verdict):
    cells = [made.cell(context=context, status=status) for context, status in statuses.items()]
    memory = memory_of(tmp_path, cells)
    (limit,) = limits(memory)
    assert limit.verdict == verdict
    table = memory_tables.limits_table(memory)
    assert texts(table, "predicted to be too long from") == ["700"] and texts(table, "") == [verdict or "–"]


def test_without_a_capacity_there_is_no_limit(tmp_path):
    memory = memory_of(tmp_path, [made.cpu(made.cell())])
    assert memory_tables.limits_table(memory) is None


def test_a_block(four):
    table = tables_blocks.block_table(four)
    block = "saved by one block"
    assert texts(table, "residual stream") == ["0.125", "0.125"]  # 4 × 128 × 64 × 4 B
    assert column(table, "residual stream")[0].below == "4 × 128 × 64 × 4 B"
    assert texts(table, "measured", block) == ["200 MiB"] * 2 and texts(table, "formula", block) == ["−1.0"] * 2
    assert texts(table, "5 largest", block) == ["84.0"] * 2 and texts(table, "context²", block) == ["48.0"] * 2
    assert [(cell.text, cell.below) for cell in column(table, "in all", "saved")] == [("440 MiB", "−0.91 %")] * 2
    assert texts(table, "one block's gradients") == ["24.0 MiB"] * 2


def test_the_largest_of_a_block_at_each_context(tmp_path):
    def shrink(frames):
        """At context 256 the softmax's tensor is the smallest: then the FFN's silu and mul are among the largest."""
        saved = frames["memory_saved"].reset_index(drop=True)
        small = (saved["context"] == 256) & (saved["op"] == "sub")
        saved.loc[small, "bytes"] = 1 * MIB
        frames["memory_saved"] = saved

    memory = memory_of(tmp_path, [made.cell(), made.cell(context=256)], change=shrink)
    table = tables_blocks.contributors_table(memory)
    assert texts(table, "part of the block") == ["FFN", "attention, attention × V", "FFN norm", "attention norm", "FFN",
                                                 "attention, softmax"]  # fmt: skip
    assert texts(table, "256", "context (tokens)") == ["32.0", "32.0", "20.0", "20.0", "16.0", "1.00"]
    assert column(table, "128", "context (tokens)")[-1].text == "64.0"
    assert column(table, "128", "context (tokens)")[-1].below == "32.0 %"
    assert column(table, "256", "context (tokens)")[-1].below == "0.7 %"  # 1 of 137
    assert texts(table, "size of one")[0] == "2 times batch × context × d_ff × 4 B"


def test_a_formula_that_is_not_known_leaves_the_share_open(tmp_path):
    def forget(frames):
        frames["memory_saved"]["formula"] = None

    memory = memory_of(tmp_path, [made.cell()], change=forget)
    assert saved_by_block(memory, memory.measured[0]).squared_share is None
    assert texts(tables_blocks.block_table(memory), "context²", "saved by one block") == ["–"]
    assert texts(tables_blocks.contributors_table(memory), "size of one")[0] == "4×128, float32"


def test_what_memory_ran_out_on_the_way_to_saving_is_not_shown(tmp_path):
    assert tables_blocks.block_table(memory_of(tmp_path, [made.out_of_memory(made.cell())])) is None


def test_accounting_holds_equal_rows_once(four):
    table = tables_blocks.accounting_table(four)
    # In MiB: 200, 100, 100 (parameters: all four cells), 24, and the copies of weights, 50 for 40.
    items = ["optimizer state", "parameters", "gradients", "cast weights", "gradients of a block"]
    assert texts(table, "item") == items
    assert texts(table, "difference") == ["±0", "±0", "±0", "+25", "±0"]
    assert texts(table, "in") == [
        "fp32 and bf16; step; 2 cells", "fp32 and bf16; inference and step; 4 cells", "fp32 and bf16; step; 2 cells",
        "bf16; inference and step; 2 cells", "fp32 and bf16; step; 2 cells",
    ]  # fmt: skip


def test_tables_of_a_cell(four):
    row = next(row for row in four.measured if row["mode"] == "step" and row["precision"] == "fp32")
    largest = tables_cell.largest_table(four, row)
    assert column(largest, "line of code")[0].title == "scripts/stepscope/model/softmax.py:17 softmax"
    accounts = tables_cell.accounts_table(four, row)
    assert texts(accounts, "difference")[:6] == ["±0", "±0", "±0", "±0", "±0", "−1.0"]
    saved = tables_blocks.saved_table(four, row)
    assert saved.caption == "s, context 128, fp32, step: what one block saves for backward, 200 MiB."
    assert texts(saved, "share")[0] == "32.0" and len(saved.rows) == 7


def test_many_lines_are_put_together(tmp_path):
    def many(frames):
        lines = frames["memory_peak_lines"]
        frames["memory_peak_lines"] = lines.loc[lines.index.repeat(10)].assign(bytes=50 * MIB, blocks=2)

    memory = memory_of(tmp_path, [made.cell()], change=many)
    table = tables_cell.lines_table(memory, memory.measured[0])
    last = [cell.text for cell in table.rows[-1][:4]]
    assert len(table.rows) == 13 and last == ["400 MiB", "40.0", "16", "8 more rows"]


def test_another_device_of_the_process_is_not_mixed_in(tmp_path):
    def second(frames):
        for name in ("summary", "peak"):
            frame = frames[f"memory_{name}"]
            other = frame.assign(device=1, **{"peak_bytes" if name == "summary" else "bytes": MIB})
            frames[f"memory_{name}"] = pd.concat([other, frame, other.assign(device=2)])

    memory = memory_of(tmp_path, [made.cell()], change=second)
    assert memory.requested(memory.measured[0]) == 1000 * MIB
    assert memory.at_peak(memory.measured[0])["activations"] == 600 * MIB


def test_the_largest_that_finished_are_shown(tmp_path):
    small = {"parameters": 10}
    cells = [made.cell(), made.cell(context=256, held=small), made.out_of_memory(made.cell(context=512))]
    cells += [made.cell(mode="inference", held=small)]
    memory_of(tmp_path, cells)
    context = section.context(Tables(tmp_path, ["memory"]))
    assert [cell["title"] for cell in context["shown"]] == [
        "s, context 128, fp32, inference",
        "s, context 128, fp32, step",
    ]
    openly = [table for cell in context["shown"] for table in cell["tables"]]
    folded = [table for cell in context["cells"] for table in cell["tables"]]
    assert not {table.name for table in openly} & {table.name for table in folded}
    assert [cell["shown"] for cell in context["cells"]] == [True, True, False, False]


def test_both_timelines_are_of_one_point(tmp_path):
    cells = [made.cell(), made.cell(context=256), made.cell(mode="inference")]
    cells += [made.cell(mode="inference", context=512)]  # larger than any, but beside no step
    cells[3]["peak_allocated_bytes"] = 10 * cells[1]["peak_allocated_bytes"]
    memory_of(tmp_path, cells)
    shown = section.context(Tables(tmp_path, ["memory"]))["shown"]
    assert [cell["title"] for cell in shown] == ["s, context 128, fp32, inference", "s, context 128, fp32, step"]


def test_without_a_common_point_the_largest_of_each_are_shown(tmp_path):
    memory_of(tmp_path, [made.cell(), made.cell(mode="inference", context=512)])
    shown = section.context(Tables(tmp_path, ["memory"]))["shown"]
    assert [cell["title"] for cell in shown] == ["s, context 512, fp32, inference", "s, context 128, fp32, step"]


def test_names(four):
    row = four.measured[2]
    assert title(row, four) == "s, context 128, fp32, step"
    assert title(row, four, ("mode", "size")) == "context 128, fp32"
    assert part("blocks.3/attention/softmax") == "blocks.3: attention, softmax" and part("") == ""
