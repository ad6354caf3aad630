"""Own models in the tables: their own table, and the columns of other tables that a shape fills for sizes."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from own_model import DESCRIPTION, FLOPS, PARAMETERS, TOKENS, spec_of
from stepscope.tables import cells, ladder, memory, models, timing
from stepscope.tables.training import SHAPE
from test_memory_tables import ABOUT, ANALYSIS, MODE, write
from test_timing import MODES, PHASES

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/gather_models.py"
SUMMARY = {"phases": PHASES, "modes": MODES}


@pytest.fixture
def cell(results, timing_spec):
    """Makes a measured cell of an own model; gives it as read."""

    def make(place="fp32", about=DESCRIPTION, summary=SUMMARY, study="timing", size="mine", **more):
        name, spec = f"machine/{study}/{size}/ctx6/{place}", spec_of(timing_spec, study=study, **more)
        results.expect(name, spec, size)
        results.measure(name, spec, summary | {"model": about} if about else summary)
        found = cells.read_cells(results.plan(study), study, results.folder)
        return next(each for each in found if each.name == name)

    return make


def test_a_row_says_what_was_built(cell):
    (row,) = models.rows_of([cell()])
    assert row == {
        **{"cell": "machine/timing/mine/ctx6/fp32", "hardware": "machine", "size": "mine", "context": 6, "batch": 3},
        **{"model": "models/mine.py:build", "keys": '{"depth": "x", "layers": 2}', "class": "Stack"},
        **{"parameters": 216, "trainable": 200, "tied": "head.weight", "buffers_bytes": 40, "dtype": "torch.float32"},
        **{"inputs": DESCRIPTION["inputs"], "loss": DESCRIPTION["loss"], "vocab_size": 11, "blocks": 2},
        **{"block_class": "Linear", "block_path": "layers", "ranges_by": "hooks", "ranges": "layers.*, head"},
        **{"dropout": "0.0 0.1", "flops_counter": 23328, "flops_formula": 23328, "flops_disagree": False},
        **{"packages": None, "attention": None},
        **{"flops_why": "", "flops_from": "counter", "unknown": "heads: no module has them; a norm"},
    }
    assert list(row) == models.TABLE.columns


def test_the_attention_and_the_packages_are_those_of_the_record(cell):
    own = cell(about=DESCRIPTION | {"attention": "eager"})
    own.record["machine"]["packages"] = {"numpy": None, "transformers": "5.0.1"}
    (row,) = models.rows_of([own])
    assert (row["attention"], row["packages"]) == ("eager", "transformers 5.0.1")


def test_what_is_not_known_stays_empty(cell):
    bare = {"reference": "models/mine.py:build", "class": "Stack", "parameters": 216, "blocks": None, "flops": None}
    (row,) = models.rows_of([cell(about=bare)])
    told = {name: value for name, value in row.items() if value is not None}
    assert set(told) == {
        *("cell", "hardware", "size", "context", "batch", "model", "class", "parameters", "flops_disagree")
    }


def test_a_model_has_one_row_of_a_cell_at_neutral_options(cell):
    plain, one = cell(), cell("fp32/attention=sdpa", DESCRIPTION | {"class": "Other"}, attention="sdpa")
    rows = models.rows_of([one, plain, cell("fp32/batch=5", batch=5), cell(size="size", about=None)])
    assert [(row["class"], row["batch"]) for row in rows] == [("Stack", 3), ("Stack", 5)]


@pytest.mark.parametrize(
    ("counter", "formula", "more", "expected"),
    [
        *[(100, 100, {}, (100, "counter")), (100, None, {}, (100, "counter")), (None, 100, {}, (100, "formula"))],
        *[(60, 100, {}, (60, "counter")), (60, 100, {"from": "formula"}, (100, "formula"))],
        *[
            (60, None, {"from": "formula"}, (60, "counter")),
            (None, None, {}, (None, "")),
            (0, 100, {}, (100, "formula")),
        ],
    ],
)
def test_the_count_is_taken_unless_it_did_not_see_attention(counter, formula, more, expected):
    assert models.chosen_flops({"counter": counter, "formula": formula} | more) == expected


def test_rates_are_of_the_chosen_operations_and_none_of_the_forward_pass_alone(cell):
    row = timing.row(cell())
    assert [row[each.name] for each in SHAPE] == [None] * 5
    assert (row["parameters"], row["model"], row["model_flop"]) == (PARAMETERS - 16, "models/mine.py:build", FLOPS)
    assert row["step_tflops"] == pytest.approx(FLOPS / 7.5 / 1e12)  # the step takes 7.5 s, both passes 6
    assert row["forward_backward_tflops"] == pytest.approx(FLOPS / 6 / 1e12)
    assert row["forward_tflops"] is row["inference_tflops"] is row["forward_mfu"] is None
    assert row["step_tokens_per_s"] == pytest.approx(TOKENS / 7.5)


def test_inputs_that_are_no_tokens_have_no_tokens_a_second(cell):
    about = DESCRIPTION | {"vocab_size": None, "flops": {"counter": None, "formula": None}}
    own = cell(about=about)
    for row in (timing.row(own), ladder.rows([own])[0]):
        assert row["step_tokens_per_s"] is row["step_tflops"] is row["model_flop"] is None
        assert row["step_median_ms"] == 7500


def test_a_rung_has_no_closed_form(cell):
    (row,) = ladder.rows([cell(study="ladder")])
    assert row["step_tflops"] == pytest.approx(FLOPS / 7.5 / 1e12)
    assert {row[each.name] for each in ladder.PREDICTED} == {None}


def test_memory_is_predicted_where_it_follows_from_the_parameters(results, cell, tmp_path):
    """Parameters 4 x 216 bytes; gradients and both moments of the 200 that are trained: 800 and 1,600."""
    own = cell(summary={"modes": {"step": MODE}, "phases": [], "memory": ABOUT}, study="memory")
    write(results.folder / own.name / "analysis", ANALYSIS)
    memory.write([own], tmp_path)
    (row,) = read(tmp_path / "memory.csv")
    names = ("predicted_peak_bytes", "predicted_phase", "predicted_first_context_too_long", "residual_stream_bytes")
    assert [row[name] for name in (*names, "d_model")] == [""] * 5 and row["parameters"] == "200"
    found = {
        each["item"]: (each["predicted_bytes"], each["measured_bytes"]) for each in read_of(tmp_path, "accounting")
    }
    assert found == {
        **{"parameters": ("864", str(2 * 2624 + 736)), "gradients": ("800", str(2 * 2624 + 736))},
        **{"optimizer state": ("1600", ""), "saved by a block": ("", "1728"), "saved outside the blocks": ("", "100")},
        **{"saved in all": ("", str(2 * 1728 + 100)), "peak as requested": ("", "48000"), "peak": ("", "50000")},
    }
    assert not read_of(tmp_path, "predicted") and {each["formula"] for each in read_of(tmp_path, "saved")} == {""}


def test_the_program_writes_the_own_models_of_a_plan(results, cell, timing_spec, tmp_path):
    cell()
    results.expect("machine/timing/lost/ctx6/fp32", spec_of(timing_spec), "lost")
    results.expect("machine/timing/nano/ctx6/fp32", timing_spec)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(results.plan()))
    command = [sys.executable, SCRIPT, "--plan", plan, "--results", results.folder, "--out", tmp_path]
    subprocess.run(command, check=True)
    assert [row["size"] for row in read(tmp_path / "models.csv")] == ["mine"]


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def read_of(folder, name):
    return read(folder / f"memory_{name}.csv")
