"""The profile study's tables: a cell's row, and the analyses of all cells put together."""

import csv

import pytest
from stepscope.tables import cells, profile
from stepscope.trace.table_names import COLUMNS, TABLES

NAME = "machine/profile/nano/ctx6/fp32"
TRACE = {"profiler": "torch", "version": "2.13.0", "file": "trace.json.gz", "attempts": []}
SERIES = {"mode": "step", "kind": "phased", "phase": "forward", "status": "ok", "count": 3, "outliers": 0}
SERIES |= {"mean": 0.25, "std": 0.0, "median": 0.2, "iqr": 0.0, "ci_low": 0.2, "ci_high": 0.2}
SUMMARY = {"modes": {"step": {"status": "ok", "reason": ""}}, "phases": [SERIES], "trace": TRACE}


@pytest.fixture
def measured(results, timing_spec):
    """Makes a measured cell and its analysis (two phases, a kernel whose name holds a comma and a line break)."""

    def make(summary=SUMMARY):
        spec = timing_spec | {"study": "profile"}
        results.expect(NAME, spec)
        folder = results.measure(NAME, spec, summary) / "analysis"
        folder.mkdir()
        for name in TABLES:
            write(folder / f"{name}.csv", name, [])
        write(folder / "phases.csv", "phases", [{"phase": "step", "steps": 3}, {"phase": "forward", "steps": 3}])
        write(folder / "kernels.csv", "kernels", [{"phase": "step", "full_name": 'a<1, "2">\nb'}])
        return folder

    return make


def write(path, name, rows):
    """An analysis' table with these values, all others empty."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS[name], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture
def written(results, tmp_path):
    """Writes the study's tables; gives a table's rows."""

    def tables():
        found = cells.read_cells(results.plan("profile"), "profile", results.folder, partial=True)
        profile.write(found, tmp_path / "tables")

        def rows(name):
            with (tmp_path / "tables" / f"{name}.csv").open(newline="") as file:
                return list(csv.DictReader(file))

        return rows

    return tables


def test_a_cells_row(measured, written):
    measured()
    (row,) = written()("profile")
    assert (row["cell"], row["status"], row["reason"]) == (NAME, "ok", "")
    assert (row["profiler"], row["trace"]) == ("torch", f"results/{NAME}/trace/trace.json.gz")
    assert (row["forward_median_ms"], row["forward_mean_ms"], row["backward_median_ms"]) == ("200.0", "250.0", "")


def test_each_row_of_an_analysis_stands_after_its_cells_key(measured, written):
    measured()
    rows = written()
    assert [(row["cell"], row["size"], row["phase"], row["steps"]) for row in rows("profile_phases")] == [
        (NAME, "nano", "step", "3"),
        (NAME, "nano", "forward", "3"),
    ]
    assert [row["full_name"] for row in rows("profile_kernels")] == ['a<1, "2">\nb']
    assert rows("profile_modules") == []


def cut_in_a_row(folder):
    path = folder / "phases.csv"
    path.write_text(path.read_text()[:-2])


def cut_in_a_quoted_name(folder):
    path = folder / "kernels.csv"
    path.write_text(path.read_text()[:-6])


def without_rows_or_header(folder):
    (folder / "checks.csv").write_text("")


def no_text(folder):
    (folder / "busy.csv").write_bytes(b"\xff\xfe\x00")


def without_a_table(folder):
    (folder / "lines.csv").unlink()


def other_columns(folder):
    (folder / "phases.csv").write_text("phase,count\nstep,3\n")


def nowhere(folder):
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut_in_a_row, "analysis/phases.csv is missing, damaged"),
        (cut_in_a_quoted_name, "analysis/kernels.csv"),
        (without_rows_or_header, "analysis/checks.csv"),
        (no_text, "analysis/busy.csv"),
        (without_a_table, "analysis/lines.csv"),
        (other_columns, "of another version; delete results/machine/profile/nano/ctx6/fp32/analysis"),
        (nowhere, "not analysed yet"),
    ],
)
def test_a_damaged_analysis_is_a_failed_cell_with_the_reason(measured, written, damage, words):
    damage(measured())
    rows = written()
    (row,) = rows("profile")
    assert row["status"] == "failed"
    assert words in row["reason"]
    assert all(rows(f"profile_{name}") == [] for name in TABLES)


@pytest.mark.parametrize("summary", [{**SUMMARY, "trace": None}, {"modes": SUMMARY["modes"], "phases": []}])
def test_a_record_that_says_nothing_of_the_trace_is_a_failed_cell(measured, written, summary):
    measured(summary)
    (row,) = written()("profile")
    assert (row["status"], "says nothing of the trace" in row["reason"]) == ("failed", True)


def test_a_missing_cell_has_a_row_and_no_analysis(results, timing_spec, written):
    results.expect(NAME, timing_spec | {"study": "profile"})
    rows = written()
    assert [row["status"] for row in rows("profile")] == ["missing"]
    assert rows("profile_phases") == []
