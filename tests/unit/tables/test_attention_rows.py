"""The attention study's tables: a row for each length and direction of a cell."""

import csv

import pytest
from stepscope.tables import attention, cells

NAME = "machine/attention/triton/d16/bf16"
SPEC = {
    **{"study": "attention", "implementation": "triton", "d_head": 16, "precision": "bf16", "tokens": 400, "heads": 3},
    **{"causal": "yes", "lengths": "100,800", "warmup": 1, "steps": 5, "max_seconds": 1, "seed": 0, "threads": 1},
    "device": "cpu",
}
OK = {
    "count": 5,
    "mean": 0.3,
    "std": 0.1,
    "median": 0.002,
    "iqr": 0.0,
    "ci_low": 0.001,
    "ci_high": 0.003,
    "outliers": 1,
}
SERIES = [
    {"length": 100, "direction": "forward", "status": "ok", "reason": "", "first_seconds": 1.5, "peak_bytes": 77}
    | {"before_backward_bytes": None, "launch_seconds": 0.004}
    | OK,
    {"length": 800, "direction": "backward", "status": "oom", "reason": "no more", "first_seconds": None}
    | {"before_backward_bytes": 55, "peak_bytes": 99, "launch_seconds": None},
]


@pytest.fixture
def written(results, tmp_path):
    """Writes the study's tables; gives the rows of attention.csv."""

    def rows():
        found = cells.read_cells(results.plan("attention"), "attention", results.folder, partial=True)
        attention.write(found, tmp_path / "tables")
        with (tmp_path / "tables" / "attention.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    return rows


def test_times_rates_and_memory_of_a_length(results, written):
    results.expect(NAME, SPEC, None)
    results.measure(NAME, SPEC, {"series": SERIES})
    row, lost = written()
    assert (row["implementation"], row["d_head"], row["heads"], row["causal"]) == ("triton", "16", "3", "yes")
    assert (row["batch"], row["length"], row["direction"], row["samples"]) == ("4", "100", "forward", "5")
    assert (row["median_ms"], row["launch_ms"], row["first_pass_ms"]) == ("2.0", "4.0", "1500.0")
    # 4 x batch 4 x heads 3 x 100 x 100 x 16, halved by the mask, in 2 ms
    assert float(row["tflops"]) == pytest.approx(3_840_000 / 0.002 / 1e12)
    assert (row["processes"], row["ci_low_ms"], row["noisy"]) == ("1", "", "")  # no interval of a single one
    assert (lost["status"], lost["reason"], lost["median_ms"]) == ("oom", "no more", "")
    assert (lost["batch"], lost["before_backward_bytes"]) == ("1", "55")  # 400 tokens are no sequence of 800


def test_every_sample_stands_after_its_cells_key(results, written, tmp_path):
    results.expect(NAME, SPEC, None)
    results.measure(NAME, SPEC, {"series": SERIES}, samples="length,phase\n100,forward\n")  # an older version's
    written()
    lines = (tmp_path / "tables" / "attention_samples.csv").read_text().splitlines()
    key = "cell,hardware,implementation,d_head,precision,heads,causal,mask,key_value_heads,keys,window"
    assert lines[0].startswith(f"{key},process,length,phase,step,")
    assert lines[1:] == [f"{NAME},machine,triton,16,bf16,3,yes,causal,3,,,1,100,forward,,,,,,,"]


def test_keys_and_masks_of_their_own(results, written):
    more = {"heads": 6, "key_value_heads": 2, "keys": 900, "mask": "causal-lower-right", "window": 50}
    spec = {name: value for name, value in SPEC.items() if name != "causal"} | more
    results.expect(NAME, spec, None)
    series = [SERIES[0] | {"host_seconds": 12.5e-6, "host_over_sdpa": 0.75}, SERIES[1]]
    results.measure(NAME, spec, {"series": series})
    row, lost = written()
    assert (row["heads"], row["key_value_heads"], row["keys"], row["window"]) == ("6", "2", "900", "50")
    assert (row["causal"], row["mask"]) == ("yes", "causal-lower-right")
    # each of 100 queries sees 50 of the 900 keys, all of which stand before the first query or beside one
    assert float(row["operations"]) == 4 * 4 * 6 * 100 * 50 * 16
    assert (float(row["host_us"]), lost["host_us"]) == (12.5, "")
    assert (float(row["host_over_sdpa"]), lost["host_over_sdpa"]) == (0.75, "")


def test_a_missing_cell_has_a_row_for_each_length_and_direction(results, written):
    results.expect(NAME, SPEC, None)
    assert [(row["length"], row["direction"], row["status"]) for row in written()] == [
        (length, direction, "missing") for length in ("100", "800") for direction in ("forward", "backward")
    ]
