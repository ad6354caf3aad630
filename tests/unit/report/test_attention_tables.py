"""The attention section's tables: every number against one that was worked out by hand from synthetic_attention."""

import pytest
import synthetic_attention as made
from stepscope.report.data import attention_growth
from stepscope.report.data.attention import Attention
from stepscope.report.studies.attention import tables as attention_tables
from stepscope.report.studies.attention import tables_series
from stepscope.tables.reader import Tables


def attention_of(folder, rows, limits=()) -> Attention:
    return Attention(Tables(made.write(folder, rows, limits), ["attention", "ceilings"]))


def group_of(folder, rows):
    (group,) = attention_of(folder, rows).groups
    return group


def texts(table, label: str, group: str = "", below: bool = False) -> list[str]:
    at = next(i for i, one in enumerate(table.columns) if (one.label, one.group) == (label, group))
    return [row[at].below if below else row[at].text for row in table.rows]


def badges(table, label: str) -> list[tuple]:
    at = [one.label for one in table.columns].index(label)
    return [row[at].badges for row in table.rows]


@pytest.fixture
def grid(tmp_path):
    return attention_of(tmp_path, made.grid(), made.ceilings())


def test_settings_are_groups_of_their_own(grid):
    assert [group.place for group in grid.groups] == [
        "on gpu; batch 8, no heads, not causal",
        "on gpu; batch × length = 16,384 tokens, heads × d = 2,048, causal",
    ]
    assert grid.groups[0].values("precision") == ["fp32", "tf32", "bf16"]
    assert grid.groups[1].values("implementation") == list(made.TIMES)


def test_times_of_implementations_side_by_side(grid):
    table = attention_tables.times_table(grid.groups[0], "bf16")
    assert [one.label for one in table.columns] == ["d", "length", *made.TIMES]
    assert texts(table, "d") == ["16"] * 3 + ["64"] * 3 + ["128"] * 3
    assert texts(table, "naive")[:3] == ["1.00 / 2.00", "16.0 / 32.0", "256 / 512"]
    assert texts(table, "compiled")[3:6] == ["0.500 / 1.00", "8.00 / 16.0", "128 / 256"]
    # d = 128 takes eight times as long as d = 16: 0.05 × 8, × 16, × 16
    assert texts(table, "sdpa-flash")[6:] == ["0.400 / 0.800", "6.40 / 12.8", "102 / 205"]
    assert texts(attention_tables.times_table(grid.groups[0], "tf32"), "naive")[0] == "3.00 / 6.00"


def test_memory_before_backward(grid):
    table = attention_tables.memory_table(grid.groups[0], "bf16")
    assert texts(table, "naive")[:3] == ["96.0", "1,536", "24,576"]
    assert texts(table, "triton")[6:] == ["8.00", "32.0", "128"]
    kinds = {name: attention_tables.memory_table(grid.groups[0], name).folded for name in ("fp32", "tf32", "bf16")}
    assert kinds == {"fp32": False, "tf32": True, "bf16": False}


def test_all_of_one_d(grid):
    tables = attention_tables.detail_tables(grid.groups[0])
    assert len(tables) == 9 and all(table.folded for table in tables)
    (table,) = [table for table in tables if table.caption.startswith("d = 64, bf16, on gpu")]
    assert texts(table, "length") == ["1,024", "4,096", "16,384"]
    # ± 2 × 0.5 % / √3 is 0.577 %; of a ratio √2 of that.
    assert texts(table, "forward", "compiled") == ["0.5000 ± 0.0029", "8.000 ± 0.046", "128.0 ± 0.7"]
    assert texts(table, "backward", "compiled", below=True) == ["× 2.00 [1.98, 2.02]"] * 3
    assert texts(table, "forward", "naive", below=True) == [""] * 3
    assert texts(table, "forward", "triton", below=True) == ["× 6.25 [6.20, 6.30]"] * 3  # 1 / (0.04 × 4)
    # 4, 16 and 64 MiB of 96, 1,536 and 24,576
    assert texts(table, "before backward", "triton", below=True) == ["4.2 %", "1.0 %", "0.26 %"]
    assert texts(table, "peak", "naive") == ["288", "4,608", "73,728"]
    assert texts(table, "peak", "naive", below=True) == ["192", "3,072", "49,152"]


def test_a_speed_up_within_the_noise_stands_in_brackets(tmp_path):
    slow = [row | made.timed(1.015) if row["direction"] == "forward" else row for row in made.cell("compiled", 16)]
    group = group_of(tmp_path, [*made.cell(lengths=[1024]), *slow[:2]])
    (table,) = attention_tables.detail_tables(group)
    # ± 0.82 % about 1 / 1.015: it may be slower by more than 2 %, or not.
    assert texts(table, "forward", "compiled", below=True) == ["(× 0.99) [0.977, 0.993]"]
    assert texts(table, "backward", "compiled", below=True) == ["× 2.00 [1.98, 2.02]"]


def test_results_are_compared_at_the_same_point_where_both_have_a_time(tmp_path):
    lost = made.without_result(made.cell("compiled"), "oom", "", (16384,))
    group = group_of(tmp_path, [*made.cell(), *lost, *made.cell("compiled", 64)])
    found = group.over_naive
    assert [(own["implementation"], own["d_head"], own["length"], own["direction"]) for own, _, _ in found] == [
        ("compiled", 16, length, way) for length in (1024, 4096) for way in ("forward", "backward")
    ]
    assert all(other["implementation"] == "naive" and each.ratio == 2.0 for _, other, each in found)


def test_all_results_beside_naive_attention_are_judged_together(tmp_path):
    # 2.78 % is a p-value of 0.03: alone it counts, among six results of which five are the same it does not.
    rows = [row | made.timed(row["median_ms"] * 2.0) for row in made.cell("compiled")]
    rows[0] |= made.timed(rows[0]["median_ms"] * 1.0278)
    many = group_of(tmp_path, [*made.cell(), *rows]).over_naive
    assert [each.speed.verdict for each in many] == ["unclear"] + ["same"] * 5
    (alone,) = group_of(tmp_path / "alone", [*made.cell()[:1], rows[0]]).over_naive
    assert alone.speed.verdict == "slower"


def test_what_has_no_result_says_why(tmp_path):
    rows = made.without_result(made.cell(), "oom", "CUDA out of memory", (16384,), ("backward",))
    rows += made.without_result(made.cell("sdpa-cudnn"), "unsupported", "no such kernel")
    rows += made.without_result(made.cell("flex"), "failed", "exit code 3")
    noisy = made.cell("triton")
    rows += [noisy[0] | {"noisy": True}, *(row | {"throttle": "power cap"} for row in noisy[1:])]
    table = attention_tables.times_table(group_of(tmp_path, rows), "bf16")
    assert texts(table, "naive")[2] == "256 / –" and badges(table, "naive") == [(), (), ("oom",)]
    assert badges(table, "sdpa-cudnn") == [("unsupported",)] * 3 and badges(table, "flex") == [("failed",)] * 3
    assert badges(table, "triton") == [("noisy",), (), ()]
    (detail,) = attention_tables.detail_tables(group_of(tmp_path, rows))
    forward = [i for i, one in enumerate(detail.columns) if (one.label, one.group) == ("forward", "triton")]
    assert [row[forward[0]].badges for row in detail.rows] == [("noisy",), ("throttled",), ("throttled",)]


def test_no_table_where_nothing_was_tried(tmp_path):
    group = group_of(tmp_path, made.cpu(made.cell(precision="fp32")))
    assert attention_tables.memory_table(group, "fp32") is None
    (detail,) = attention_tables.detail_tables(group)
    assert [one.label for one in detail.columns] == ["length", "forward", "backward"]
    assert attention_tables.ours_table(group, "fp32") is None and attention_tables.tf32_table(group) is None


def test_tf32_takes_a_quarter_less_time(grid):
    table = attention_tables.tf32_table(grid.groups[0])
    assert [(one.label, one.group) for one in table.columns[2:]] == [
        ("forward", "naive"), ("backward", "naive"), ("forward", "compiled"), ("backward", "compiled"),
    ]  # fmt: skip
    assert {text for way in ("forward", "backward") for text in texts(table, way, "naive")} == {"1.33"}
    assert attention_tables.tf32_table(grid.groups[1]) is None


def test_tf32_that_may_change_nothing(tmp_path):
    same = [row | made.timed(4.04 * (1 + (row["direction"] == "backward"))) for row in made.cell(precision="tf32")[:2]]
    lost = made.without_result(made.cell(precision="fp32", lengths=[1024, 4096]), "oom", "", (4096,))
    group = group_of(tmp_path, [*lost, *same, *made.cell(precision="tf32", lengths=[4096])])
    table = attention_tables.tf32_table(group)
    assert texts(table, "forward", "naive") == ["0.99", ""] and badges(table, "forward")[1] == ("oom",)
    assert texts(table, "forward", "naive", below=True) == ["[0.982, 0.998] same", ""]
    assert [each.speed.verdict for each in group.tf32_over_fp32] == ["same"] * 2


def test_rates_and_their_share_of_the_measured_product(grid):
    table = attention_tables.rates_table(grid, grid.groups[1], "bf16")
    assert texts(table, "triton", "forward (TFLOP/s)") == ["400"] * 6
    assert texts(table, "triton", "forward (TFLOP/s)", below=True) == ["50 %"] * 6
    assert texts(table, "sdpa-flash", "backward (TFLOP/s)", below=True) == ["20 %"] * 6  # 160 of 800
    assert table.notes[0].endswith("in bf16 on this hardware: 800 TFLOP/s.")
    other = attention_tables.rates_table(grid, grid.groups[0], "fp32")
    assert set(texts(other, "naive", "forward (TFLOP/s)", below=True)) == {""}
    assert other.notes[0] == "No matrix product in fp32 was measured on this hardware: no shares."


def test_ours_against_the_others(grid):
    table = attention_tables.ours_table(grid.groups[1], "bf16")
    assert "triton" not in [one.label for one in table.columns]
    assert texts(table, "sdpa-flash", "forward, against") == ["1.25"] * 6
    assert texts(table, "flex", "backward, against") == ["1.000"] * 6
    assert texts(table, "flex", "backward, against", below=True) == ["[0.992, 1.008] same"] * 6
    assert texts(table, "naive", "forward, against") == ["25.00"] * 3 + ["12.50"] * 3  # d = 64 counts as 16 there


def test_growth_with_the_length_and_with_d(grid):
    table = tables_series.growth_table(grid.groups[0])
    names = list(zip(texts(table, "precision"), texts(table, "implementation"), strict=True))
    assert names.index(("bf16", "triton")) == len(names) - 1 and len(names) == 3 + 2 + 6
    # From 4,096 to 16,384, four times the length.
    assert set(texts(table, "lengths")) == {"4,096 to 16,384"}
    grown = texts(table, "memory before backward", "times as much at the longer length")
    assert grown[-6:] == ["16.00"] * 2 + ["4.00"] * 4
    assert texts(table, "forward time", "d = 128 over d = 16")[-6:] == ["1.00"] * 2 + ["8.00"] * 4
    assert set(texts(table, "at length")) == {"16,384"}


def test_growth_is_that_of_the_two_longest_lengths(tmp_path):
    rows = made.cell(lengths=[64, 1024, 4096, 16384])
    flat = [row | made.timed(0.9) if row["length"] == 64 else row for row in rows]
    (forward,) = [one for one in attention_growth.growths(group_of(tmp_path, flat)) if one.quantity == "forward"]
    assert forward.factor == pytest.approx(16) and forward.lengths == (4096, 16384)
    assert tables_series.growth_table(group_of(tmp_path, made.cell(lengths=[64]))) is None


def test_what_the_first_pass_costs(grid):
    table = tables_series.costs_table(grid.groups[0])
    at = texts(table, "implementation").index("compiled")
    # 2 s at three lengths and three d.
    cells = [texts(table, label, way)[at] for way in ("forward", "backward") for label in ("least", "most", "in all")]
    assert cells == ["2.00", "2.00", "18.00"] * 2
    assert texts(table, "in all", "forward")[0] == "0.009"
