"""Every column of the ceilings' table, from summaries with numbers that a person can check."""

import pytest
from stepscope.tables import ceilings, cells

NAME = "machine/ceilings/matmul/bf16"
SPEC = {"study": "ceilings", "operation": "matmul", "order": 1000, "precision": "bf16", "warmup": 2, "seed": 5}
COPY = {"study": "ceilings", "operation": "copy", "mebibytes": 1000, "precision": "fp32", "warmup": 2, "seed": 5}
ONE = {"count": 12, "outliers": 2, "mean": 0.0025, "std": 0.0005, "median": 0.002, "iqr": 0.00025, "launch": None}
FOUND = {"status": "ok", "reason": "", "processes": [ONE]}


@pytest.fixture
def row_of(results):
    """The row of a cell with this spec and summary."""

    def row(spec, summary, noisy=0.02):
        results.expect(NAME, spec, size=None)
        if summary:
            results.measure(NAME, spec, summary)
        (cell,) = cells.read_cells(results.plan("ceilings", noisy), "ceilings", results.folder, partial=True)
        return ceilings.row(cell)

    return row


def test_a_products_rate_is_two_n_cubed_over_its_time(row_of):
    row = row_of(SPEC, FOUND)
    assert row["tflops"] == pytest.approx(1.0)  # 2 x 10^9 in 2 ms
    expected = {
        **{"cell": NAME, "hardware": "machine", "operation": "matmul", "precision": "bf16", "n": 1000, "seed": 5},
        **{"bytes_moved": None, "gb_per_s": None, "warmup": 2, "noise_mark": 0.02, "status": "ok", "reason": ""},
        **{"samples": 12, "outliers": 2, "log": f"results/{NAME}/measure.log", "device_name": "AMD EPYC"},
    }
    assert {key: row[key] for key in expected} == expected
    times = [row[f"{key}_ms"] for key in ("mean", "std", "median", "iqr")]
    assert times == pytest.approx([2.5, 0.5, 2.0, 0.25])


def test_a_copys_rate_counts_what_is_read_and_what_is_written(row_of):
    row = row_of(COPY, FOUND)
    assert row["bytes_moved"] == 2_097_152_000
    assert row["gb_per_s"] == pytest.approx(1048.576)  # 2.097152 GB in 2 ms
    assert (row["n"], row["tflops"]) == (None, None)


def test_a_record_of_an_older_version_is_of_one_process(row_of):
    row = row_of(SPEC, {"status": "ok", "reason": "", **ONE, "ci_low": 0.0019, "ci_high": 0.0022})
    assert (row["processes"], row["samples"], row["median_ms"], row["ci_low_ms"]) == (1, 12, 2.0, None)


@pytest.mark.parametrize("status", ["oom", "unsupported"])
def test_a_cell_without_a_rate_says_why(status, row_of):
    row = row_of(SPEC, {"status": status, "reason": "because"})
    assert (row["status"], row["reason"], row["tflops"], row["median_ms"]) == (status, "because", None, None)
    assert row["noisy"] is None


def test_a_missing_cell_says_so(row_of):
    row = row_of(SPEC, None)
    assert (row["status"], row["reason"], row["tflops"]) == ("missing", "not measured yet", None)
