"""The precision study's tables, from records made by hand."""

import csv

import pytest
from stepscope.tables import cells, precision

COMMON = {"study": "precision", "precision": "fp32", "seed": 5, "threads": 1, "device": "cpu"}
MODEL = {"d_model": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "vocab_size": 11, "context": 4, "batch": 2}
SAMPLES = "variant,step,sum\nfp16 += fp16,1,0.01\n"


@pytest.fixture
def written(results, tmp_path):
    """name → rows, of three probes: one with sums, one with dtypes, one that was never measured."""
    sums = {"status": "ok", "reason": "", "tables": {"accumulation": [{"variant": "fp16 += fp16", "sum": 9.953125}]}}
    toy = [{"autocast": "bf16", "status": "ok", "reason": "", "role": "relu", "output": "bf16"}]
    own = [{"autocast": "fp16", "status": "unsupported", "reason": "no kernel"}]
    dtypes = {"status": "ok", "reason": "", "tables": {"toy": toy, "model": own}}
    for probe, summary, samples, more in (
        ("accumulation", sums, SAMPLES, {}),
        ("autocast", dtypes, "variant,step,sum\n", MODEL),
        ("normalisation", None, "", {}),
    ):
        name, spec = f"machine/precision/{probe}", COMMON | {"probe": probe} | more
        results.expect(name, spec, size=None)
        if summary:
            results.measure(name, spec, summary, samples)
    found = cells.read_cells(results.plan("precision"), "precision", results.folder, partial=True)
    folder = tmp_path / "tables"
    precision.write(found, folder)
    return {path.stem: list(csv.DictReader(path.open(newline=""))) for path in folder.iterdir()}


def test_every_table_is_there_even_without_rows(written):
    assert set(written) == {table.name for table in precision.TABLES}
    assert written["precision_forced"] == []


def test_a_row_a_probe_with_its_status(written):
    rows = {row["probe"]: row for row in written["precision"]}
    assert {probe: row["status"] for probe, row in rows.items()} == {
        "accumulation": "ok",
        "autocast": "ok",
        "normalisation": "missing",
    }
    assert rows["accumulation"]["device_name"] == "AMD EPYC" and rows["accumulation"]["seed"] == "5"
    assert rows["normalisation"]["log"] == "" and "batch" not in rows["autocast"]  # that of training is another


def test_dtypes_of_both_models_stand_in_one_table_with_the_shape_of_our_own(written):
    toy, own = written["precision_dtypes"]
    assert (toy["model"], toy["role"], toy["output"], toy["d_model"]) == ("toy", "relu", "bf16", "")
    assert (own["model"], own["status"], own["reason"]) == ("own", "unsupported", "no kernel")
    assert {key: int(own[key]) for key in MODEL} == MODEL


def test_samples_have_their_cell(written):
    (row,) = written["precision_samples"]
    expected = {"cell": "machine/precision/accumulation", "hardware": "machine", "probe": "accumulation"}
    assert row == expected | {"variant": "fp16 += fp16", "step": "1", "sum": "0.01"}
    assert written["precision_accumulation"][0]["sum"] == "9.953125"
