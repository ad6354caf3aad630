"""Snapshots recorded on an H100, against PyTorch's own counters of the same runs (see
recordings/README.md)."""

import gzip
import json
import pickle
from functools import cache

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


@cache
def tables(name):
    return analysis.analyse_file(SNAPSHOTS / name / "snapshot.pickle.gz")


def summary(name):
    return summary_of(tables(name))


def truth(name):
    return json.loads((SNAPSHOTS / name / "truth.json").read_text())


def peak(name):
    return at_peak(tables(name))


@pytest.mark.parametrize("name", [*OURS, "out_of_memory", "step_fp32_out_of_memory"])
def test_the_peak_is_that_of_pytorchs_counter(name):
    told = truth(name)["summary"]
    (mode,) = told["modes"].values()
    assert summary(name)["peak"] == approx(mode["peak_allocated_bytes"], rel=1e-3)
    assert (
        summary(name)["peak"] <= mode["peak_allocated_bytes"]
    )  # which counts in steps of 512 bytes
    assert summary(name)["peak_reserved"] == mode["peak_reserved_bytes"]
    if "start" in told["memory"]["baselines"]:
        assert summary(name)["start"] == approx(told["memory"]["baselines"]["start"], abs=4096)


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
    timeline, phases = tables(name)["memory_timeline"], runs(tables(name))
    for end in phases.loc[phases["phase"] == "backward", "end"]:
        row = timeline[timeline["event"] == end].iloc[0]
        assert row["gradients"] == PARAMETERS * FP32
        assert row["activations"] < 4096 and row["cast_weights"] == 0


def test_cast_weights_are_half_of_all_weights_of_linear_layers():
    """Autocast keeps bf16 copies of what a matrix product needs, until the step is over."""
    linear = LAYERS * (4 * D_MODEL**2 + 3 * D_MODEL * D_FF) + D_MODEL * VOCABULARY
    for name in ("step_bf16", "step_bf16_expandable"):
        assert tables(name)["memory_timeline"]["cast_weights"].max() == linear * 2
        assert tables(name)["memory_saved"]["category"].eq("cast weights").any()
    assert tables("step_fp32")["memory_timeline"]["cast_weights"].max() == 0


@pytest.mark.parametrize("name", STEPS)
def test_phases_follow_each_other_and_add_up(name):
    by_step = phases_of(tables(name)).groupby("step")["phase"].agg(list)
    assert by_step.tolist() == [["forward", "backward", "optimizer"]] * 2
    assert runs(tables(name))["active"].iloc[-1] == summary(name)["end"]
    timeline = tables(name)["memory_timeline"]
    assert timeline["active"].max() == summary(name)["peak"]
    held = ["parameters", "gradients", "optimizer_state", "activations", "cast_weights", "other"]
    assert (timeline[held].sum(axis=1) == timeline["active"]).all()


def test_a_softmax_keeps_scores_of_every_block():
    """The scores of each block, batch × heads × context × context in fp32, are saved for the
    backward pass."""
    scores = BATCH * HEADS * CONTEXT * CONTEXT * FP32
    rows = tables("step_fp32")["memory_largest"]
    rows = rows[(rows["module"] == "blocks.*/attention/softmax") & (rows["phase"] == "forward")]
    assert (rows["bytes"] == scores).all() and rows["alive"].sum() >= LAYERS - 1
    assert set(rows["shape"]) == {f"{BATCH}×{HEADS}×{CONTEXT}×{CONTEXT}"}
    assert rows["frame"].str.startswith("scripts/stepscope/model/softmax.py:").all()
    saved = tables("step_fp32")["memory_saved"]
    saved = saved[(saved["part"] == "block") & (saved["module"] == "blocks.*/attention/softmax")]
    assert saved["bytes"].max() == scores and set(saved["dtype"]) == {"float32"}


def test_the_backward_pass_has_modules_though_it_has_no_frames():
    found = analysis.analyse_file(SNAPSHOTS / "step_fp32" / "snapshot.pickle.gz")["memory_lines"]
    workspace = found[(found["category"] == "workspace") & (found["module"] != "")]
    assert len(workspace) and (workspace["frame"] == "").all()
    assert 0.4 < summary("step_fp32")["without_frames"] < 0.8


def test_out_of_memory_is_told():
    found = summary("out_of_memory")
    assert found["ooms"] == 1
    assert (
        found["oom_requested"] == 1 << 20
    )  # a matrix of attention, which needs a segment of 2 MiB
    assert found["oom_frame"].startswith("scripts/stepscope/model/softmax.py:")
    assert found["oom_phase"] == "forward"
    assert found["oom_free"] > 70 << 30


def test_where_memory_ran_out_is_known_to_the_part_of_the_model():
    """In fp32 the scores of a block, of batch 4 and 4 heads at context 128, are 1 MiB; so are their
    exponentials."""
    found = summary("step_fp32_out_of_memory")
    assert (found["oom_phase"], found["oom_module"]) == ("forward", "blocks.0/attention/softmax")
    assert found["oom_requested"] == 4 * 4 * 128 * 128 * FP32
    held = peak("step_fp32_out_of_memory")
    assert held["parameters"] == PARAMETERS * FP32
    assert held["buffers"] < 1 << 17  # what the forward pass made until then is no buffer
    assert held["workspace"] >= 32 << 20  # cuBLAS's, made by the first matrix product
    assert held["activations"] < 32 << 20
    assert "unknown" not in held or held["unknown"] == 0


@pytest.mark.parametrize("name", ["annotations", "began_midway", "cpp_frames", "no_frames"])
def test_without_a_side_file_annotations_and_stacks_tell_the_phases(name):
    found = phases_of(tables(name))
    assert found["phase"].tolist()[:3] == ["forward", "backward", "optimizer"]
    assert found["step"].max() == 1
    held = peak(name)
    assert held["gradients"] == OTHER_PARAMETERS * FP32


def test_moments_are_told_where_the_recording_saw_the_first_step():
    assert peak("annotations")["optimizer state"] == 2 * OTHER_PARAMETERS * FP32
    # AdamW counts its steps on the host; parameters and batch were there before: unknown.
    assert peak("annotations")["unknown"] == truth("annotations")["memory_allocated_before"]
    assert peak("annotations")["workspace"] >= 2 * (32 << 20)  # cuBLAS's, one a thread
    assert peak("began_midway")["optimizer state"] == 0
    assert peak("began_midway")["unknown"] == truth("began_midway")["memory_allocated_before"]


def test_stacks_alone_tell_the_phases(tmp_path):
    """began_midway without its annotations: the loss, which is no module's, is all that stacks do
    not tell."""
    content = pickle.loads(
        gzip.decompress((SNAPSHOTS / "began_midway" / "snapshot.pickle.gz").read_bytes())
    )
    content["external_annotations"] = []
    (tmp_path / "a.pickle").write_bytes(pickle.dumps(content))
    found = analysis.analyse_file(tmp_path / "a.pickle")
    held = at_peak(found)
    assert phases_of(found)["phase"].tolist() == ["forward", "backward", "optimizer"] * 2
    assert held["gradients"] == OTHER_PARAMETERS * FP32
    assert held["unknown"] == peak("began_midway")["unknown"] + 4


def test_our_own_program_without_its_side_file(tmp_path):
    """Stacks tell a parameter by its constructor, so the tables and the batch (0.5 %) count as
    parameters, too."""
    path = tmp_path / "snapshot.pickle.gz"
    path.write_bytes((SNAPSHOTS / "step_fp32" / "snapshot.pickle.gz").read_bytes())
    found = analysis.analyse_file(path)
    held = at_peak(found)
    assert PARAMETERS * FP32 <= held["parameters"] < 1.01 * PARAMETERS * FP32
    assert held["optimizer state"] == 2 * PARAMETERS * FP32
    assert held["gradients"] == peak("step_fp32")["gradients"]
    assert held["activations"] == approx(peak("step_fp32")["activations"], rel=0.01)
    assert held.sum() == summary("step_fp32")["peak"]
    assert phases_of(found)["phase"].tolist() == ["forward", "backward", "optimizer"] * 2
    assert bool(
        summary_of(found)["cut"]
    )  # its first part was cleared, which only known.json can explain
    assert "memory_saved" not in found


WITH_SIDE_FILE = (*OURS, "step_fp32_out_of_memory")
FOREIGN = [(one, other) for one in WITH_SIDE_FILE for other in WITH_SIDE_FILE if one != other]


@pytest.mark.parametrize("name, other", FOREIGN)
def test_the_side_file_of_another_snapshot_is_refused(name, other):
    path = SNAPSHOTS / other / "known.json.gz"
    snapshot = SNAPSHOTS / name / "snapshot.pickle.gz"
    said = one_line(SnapshotError, analysis.analyse_file, snapshot, path)
    assert said.startswith(f"{path}: it belongs to another snapshot; give the one that was written")
