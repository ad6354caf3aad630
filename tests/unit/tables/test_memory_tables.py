"""The memory study's tables: a cell's row, predictions beside measurements, and what a damaged analysis means.

The cell's model: d_model 8, d_ff 16, 2 layers, 2 heads, vocabulary 11, context 6, batch 3. Its parameters, by hand:
2 x 11 x 8 + 2 x (4 x 8 x 8 + 3 x 8 x 16 + 2 x 8) + 8 = 1,496.
"""

import csv

import pytest
from stepscope.model.shape import ModelShape
from stepscope.snapshot.table_names import COLUMNS
from stepscope.tables import cells, memory
from stepscope.tables.memory_fields import ANALYSES

NAME = "machine/memory/nano/ctx6/fp32"
PARAMETERS = 1496
ABOUT = {
    "baselines": {"model": 7000, "first_step": 20000, "start": 20000},
    "capacity": {"total_bytes": 10**6, "free_bytes": 10**5},
    "recorded": "measured steps",
    "recorder": "allocator history",
    "snapshot": "snapshot.pickle",
    "known": "known.json",
}
MODE = {"status": "ok", "reason": "", "peak_allocated_bytes": 50_000, "peak_reserved_bytes": 60_000}
SUMMARY = {"modes": {"step": MODE}, "phases": [], "memory": ABOUT}
ANALYSIS = {
    "summary": [{"device": 0, "peak_bytes": 48_000}],
    "timeline": [{"event": 0, "cast_weights": 0}, {"event": 1, "cast_weights": 30}, {"event": 2, "cast_weights": 20}],
    "tensors": [
        {"category": "parameters", "part": "block", "tensors": 7, "bytes": 2624},
        {"category": "parameters", "part": "outside", "tensors": 3, "bytes": 736},
        {"category": "gradients", "part": "block", "tensors": 7, "bytes": 2624},
        {"category": "gradients", "part": "outside", "tensors": 3, "bytes": 736},
        {"category": "workspace", "part": "outside", "tensors": 2, "bytes": 640},
    ],
    "saved": [
        {"part": "block", "module": "a", "shape": "3×2×6×6", "dtype": "float32", "tensors": 2, "bytes": 1728}
        | {"category": "activations"},
        {"part": "block", "module": "b", "category": "cast weights", "tensors": 1, "bytes": 999},
        {"part": "outside", "module": "c", "category": "activations", "tensors": 1, "bytes": 100},
    ],
    "largest": [
        {"rank": 1, "bytes": 864, "shape": "3×2×6×6", "dtype": "float32", "category": "activations"},
        {"rank": 2, "bytes": 12, "shape": "", "dtype": "", "category": "unknown"},
    ],
}


def write(folder, tables=ANALYSIS):
    """The analysis' tables with these values, all others empty."""
    folder.mkdir()
    for name, columns in COLUMNS.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(tables.get(name, []))


@pytest.fixture
def measured(results, timing_spec):
    """Makes a measured cell and its analysis."""

    def make(summary=SUMMARY, tables=ANALYSIS, **spec):
        spec = timing_spec | {"study": "memory"} | spec
        results.expect(NAME, spec)
        write((folder := results.measure(NAME, spec, summary) / "analysis"), tables)
        return folder

    return make


@pytest.fixture
def written(results, tmp_path):
    """Writes the study's tables; gives a table's rows."""

    def tables():
        found = cells.read_cells(results.plan("memory"), "memory", results.folder, partial=True)
        memory.write(found, tmp_path / "tables")

        def rows(name):
            with (tmp_path / "tables" / f"{name}.csv").open(newline="") as file:
                return list(csv.DictReader(file))

        return rows

    return tables


def test_a_cells_row(measured, written):
    measured()
    (row,) = written()("memory")
    assert (row["cell"], row["status"], row["reason"], row["mode"]) == (NAME, "ok", "", "step")
    assert (row["peak_allocated_bytes"], row["peak_reserved_bytes"]) == ("50000", "60000")
    assert row["baseline_first_step_bytes"] == "20000"
    assert row["snapshot"] == f"results/{NAME}/snapshot/snapshot.pickle"
    assert row["residual_stream_bytes"] == str(3 * 6 * 8 * 4)
    assert row["capacity_free_bytes"] == "100000"


def test_the_first_context_that_is_too_long_is_where_the_prediction_passes_the_capacity(measured, written):
    """The prediction at that context is above the free memory, the one at a context less is not."""
    measured()
    first = int(written()("memory")[0]["predicted_first_context_too_long"])
    peaks = {}
    for context in (first - 1, first):
        setup = memory.Setup(ModelShape(8, 16, 2, 2, 11), batch=3, context=context)
        peaks[context] = memory.footprint_peak.peak(setup, "step", 640).bytes
    assert peaks[first - 1] <= 10**5 < peaks[first]


def account(written):
    rows = written()("memory_accounting")
    return {row["item"]: (row["predicted_bytes"], row["measured_bytes"]) for row in rows}


def test_predictions_stand_beside_what_was_measured(measured, written):
    measured()
    found = account(written)
    assert found["parameters"] == (str(4 * PARAMETERS), str(2 * 2624 + 736))
    assert found["gradients"] == (str(4 * PARAMETERS), str(2 * 2624 + 736))
    assert found["gradients of a block"] == (str(4 * 656), "2624")
    assert found["optimizer state"] == (str(8 * PARAMETERS), "")  # no such tensors in the analysis
    assert found["saved by a block"][1] == "1728"  # cast weights are an item of their own
    assert found["saved in all"][1] == str(2 * 1728 + 100)
    assert found["peak as requested"][1] == "48000"
    assert found["peak"][1] == "50000"
    assert "cast weights" not in found


def test_cast_weights_are_the_most_of_them_at_any_time(measured, written):
    measured(precision="bf16")
    # 2 bytes of each matrix that is multiplied by: 2 x (4 x 64 + 3 x 128) + 88
    assert account(written)["cast weights"] == (str(2 * (2 * 640 + 88)), "30")


def test_inference_saves_nothing_and_has_no_gradients(measured, written):
    measured(SUMMARY | {"modes": {"inference": MODE}}, mode="inference")
    assert set(account(written)) == {"parameters", "buffers", "peak as requested", "peak"}


def test_what_ran_out_of_memory_has_no_measured_peak_and_nothing_saved_in_full(measured, written):
    measured(
        SUMMARY
        | {"modes": {"step": MODE | {"status": "oom", "reason": "no more"}}, "memory": ABOUT | {"recorded": "warm-up"}}
    )
    rows = written()
    assert [(row["status"], row["reason"]) for row in rows("memory")] == [("oom", "no more")]
    found = account(lambda: rows)
    assert "peak" not in found
    assert found["saved by a block"][1] == ""


def test_where_memory_ran_out_the_libraries_workspace_is_that_of_other_cells(results, timing_spec, measured, written):
    """So that cells of one model and machine agree on the first context that is too long."""
    about = ABOUT | {"capacity": {"total_bytes": 10**6, "free_bytes": 90_000}}  # 13 tokens with, 14 without
    measured(SUMMARY | {"memory": about})
    other = "machine/memory/nano/ctx7/fp32"
    spec = timing_spec | {"study": "memory", "context": 7}
    results.expect(other, spec)
    lost = {"step": MODE | {"status": "oom", "reason": "no more"}}
    folder = results.measure(other, spec, SUMMARY | {"modes": lost, "memory": about | {"recorded": "warm-up"}})
    write(folder / "analysis", {"summary": ANALYSIS["summary"]})
    rows = written()("memory")
    assert [row["predicted_first_context_too_long"] for row in rows] == ["13", "13"]


def test_where_memory_ran_out_buffers_are_not_measured(measured, written):
    """The mask is made in the first forward pass."""
    tensors = [*ANALYSIS["tensors"], {"category": "buffers", "part": "outside", "tensors": 4, "bytes": 50}]
    measured(SUMMARY | {"memory": ABOUT | {"recorded": "warm-up"}}, ANALYSIS | {"tensors": tensors})
    assert account(written)["buffers"][1] == ""


def test_without_an_allocators_counter_the_peak_is_the_snapshots(measured, written):
    mode = {"status": "ok", "reason": "", "peak_resident_bytes": 10**9}
    measured(SUMMARY | {"modes": {"step": mode}})
    assert account(written)["peak"][1] == "48000"


def test_sizes_get_their_formula(measured, written):
    measured()
    rows = written()
    assert [row["formula"] for row in rows("memory_largest")] == ["batch × heads × context × context × 4 B", ""]
    assert rows("memory_saved")[0]["formula"] == "batch × heads × context × context × 4 B"


def test_all_that_is_alive_at_the_predicted_peak_adds_up_to_it(measured, written):
    measured()
    rows = written()
    (row,) = rows("memory")
    assert sum(int(each["bytes"]) for each in rows("memory_predicted")) == int(row["predicted_peak_bytes"])


def cut_in_a_row(folder):
    path = folder / "tensors.csv"
    path.write_text(path.read_text()[:-2])


def without_a_table(folder):
    (folder / "saved.csv").unlink()


def other_columns(folder):
    (folder / "phases.csv").write_text("phase,count\nstep,3\n")


@pytest.mark.parametrize("damage", [cut_in_a_row, without_a_table, other_columns])
def test_a_damaged_analysis_is_a_failed_cell_with_the_reason(measured, written, damage):
    damage(measured())
    rows = written()
    (row,) = rows("memory")
    assert row["status"] == "failed"
    assert f"delete results/{NAME}/analysis and run again" in row["reason"]
    assert all(rows(f"memory_{name}") == [] for name in ANALYSES if name != "predicted")


def test_a_missing_cell_has_a_row_and_a_prediction_only(results, timing_spec, written):
    results.expect(NAME, timing_spec | {"study": "memory"})
    rows = written()
    assert [row["status"] for row in rows("memory")] == ["missing"]
    assert rows("memory_predicted")
    assert rows("memory_accounting") == []
