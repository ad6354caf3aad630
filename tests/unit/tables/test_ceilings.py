"""Every column of the ceilings' table, from summaries with numbers that a person can check."""

import pytest
from stepscope.tables import ceilings, cells

NAME = "machine/ceilings/matmul/bf16"
SPEC = {"study": "ceilings", "operation": "matmul", "order": 1000, "precision": "bf16", "warmup": 2, "seed": 5}
COPY = {"study": "ceilings", "operation": "copy", "mebibytes": 1000, "precision": "fp32", "warmup": 2, "seed": 5}
FOUND = {
    **{"status": "ok", "reason": "", "count": 12, "outliers": 2, "mean": 0.0025, "std": 0.0005, "median": 0.002},
    **{"iqr": 0.00025, "ci_low": 0.0019, "ci_high": 0.0022},
}


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
    times = [row[f"{key}_ms"] for key in ("mean", "std", "median", "iqr", "ci_low", "ci_high")]
    assert times == pytest.approx([2.5, 0.5, 2.0, 0.25, 1.9, 2.2])


def test_a_copys_rate_counts_what_is_read_and_what_is_written(row_of):
    row = row_of(COPY, FOUND)
    assert row["bytes_moved"] == 2_097_152_000
    assert row["gb_per_s"] == pytest.approx(1048.576)  # 2.097152 GB in 2 ms
    assert (row["n"], row["tflops"]) == (None, None)


@pytest.mark.parametrize("mark, noisy", [(0.074, True), (0.076, False), (None, False)])
def test_noisy_is_half_the_interval_beyond_the_mark(mark, noisy, row_of):
    # (0.0022 - 0.0019) / 2 / 0.002 = 0.075
    assert row_of(SPEC, FOUND, mark)["noisy"] is noisy


@pytest.mark.parametrize("status", ["oom", "unsupported"])
def test_a_cell_without_a_rate_says_why(status, row_of):
    row = row_of(SPEC, {"status": status, "reason": "because"})
    assert (row["status"], row["reason"], row["tflops"], row["median_ms"]) == (status, "because", None, None)
    assert row["noisy"] is None


def test_a_missing_cell_says_so(row_of):
    row = row_of(SPEC, None)
    assert (row["status"], row["reason"], row["tflops"]) == ("missing", "not measured yet", None)
