"""The ladder study's table: names, comparisons and agreement, from records with numbers that a person can check."""

import csv
import dataclasses
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))

import synthetic_ladder as made
from stepscope.tables import ladder, ladder_chain


def table(cells, noisy=0.02) -> dict[str, dict]:
    """Rows by the name of the rung."""
    return {row["name"]: row for row in ladder.rows([dataclasses.replace(cell, noisy=noisy) for cell in cells])}


def values(cells, column: str) -> list:
    return [row[column] for row in ladder.rows(cells)]


def test_each_rung_is_named_by_what_it_changes():
    cells = [*made.chain(), made.whole(), *made.checkpoints()]
    assert values(cells, "name") == [
        "fp32, naive", "TF32", "bf16", "SDPA", "Triton attention", "blocks compiled", "CUDA graphs", "fused AdamW",
        "whole model compiled", "checkpoint every 1", "checkpoint every 2", "checkpoint every 4",
    ]  # fmt: skip
    assert values(cells, "rung") == [*range(8), None, None, None, None]
    assert values(cells, "aside") == [False] * 8 + [True] * 4


def test_a_rung_of_several_changes_names_them_all():
    cells = [made.cell("small", 128, "fp32"), made.cell("small", 128, "bf16", made.SDPA | {"optimizer": "fused"})]
    assert values(cells, "name") == ["fp32, naive", "bf16 + SDPA + fused AdamW"]
    assert values([cells[1]], "name") == ["bf16, SDPA, fused AdamW"]
    assert ladder_chain.name(cells[0].entry, cells[0].entry) == "nothing changed"


def test_asides_are_compared_with_the_rung_that_they_vary():
    cells = [*made.chain(), made.whole(), *made.checkpoints()]
    with_ = [row["compared_with"] for row in ladder.rows(cells)]
    assert with_[0] is None and with_[1:8] == [cell.name for cell in cells[:7]]
    assert with_[8] == "gpu/ladder/small/ctx128/bf16/attention=triton/compile=block"
    assert with_[9:] == ["gpu/ladder/small/ctx128/bf16/attention=sdpa"] * 3
    alone = ladder.rows([made.whole()])[0]
    assert (alone["compared_with"], alone["gain_before"]) == (None, None)
    assert alone["name"] == "bf16, Triton, whole model compiled"


def test_gains_over_the_rung_before_and_over_the_first():
    rows = table([*made.chain(), made.whole(), *made.checkpoints()])
    assert rows["fp32, naive"]["gain_before"] is None and rows["fp32, naive"]["gain_start"] == 1
    assert rows["TF32"]["gain_before"] == pytest.approx(40 / 25)
    assert rows["CUDA graphs"]["gain_before"] == pytest.approx(10 / 5)
    assert rows["fused AdamW"]["gain_start"] == pytest.approx(40 / 4)
    assert rows["whole model compiled"]["gain_before"] == pytest.approx(10 / 9)
    assert rows["checkpoint every 2"]["gain_before"] == pytest.approx(16 / 20)
    assert {row["gain_of"] for row in rows.values()} == {None, "step"}


def test_ladders_do_not_mix():
    cells = made.chain() + made.chain(context=256, scale=2) + made.chain(hardware="other", scale=4)
    starts = [row["started_from"] for row in ladder.rows(cells)]
    assert starts == [cells[0].name] * 8 + [cells[8].name] * 8 + [cells[16].name] * 8


def test_without_a_step_forward_and_backward_stand_for_it():
    cells = made.chain()
    cells[0], cells[1] = made.without_step(cells[0], both=True), made.without_step(cells[1])
    first, second, third, fourth = ladder.rows(cells)[:4]
    assert (first["status"], first["gain_start"], first["loss"]) == ("oom", None, None)
    # Forward and backward: 25 - 4 ms, 20 - 4 ms, 16 - 4 ms.
    assert (second["gain_before"], second["gain_start"], second["gain_start_of"]) == (None, 1, "forward+backward")
    assert (third["gain_before"], third["gain_of"]) == (pytest.approx(21 / 16), "forward+backward")
    assert (fourth["gain_before"], fourth["gain_of"]) == (pytest.approx(20 / 16), "step")
    assert fourth["gain_start"] == pytest.approx(21 / 12) and fourth["started_from"] == cells[1].name
    assert (second["step_status"], second["forward_backward_status"]) == ("oom", "ok")
    assert second["counted"] == "forward-backward" and second["peak_mode"] == "forward-backward"


@pytest.mark.parametrize("lost", ["unsupported", "failed", "missing"])
def test_a_rung_without_a_result_is_passed_over(lost):
    cells = made.chain()
    if lost == "unsupported":
        cells[1] = made.without_step(cells[1], lost, "no TF32 here", both=True)
    else:
        cells[1] = made.unmeasured(cells[1], lost, "a reason")
    rows = ladder.rows(cells)
    assert (rows[1]["status"], rows[1]["rung"], rows[1]["name"]) == (lost, 1, "TF32")
    assert rows[2]["compared_with"] == cells[0].name and rows[2]["gain_before"] == pytest.approx(40 / 20)
    assert rows[1]["gain_before"] is None and rows[1]["agrees"] is None


def test_a_fast_wrong_step_is_no_rung():
    cells = made.chain()
    sample = cells[3].record["summary"]["ladder"]
    sample["gradient_sample"] = [-value for value in sample["gradient_sample"]]
    rows = ladder.rows(cells)
    assert [row["agrees"] for row in rows[:5]] == [True, True, True, False, True]
    assert (rows[3]["gain_before"], rows[3]["gain_start"]) == (None, None)
    assert rows[4]["compared_with"] == cells[2].name and rows[4]["gain_before"] == pytest.approx(20 / 15)
    # |-1.01 g - g| / |g|, and the angle is 180 degrees.
    assert rows[3]["gradient_difference"] == pytest.approx(2.01) and rows[3]["gradient_cosine"] == pytest.approx(-1)
    assert rows[3]["gradient_norm_difference"] == pytest.approx(0.01) and rows[3]["loss_difference"] == 0


def test_nothing_is_compared_with_an_aside_that_is_wrong():
    cells = [*made.chain(), made.cell("small", 128, "bf16", made.TRITON | {"compile": "model"}, 1.0, 0.1, off=0.5)]
    row = ladder.rows(cells)[-1]
    assert (row["agrees"], row["gain_before"], row["gain_start"]) == (False, None, None)


def test_the_tolerance_is_that_of_the_coarser_precision():
    cells = [made.cell("small", 128, "bf16"), made.cell("small", 128, "fp32", off=0.03)]
    rows = ladder.rows(cells)
    assert [row["tolerance"] for row in rows] == [16 / 256, 16 / 256] and rows[1]["agrees"] is True
    # (1.03 - 1.01) / 1.01
    assert rows[1]["gradient_difference"] == pytest.approx(0.02 / 1.01)


@pytest.mark.parametrize(
    "precision, off, loss, expected",
    [
        ("fp32", 5e-5, 9.25, True),
        ("fp32", 1e-3, 9.25, False),  # as when the products run in TF32
        ("tf32", 5e-3, 9.25, True),
        ("tf32", 1e-2, 9.25, False),
        ("bf16", 6e-2, 9.25, True),
        ("bf16", 7e-2, 9.25, False),
        ("bf16", 1e-2, 9.25 * 1.006, True),
        ("bf16", 1e-2, 9.25 * 1.007, False),
        ("bf16", math.nan, 9.25, False),
        ("bf16", 1e-2, math.nan, False),
    ],
)
def test_agreement_by_precision(precision, off, loss, expected):
    cells = [made.cell("small", 128, "fp32"), made.cell("small", 128, precision, made.SDPA, off=off, loss=loss)]
    assert ladder.rows(cells)[1]["agrees"] is expected


def test_samples_that_cannot_be_compared_do_not_agree():
    found = {"loss": 1.0, "gradient_norm": 1.0, "gradient_sample": [1.0]}
    assert ladder_chain.compare(found, found | {"gradient_sample": [1.0, 2.0]}, ("fp32", "fp32"))["agrees"] is False
    assert ladder_chain.compare(found, found | {"loss": None}, ("fp32", "fp32"))["agrees"] is None
    assert ladder_chain.differences([3.0, 4.0], [3.0, 0.0]) == (pytest.approx(4 / 3), pytest.approx(0.6))
    assert ladder_chain.differences([0.0], [0.0]) == (0.0, None)


def test_rates_and_mfu():
    row = ladder.rows([made.cell("small", 128, "bf16", step=10.0, optimizer=2.0)])[0]
    # 2 operations for each token and each parameter of a matrix, and 4 context^2 d_model for each layer and sequence.
    matrices = 12 * (4 * 768**2 + 3 * 768 * 3072) + 768 * 10_000
    forward = 2 * 512 * matrices + 12 * 4 * 4 * 128**2 * 768
    assert row["step_tokens_per_s"] == pytest.approx(512 / 0.010)
    assert row["step_tflops"] == pytest.approx(3 * forward / 0.010 / 1e12)
    assert row["forward_backward_tflops"] == pytest.approx(3 * forward / 0.008 / 1e12)
    assert row["peak_tflops"] == 989.4 and row["step_mfu"] == pytest.approx(row["step_tflops"] / 989.4)
    assert row["forward_median_ms"] == pytest.approx(1.05 * 0.25 * 8)


def test_a_cpu_and_an_unknown_gpu_have_no_mfu():
    cell = made.cell("nano", 128, "fp32", hardware="cpu", operators=1200, peak=10**9)
    row = ladder.rows([cell])[0]
    assert (row["peak_tflops"], row["step_mfu"]) == (None, None) and row["step_tflops"] > 0
    assert (row["operators"], row["kernels"], row["peak_resident_bytes"]) == (1200, None, 10**9)
    unknown = made.cell("nano", 128, "fp32")
    unknown.record["provenance"]["hardware"] = made.GPU | {"gpu": "GPU of tomorrow"}
    assert ladder.rows([unknown])[0]["step_mfu"] is None


def test_the_table_and_the_samples_as_files(tmp_path):
    cells = [*made.chain(), made.unmeasured(made.whole())]
    made.write(tmp_path, cells)
    with (tmp_path / "ladder.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["cell"] for row in rows] == [cell.name for cell in cells]
    assert (rows[-1]["status"], rows[-1]["log"], rows[-1]["agrees"], rows[-1]["compile"]) == (
        "missing",
        "",
        "",
        "model",
    )
    assert rows[5]["compile_seconds"] == "21.5" and rows[5]["launches"] == "1800"
    lines = (tmp_path / "ladder_samples.csv").read_text().splitlines()
    assert lines[0].startswith("cell,hardware,size,context,precision,repeat,process,mode,kind,step,phase")
    assert len(lines) == 1 + 8


def test_no_cells():
    assert ladder.rows([]) == []
