"""What the plan expected beside what it took, from tables made by hand."""

import synthetic_attention as made
from stepscope.report.data.estimate import by_study
from stepscope.report.estimate import estimate_table
from stepscope.report.machine import overview
from stepscope.tables import estimate
from stepscope.tables.reader import Tables


def tables(folder, expected):
    """Two cells of the attention study that took 30 s and 60 s, and what was expected: cell → (seconds, basis)."""
    rows = made.cell(duration_s=30.0) + made.cell("flex", duration_s=60.0)
    made.write(folder, rows)
    names = list(dict.fromkeys(row["cell"] for row in rows))
    lines = [
        {"cell": name, "hardware": name.partition("/")[0], "study": "attention", "basis": basis, "expected_s": seconds}
        for name, (seconds, basis) in zip(names, expected, strict=False)
    ]
    if lines:
        estimate.write_table(folder, estimate.TABLE, lines)
    return Tables(folder, ["attention"])


def test_times_are_added_by_study(tmp_path):
    found = tables(tmp_path, [(20.0, "same"), (40.0, "formula")])
    (row,) = by_study(found)
    assert (row["study"], row["cells"], row["expected_s"], row["taken_s"]) == ("attention", 2, 60.0, 90.0)
    (line,) = estimate_table(found).rows
    assert [cell.text for cell in line] == ["attention", "2", "60.0", "90.0", "1.50", "same 1, formula 1"]
    assert (
        dict(overview(found))["Expected by the plan"]
        == "1 min 00 s for 2 cells, which took 1 min 30 s (1.50 times that)"
    )


def test_only_cells_that_were_estimated_count(tmp_path):
    (row,) = by_study(tables(tmp_path, [(20.0, "same")]))
    assert (row["cells"], row["expected_s"], row["taken_s"]) == (1, 20.0, 30.0)
    (row,) = by_study(tables(tmp_path, [(None, "unknown"), (40.0, "similar")]))
    assert (row["cells"], row["taken_s"], row["similar"], row["unknown"]) == (1, 60.0, 1, 0)


def test_without_an_estimate_nothing_is_said(tmp_path):
    found = tables(tmp_path, [])
    assert by_study(found) == [] and estimate_table(found) is None
    assert "Expected by the plan" not in dict(overview(found))
