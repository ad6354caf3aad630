"""Snapshots recorded on an H100, against PyTorch's own counters of the same runs (see
recordings/README.md)."""

import itertools
import json
import shutil
from functools import cache
from pathlib import Path

import pytest
from common import SNAPSHOTS, one_line
from pytest import approx
from snapshot_simulator import at_peak, phases_of, runs, summary_of
from stepscope.snapshot import SnapshotError, analysis

OURS = ("step_fp32", "step_bf16", "step_bf16_expandable", "inference_fp32", "inference_bf16")
STEPS = OURS[:3]
OTHERS = ("annotations", "began_midway", "cut", "no_frames", "cpp_frames")
D_MODEL, D_FF, LAYERS, VOCABULARY, HEADS, CONTEXT, BATCH = 256, 1024, 3, 1000, 4, 128, 4
PARAMETERS = (
    2 * VOCABULARY * D_MODEL
    + LAYERS * (4 * D_MODEL**2 + 3 * D_MODEL * D_FF + 2 * D_MODEL)
    + D_MODEL
)
OTHER_PARAMETERS = 4 * (512 * 512 + 512)  # four Linear(512, 512)
FP32 = 4


def snapshot(name):
    return SNAPSHOTS / name / "snapshot.pickle.gz"


@cache
def tables(name):
    """Of a recording, analysed once for all tests."""
    return analysis.analyse_file(snapshot(name))


def timeline(name):
    return tables(name)["memory_timeline"]


def summary(name):
    return summary_of(tables(name))


def truth(name):
    """What PyTorch's counters said in the same run."""
    return json.loads((SNAPSHOTS / name / "truth.json").read_text())


def peak(name):
    """Category → bytes at a recording's peak."""
    return at_peak(tables(name))


@pytest.mark.parametrize("name", [*OURS, "out_of_memory", "step_fp32_out_of_memory"])
def test_the_peak_is_that_of_pytorchs_counter(name):
    told = truth(name)["summary"]
    (mode,) = told["modes"].values()
    found, most = summary(name), mode["peak_allocated_bytes"]
    assert 0.999 * most < found["peak"] <= most  # which counts in steps of 512 bytes
    assert found["peak_reserved"] == mode["peak_reserved_bytes"]
    if "start" in told["memory"]["baselines"]:
        assert found["start"] == approx(told["memory"]["baselines"]["start"], abs=4096)


@pytest.mark.parametrize("name", OTHERS)
def test_the_peak_and_the_ends_of_a_program_that_is_none_of_ours(name):
    told, found = truth(name), summary(name)
    assert found["peak"] == approx(told["max_memory_allocated"], abs=4096)
    assert found["end"] == approx(told["memory_allocated_after"], abs=4096)
    assert found["reserved_at_peak"] <= told["memory_reserved_after"] == found["peak_reserved"]
    if name != "cut":  # which lacks the events from which on the counter ran
        assert found["start"] == approx(told["memory_allocated_before"], abs=4096)


@pytest.mark.parametrize("name", [*OURS, *OTHERS])
def test_only_the_cut_history_is_said_to_be_cut(name):
    assert summary(name)["cut"] == (name == "cut")


@pytest.mark.parametrize("name", OURS)
def test_parameters_and_moments_are_exact_and_nothing_is_unknown(name):
    held = peak(name)
    assert held["parameters"] == PARAMETERS * FP32
    assert held["optimizer state"] == (2 * PARAMETERS * FP32 if name in STEPS else 0)
    assert held["unknown"] == 0
    assert held.sum() == summary(name)["peak"]


@pytest.mark.parametrize("name", STEPS)
def test_gradients_are_all_there_when_the_optimizer_runs(name):
    """At the end of the backward pass: a gradient for each parameter, and no activation."""
    ends = runs(tables(name)).query("phase == 'backward'")["end"]
    rows = timeline(name).set_index("event").loc[ends]
    assert (rows["gradients"] == PARAMETERS * FP32).all()
    assert (rows["activations"] < 4096).all() and not rows["cast_weights"].any()


def test_cast_weights_are_half_of_all_weights_of_linear_layers():
    """Autocast keeps bf16 copies of what a matrix product needs, until the step is over."""
    linear = LAYERS * (4 * D_MODEL**2 + 3 * D_MODEL * D_FF) + D_MODEL * VOCABULARY
    most = [timeline(name)["cast_weights"].max() for name in STEPS]
    assert most == [0, linear * 2, linear * 2]
    assert "cast weights" in set(tables("step_bf16")["memory_saved"]["category"])


@pytest.mark.parametrize("name", STEPS)
def test_phases_follow_each_other_and_add_up(name):
    by_step = phases_of(tables(name)).groupby("step")["phase"].agg(list)
    assert by_step.tolist() == [["forward", "backward", "optimizer"]] * 2
    assert runs(tables(name))["active"].iloc[-1] == summary(name)["end"]
    assert timeline(name)["active"].max() == summary(name)["peak"]
    held = ["parameters", "gradients", "optimizer_state", "activations", "cast_weights", "other"]
    assert (timeline(name)[held].sum(axis=1) == timeline(name)["active"]).all()


def test_a_softmax_keeps_scores_of_every_block():
    """The scores of each block, batch × heads × context × context in fp32, are saved for the
    backward pass."""
    scores = BATCH * HEADS * CONTEXT * CONTEXT * FP32
    found, softmax = tables("step_fp32"), "module == 'blocks.*/attention/softmax'"
    rows = found["memory_largest"].query(f"{softmax} and phase == 'forward'")
    assert (rows["bytes"] == scores).all() and rows["alive"].sum() >= LAYERS - 1
    assert set(rows["shape"]) == {f"{BATCH}×{HEADS}×{CONTEXT}×{CONTEXT}"}
    assert rows["frame"].str.startswith("scripts/stepscope/model/softmax.py:").all()
    saved = found["memory_saved"].query(f"{softmax} and part == 'block'")
    assert saved["bytes"].max() == scores and set(saved["dtype"]) == {"float32"}


def test_the_backward_pass_has_modules_though_it_has_no_frames():
    lines = tables("step_fp32")["memory_lines"]
    frames = lines.query("category == 'workspace' and module != ''")["frame"]
    assert set(frames) == {""}
    assert 0.4 < summary("step_fp32")["without_frames"] < 0.8


def test_out_of_memory_is_told():
    """On a GPU of which this process might use little."""
    found = summary("out_of_memory")
    # a matrix of attention, which needs a segment of 2 MiB
    assert found[["ooms", "oom_requested", "oom_phase"]].tolist() == [1, 1 << 20, "forward"]
    assert found["oom_frame"].startswith("scripts/stepscope/model/softmax.py:")
    assert found["oom_free"] > 70 << 30


def test_where_memory_ran_out_is_known_to_the_part_of_the_model():
    """In fp32 the scores of a block, of batch 4 and 4 heads at context 128, are 1 MiB; so are their
    exponentials."""
    found = summary("step_fp32_out_of_memory")
    place = ["forward", "blocks.0/attention/softmax", 4 * 4 * 128 * 128 * FP32]
    assert found[["oom_phase", "oom_module", "oom_requested"]].tolist() == place
    held = peak("step_fp32_out_of_memory")
    assert held["parameters"] == PARAMETERS * FP32
    assert held["buffers"] < 1 << 17  # what the forward pass made until then is no buffer
    assert held["workspace"] >= 32 << 20  # cuBLAS's, made by the first matrix product
    assert held["activations"] < 32 << 20
    assert held.get("unknown", 0) == 0


@pytest.mark.parametrize("name", ["annotations", "began_midway", "cpp_frames", "no_frames"])
def test_without_a_side_file_annotations_and_stacks_tell_the_phases(name):
    found = phases_of(tables(name))
    assert found["phase"].tolist()[:3] == ["forward", "backward", "optimizer"]
    assert found["step"].max() == 1
    held = peak(name)
    assert held["gradients"] == OTHER_PARAMETERS * FP32


def test_moments_are_told_where_the_recording_saw_the_first_step():
    moments = {"annotations": 2 * OTHER_PARAMETERS * FP32, "began_midway": 0}
    for name, expected in moments.items():
        assert peak(name)["optimizer state"] == expected
        # AdamW counts its steps on the host; parameters and batch were there before: unknown.
        assert peak(name)["unknown"] == truth(name)["memory_allocated_before"]
    assert peak("annotations")["workspace"] >= 2 * (32 << 20)  # cuBLAS's, one a thread


def test_our_own_program_without_its_side_file(tmp_path):
    """Stacks tell a parameter by its constructor, so the tables and the batch (0.5 %) count as
    parameters, too."""
    found = analysis.analyse_file(Path(shutil.copy2(snapshot("step_fp32"), tmp_path)))
    held = at_peak(found)
    assert PARAMETERS * FP32 <= held["parameters"] < 1.01 * PARAMETERS * FP32
    assert held["optimizer state"] == 2 * PARAMETERS * FP32
    assert held["gradients"] == peak("step_fp32")["gradients"]
    assert held["activations"] == approx(peak("step_fp32")["activations"], rel=0.01)
    assert held.sum() == summary("step_fp32")["peak"]
    assert phases_of(found)["phase"].tolist() == ["forward", "backward", "optimizer"] * 2
    # its first part was cleared, which only known.json can explain
    assert summary_of(found)["cut"]
    assert "memory_saved" not in found


WITH_SIDE_FILE = (*OURS, "step_fp32_out_of_memory")


@pytest.mark.parametrize("name, other", itertools.permutations(WITH_SIDE_FILE, 2))
def test_the_side_file_of_another_snapshot_is_refused(name, other):
    path = SNAPSHOTS / other / "known.json.gz"
    said = one_line(SnapshotError, analysis.analyse_file, snapshot(name), path)
    assert said.startswith(f"{path}: it belongs to another snapshot; give the one that was written")
