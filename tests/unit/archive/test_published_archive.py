"""An archive of results as published figures."""

import csv
import io

import pytest
from stepscope.archive_making import make
from stepscope.tables import published

TIMING = {
    "hardware": "box", "size": "small", "context": "128", "batch": "4", "precision": "fp32", "d_model": "768",
    "d_ff": "3072", "num_layers": "12", "num_heads": "12", "vocab_size": "10000", "warmup": "2",
    "forward_status": "ok", "forward_mean_ms": "12.5", "forward_median_ms": "12.25", "forward_samples": "30",
    "forward_peak_allocated_bytes": "1024.0", "backward_status": "oom", "step_status": "unsupported",
    "device_name": "NVIDIA H200", "torch": "2.11.0", "started": "2026-11-22T20:24:48+00:00",
}  # fmt: skip
ATTENTION = {
    "cell": "box/attention/naive/d64/bf16/batch=8", "implementation": "naive", "d_head": "64", "precision": "bf16",
    "causal": "True", "batch": "8", "length": "256", "direction": "backward", "status": "ok", "mean_ms": "0.5",
    "median_ms": "0.25", "device_name": "<b>GPU</b>",
}  # fmt: skip


def table(*rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@pytest.fixture
def archive(results, tmp_path):
    """A function that packs a timing and an attention table, and returns the archive's path."""

    def packed(timing, attention):
        (results / "tables/timing.csv").write_text(timing)
        (results / "tables/attention.csv").write_text(attention)
        make(tmp_path / "theirs.zip", results)
        return tmp_path / "theirs.zip"

    return packed


def test_its_times_and_peaks_are_figures_of_neutral_cells(archive):
    cells = [TIMING | {"cell": f"box/timing/small/ctx128/fp32{option}"} for option in ("", "/attention=sdpa")]
    rows = published.read(archive(table(*cells), table(ATTENTION)))
    found = [
        (row["study"], row["phase"], row["quantity"], row["statistic"], row["status"], row["value"], row["unit"])
        for row in rows
    ]
    assert found == [
        ("timing", "forward", "time", "mean", "ok", 12.5, "ms"),
        ("timing", "forward", "time", "median", "ok", 12.25, "ms"),
        ("timing", "forward", "peak allocated", "max", "ok", 1024.0, "bytes"),
        ("timing", "backward", "time", "mean", "oom", None, "ms"),
        ("timing", "backward", "time", "median", "oom", None, "ms"),
        ("attention", None, "time", "mean", "ok", 0.5, "ms"),
        ("attention", None, "time", "median", "ok", 0.25, "ms"),
    ]
    first, last = rows[0], rows[-1]
    assert (first["source"], first["gpu"], first["date"], first["file"]) == (
        "theirs",
        "H200",
        "2026-11-22",
        "theirs.zip",
    )
    assert (first["d_model"], first["context"], first["samples"], first["warmup"]) == (768, 128, 30, 2)
    assert (last["causal"], last["length"], last["direction"], last["gpu"]) == ("yes", 256, "backward", "<b>GPU</b>")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"forward_mean_ms": "nan"}, "line 2: value: 'nan' is no number that it can have"),
        ({"precision": "fp7"}, "line 2: precision: 'fp7' is none of"),
        ({"size": "x" * 200_000}, "no CSV file of published figures: field larger than field limit"),
    ],
)
def test_a_table_that_cannot_be_is_one_line(archive, change, reason):
    cell = TIMING | {"cell": "box/timing/small/ctx128/fp32"} | change
    path = archive(table(cell), table(ATTENTION))
    with pytest.raises(published.PublishedError) as error:
        published.read(path)
    assert str(error.value).startswith(str(path)) and reason in str(error.value)


def test_a_file_that_is_no_archive_is_one_line(tmp_path):
    (tmp_path / "theirs.zip").write_text("cell\n")
    with pytest.raises(published.PublishedError, match="is no archive of results"):
        published.read(tmp_path / "theirs.zip")
