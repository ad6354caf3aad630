"""Shapes whose keys, heads or mask are their own, and the host's time for a call: every number worked out by hand."""

import pytest
import synthetic_attention as made
from stepscope.report.chapters.attention import implementations, main_group
from stepscope.report.data.attention import Attention
from stepscope.report.data.attention_memory import largest, ran_out_first
from stepscope.report.data.roofline import attention_groups, attention_points
from stepscope.report.kit.compare import FASTER
from stepscope.report.studies.attention.section import context
from stepscope.report.studies.attention.tables_host import host_table
from stepscope.tables.reader import Tables

PLAIN = {"heads": 32, "causal": "yes", "mask": "causal", "keys": None, "window": None}
SHARED = PLAIN | {"key_value_heads": 8}
WINDOW = PLAIN | {"key_value_heads": 32, "window": 256}
CACHED = PLAIN | {"key_value_heads": 32, "keys": 9000, "mask": "causal-lower-right"}


def special(name: str, way: dict, end: str, **more) -> list[dict]:
    """A cell's rows with columns of their own, and with a name of its own."""
    rows = made.cell(name, 64, lengths=(1024, 4096), **more)
    return [row | way | {"cell": f"{row['cell']}/{end}"} for row in rows]


def tables_of(folder, rows) -> Tables:
    return Tables(made.write(folder, rows), ["attention", "ceilings"])


def attention_of(folder, rows) -> Attention:
    return Attention(tables_of(folder, rows))


def every() -> list[dict]:
    names = ("naive", "triton")
    ways = {"shared": SHARED, "window": WINDOW, "cached": CACHED}
    rows = [row for end, way in ways.items() for name in names for row in special(name, way, end)]
    return [*rows, *made.cell("naive", 64), *made.cell("triton", 64)]


def test_each_shape_is_a_group_of_its_own(tmp_path):
    titles = [group.setting.title for group in attention_of(tmp_path, every()).groups]
    assert titles == [
        "batch 8, no heads, not causal",
        "batch 8, heads × d = 2,048, causal, window 256",
        "batch 8, heads × d = 2,048, causal to the last key, 9,000 keys",
        "batch 8, heads × d = 2,048, causal, 8 key and value heads",
    ]


def test_as_many_heads_of_keys_as_of_queries_are_nothing_special(tmp_path):
    old = made.cell("naive", 64, **made.PAPERS)  # of an older table, without the columns
    new = [row | PLAIN | {"key_value_heads": 32, "implementation": "triton"} for row in old]
    (group,) = attention_of(tmp_path, [*old, *new]).groups
    assert not group.setting.is_special
    assert group.values("implementation") == ["naive", "triton"]


def test_only_equal_shapes_are_compared(tmp_path):
    """Ours takes 0.04 ms x 64 / 16 and naive 1: 6.25 times as fast, each within its own shape."""
    for group in attention_of(tmp_path, every()).groups:
        assert {each.speed.verdict for each in group.over_naive} == {FASTER}
        for each in group.over_naive:
            own, other = each.row["cell"].split("/"), each.reference["cell"].split("/")
            assert own[4:] == other[4:] and abs(each.speed.ratio - 6.25) < 1e-9


def test_what_is_not_special_is_spoken_of_first(tmp_path):
    """Also where special shapes have more results."""
    attention = attention_of(tmp_path, every()[:-6])
    assert main_group(attention, "gpu").setting.title == "batch 8, no heads, not causal"
    only = attention_of(tmp_path, special("naive", WINDOW, "window"))
    assert main_group(only, "gpu").setting.window == 256


def test_the_closed_form_of_naive_attention_is_of_plain_shapes(tmp_path):
    rows = attention_of(tmp_path, made.without_result(special("naive", SHARED, "shared"), "oom", "no more")).rows
    assert ran_out_first(rows) == {}
    assert largest(attention_of(tmp_path, special("naive", SHARED, "shared")).rows) == {}


def test_the_roofline_of_keys_of_their_own(tmp_path):
    """32 heads of 8 sequences: query i of 1,024 sees the keys up to its position, 7,976 + i."""
    tables = tables_of(tmp_path, special("naive", CACHED, "cached"))
    (group,) = attention_groups(tables)
    point = next(each for each in attention_points(group) if (each.tokens, each.phase) == (1024, "forward"))
    pairs = sum(9000 - 1024 + query + 1 for query in range(1024))
    assert point.flop == 4 * 8 * 32 * 64 * pairs
    assert point.bytes == 2 * (8 * 32 * 64 * (1024 + 9000)) * 2


def test_the_section_shows_every_shapes_rates_open_and_its_times_closed(tmp_path):
    shown = context(tables_of(tmp_path, every()))
    assert [(each.folded, "window 256" in each.caption) for each in shown["rates"]] == [
        (True, False),
        (False, True),
        (False, False),
        (False, False),
    ]
    assert [each.folded for each in shown["times"]] == [False, True, True, True]


# The host's time ------------------------------------------------------------------------------------------------------


def hosted(name: str, forward: float, both: float, d_head=64, **more) -> list[dict]:
    """A cell's rows with the host's µs at the shortest length."""
    found = made.cell(name, d_head, lengths=(1024, 4096), **more)
    values = {"forward": forward, "backward": both}
    return [row | {"host_us": values[row["direction"]] if row["length"] == 1024 else None} for row in found]


def test_the_hosts_time_over_d(tmp_path):
    slow = [row | {"slow_host": True} for row in hosted("triton", 32.06, 79.94, d_head=16)]
    rows = [*hosted("naive", 90.0, 250.0), *hosted("triton", 30.0, 80.0), *slow]
    (group,) = attention_of(tmp_path, rows).groups
    table = host_table(group)
    texts = [[cell.text for cell in row] for row in table.rows]
    assert texts == [
        ["bf16", "naive", "90.0", "90.0", "250.0", "250.0"],
        ["bf16", "triton", "30.0", "32.1", "79.9", "80.0"],
    ]
    assert [[bool(cell.badges) for cell in row[2:]] for row in table.rows] == [[False] * 4, [False, True, True, False]]


def test_the_hosts_time_over_pytorchs_own(tmp_path):
    """What was called in turns on a slow host is no less true."""
    ratios = {"naive": (2.5, 1.25), "triton": (0.654, 0.7)}
    rows = [
        row | {"host_over_sdpa": ratios[name][row["direction"] == "backward"], "slow_host": True}
        for name in ratios
        for d_head in (16, 64)
        for row in hosted(name, 30.0, 80.0, d_head=d_head)
    ]
    rows = [row | {"host_over_sdpa": 0.75} if row["d_head"] == 16 else row for row in rows]
    (group,) = attention_of(tmp_path, rows).groups
    table = host_table(group)
    assert [(one.group, one.unit, one.label) for one in table.columns[4:6]] == [
        ("forward", "×\u00a0SDPA's", "least"),
        ("forward", "×\u00a0SDPA's", "most"),
    ]
    assert [[cell.text for cell in (*row[4:6], *row[8:])] for row in table.rows] == [
        ["0.75", "2.50", "0.75", "1.25"],
        ["0.65", "0.75", "0.70", "0.75"],
    ]
    assert not any(cell.badges for row in table.rows for cell in (*row[4:6], *row[8:]))
    assert any("in turns" in note for note in table.notes)


def test_no_table_where_the_hosts_time_is_not_known(tmp_path):
    (group,) = attention_of(tmp_path, made.cpu([*made.cell("naive", 64), *made.cell("triton", 64)])).groups
    assert host_table(group) is None
    assert "host" not in [one.label for one in implementations.speeds_table(group, ["bf16"]).columns]


def test_the_chapters_table_has_the_hosts_time_of_both_passes_at_the_shortest_length(tmp_path):
    rows = [*hosted("naive", 90.0, 250.0), *hosted("sdpa-flash", 25.0, 95.0), *hosted("triton", 30.0, 80.0)]
    (group,) = attention_of(tmp_path, rows).groups
    table = implementations.speeds_table(group, ["bf16"])
    at = [place for place, one in enumerate(table.columns) if one.label == "host"]
    assert [table.columns[place].group for place in at] == ["shortest", "triton"]
    assert [[row[place].text for place in at] for row in table.rows] == [["80.0", "80.0"], ["–", "–"]]
    assert any("keeps it busy" in note and "PyTorch" not in note for note in table.notes)


def test_the_chapters_table_holds_the_hosts_time_against_pytorchs_own_where_it_can(tmp_path):
    rows = [*hosted("naive", 90.0, 250.0), *hosted("sdpa-flash", 25.0, 95.0), *hosted("triton", 30.0, 80.0)]
    ratios = {"sdpa-flash": 1.9, "triton": 0.7}
    rows = [row | {"host_over_sdpa": ratios.get(row["implementation"]), "slow_host": True} for row in rows]
    (group,) = attention_of(tmp_path, rows).groups
    table = implementations.speeds_table(group, ["bf16"])
    at = [place for place, one in enumerate(table.columns) if one.label == "host"]
    assert {table.columns[place].unit for place in at} == {"×\u00a0SDPA's"}
    assert [table.rows[0][place].text for place in at] == ["0.70", "0.70"]
    assert not any(table.rows[0][place].badges for place in at)
    assert any("over PyTorch's own in turns" in note for note in table.notes)


@pytest.mark.parametrize(("limited_by", "expected"), [("gpu", (False, True)), ("processor", (True, True))])
def test_a_slow_host_is_told_of_its_own_time_and_of_what_it_slows(tmp_path, limited_by, expected):
    """A pass that waited in the GPU's queue takes no longer for it."""
    rows = [*hosted("naive", 90.0, 250.0), *hosted("triton", 30.0, 80.0)]
    rows = [row | {"slow_host": row["implementation"] == "triton", "limited_by": limited_by} for row in rows]
    (group,) = attention_of(tmp_path, rows).groups
    table = implementations.speeds_table(group, ["bf16"])
    of = {one.label: row for one, row in zip(table.columns, table.rows[0], strict=True) if one.group == "triton"}
    assert tuple("slow_host" in of[label].badges for label in ("forward", "host")) == expected
