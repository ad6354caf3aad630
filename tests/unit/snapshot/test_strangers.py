"""Snapshots of programs that are none of ours: what optimizers rebind, what autocast casts, what
stacks hide."""

import os

import pandas as pd
import pytest
from snapshot_simulator import (
    AUTOGRAD,
    BATCH,
    CALL,
    CAST,
    FORWARD,
    MADE,
    OPTIMIZER,
    USER,
    Simulator,
    at_peak,
    python_frame,
    summary_of,
    written,
)
from stepscope.snapshot import SnapshotError, analysis, stacks, summary
from stepscope.snapshot.events import Frame, Snapshot


@pytest.mark.parametrize("midway", [0, 3])
def test_casts_of_activations_are_no_cast_weights(analyse, midway):
    """Weights of 1000 and 3000 bytes in fp32: in 16 bits 500 and 1500; all other casts are of
    activations."""
    simulator = Simulator()
    simulator.alloc(1000, MADE)
    simulator.alloc(3000, MADE)
    for size in (500, 1500, 700, 1000, 499):
        simulator.alloc(size, CAST)
    held = at_peak(analyse(simulator.snapshot(first=midway)))
    assert (held["cast weights"], held["activations"]) == (2000, 700 + 1000 + 499)


def rebinding(steps, moment=False):
    """A constructor's parameters of 1000 and 1000 bytes, which each step of the optimizer
    replaces."""
    simulator = Simulator()
    parameters = [simulator.alloc(1000, MADE), simulator.alloc(1000, MADE)]
    moments = [None, None]
    for _ in range(steps):
        activation = simulator.alloc(400, FORWARD)
        gradient = simulator.alloc(900, AUTOGRAD)
        simulator.free(activation)
        for at, old in enumerate(parameters):
            if moment:
                new = simulator.alloc(1000, OPTIMIZER)
                if moments[at]:
                    simulator.free(moments[at])
                moments[at] = new
            scratch = simulator.alloc(1000, OPTIMIZER)
            parameters[at] = simulator.alloc(1000, OPTIMIZER)
            simulator.free(scratch, old)
        simulator.free(gradient)
    return simulator


@pytest.mark.parametrize("steps, moment", [(1, False), (3, False), (1, True), (3, True)])
def test_parameters_that_an_optimizer_rebinds_stay_parameters(analyse, steps, moment):
    timeline = analyse(rebinding(steps, moment).snapshot())["memory_timeline"].set_index("event")
    assert timeline.loc[3, ["parameters", "other"]].tolist() == [
        2000,
        0,
    ]  # in the first forward pass
    last = timeline.iloc[-1]
    assert (last["parameters"], last["optimizer_state"]) == (2000, 2000 if moment else 0)
    assert timeline["other"].max() == 1000  # scratch of a parameter


def test_a_model_that_is_deleted_leaves_moments_what_they_are(analyse):
    """Freed after the optimizer's turn: nothing took the parameter's place."""
    simulator = Simulator()
    parameter = simulator.alloc(1000, MADE)
    activation = simulator.alloc(100, FORWARD)
    simulator.alloc(1000, OPTIMIZER)
    simulator.free(activation)
    simulator.free(simulator.alloc(50, FORWARD))
    simulator.free(parameter)
    timeline = analyse(simulator.snapshot())["memory_timeline"]
    assert timeline.iloc[-1][["parameters", "optimizer_state"]].tolist() == [0, 1000]


def in_folder(frames):
    return [
        each | {"filename": each["filename"].replace("/home/user", "/home/llm-optimization")}
        for each in frames
    ]


def test_a_folder_called_optimization_makes_nothing_an_optimizers(analyse):
    simulator = Simulator()
    simulator.alloc(1000, in_folder([python_frame("__init__", 3), USER]))
    simulator.alloc(600, in_folder(FORWARD))
    simulator.alloc(50, in_folder(BATCH))
    simulator.alloc(70, AUTOGRAD)
    held = at_peak(analyse(simulator.snapshot()))
    kinds = ["parameters", "activations", "gradients", "unknown", "optimizer state"]
    assert held[kinds].tolist() == [1000, 600, 70, 50, 0]


WRAPPER = python_frame("wrapper", 500, "/usr/lib/python3.12/site-packages/torch/optim/optimizer.py")


@pytest.mark.parametrize(
    "frames, kind",
    [
        ([python_frame("step", 58, "/home/user/own.py"), USER], stacks.OPTIMIZER),
        ([python_frame("_update", 64), python_frame("step", 58), USER], stacks.OPTIMIZER),
        ([python_frame("f", 64), WRAPPER, USER], stacks.OPTIMIZER),
        ([python_frame("adamw_update", 64), USER], stacks.OPTIMIZER),
        ([python_frame("configure_optimizers", 64), USER], stacks.NOTHING),
        ([python_frame("main", 64, "/home/user/optim/optimizer.py")], stacks.NOTHING),
        ([python_frame("train_step", 64), USER], stacks.NOTHING),
        ([python_frame("forward", 5), python_frame("step", 9), WRAPPER], stacks.FORWARD),
    ],
)
def test_optimizers_by_function_and_class(frames, kind):
    frames = [Frame(each["filename"], each["line"], each["name"]) for each in frames]
    snapshot = Snapshot([], [tuple(range(len(frames)))], frames, pd.DataFrame())
    assert stacks.kinds(snapshot)[0] == kind


def test_a_step_that_calls_the_model_is_a_step_of_training(analyse):
    """Trainer.step: the batch that it allocates itself is none of an optimizer's."""
    trainer = python_frame("step", 40, "/home/user/trainer.py")
    simulator = Simulator()
    simulator.alloc(300, [trainer | {"line": 41}, USER])
    simulator.alloc(500, [FORWARD[0], CALL, trainer | {"line": 42}, USER])
    simulator.alloc(80, OPTIMIZER)
    held = at_peak(analyse(simulator.snapshot()))
    assert held[["unknown", "activations", "optimizer state"]].tolist() == [300, 500, 80]


def test_what_was_allocated_before_the_recording_is_told(analyse):
    simulator = Simulator()
    simulator.alloc(1 << 19)
    simulator.alloc(1 << 18, BATCH)
    found = analyse(simulator.snapshot(first=2))
    assert summary_of(found)["unknown_before"] == 1 << 19 and at_peak(found)["unknown"] == 3 << 18
    assert "unknown, 0.5 MiB of it allocated before" in summary.text(found)


def test_the_peak_is_told_in_requested_and_in_rounded_bytes(analyse):
    simulator = Simulator()
    for size in (1, 512, 513):
        simulator.alloc(size)
    row = summary_of(analyse(simulator.snapshot()))
    assert (row["peak"], row["peak_allocated"]) == (1026, 512 + 512 + 1024)


@pytest.mark.parametrize("without, said", [(90, False), (91, True)])
def test_frames_that_are_missing_are_said(analyse, without, said):
    simulator = Simulator()
    simulator.alloc(1000 * (100 - without), BATCH)
    simulator.alloc(1000 * without, [])
    assert (
        "91.0 % of the allocated bytes have no line" in summary.text(analyse(simulator.snapshot()))
    ) == said


def test_whole_stacks(analyse):
    simulator = Simulator()
    simulator.alloc(1000, MADE)
    simulator.alloc(500, FORWARD)
    simulator.alloc(600, FORWARD)
    rows = analyse(simulator.snapshot())["memory_lines"]
    assert rows["bytes"].tolist() == [1100, 1000] and rows["blocks"].tolist() == [2, 1]
    call = "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py:1500 _call_impl"
    assert (
        rows["stack"].iloc[0]
        == f"/home/user/model.py:20 forward ← {call} ← /home/user/train.py:7 main"
    )


def nested(levels, times):
    """A list of so many times the same list of …: of two its text is 2 ** levels long."""
    return [nested(levels - 1, times)] * times if levels else []


@pytest.mark.parametrize("name", [nested(60, 2), nested(150, 1), 5, {"a": 1}])
@pytest.mark.parametrize("where", ["frame", "annotation", "state"])
def test_a_name_that_is_no_text_is_refused_at_once(tmp_path, name, where):
    simulator = Simulator()
    simulator.annotate("forward", "START")
    simulator.alloc(500, [python_frame("f")])
    content = simulator.snapshot()
    if where == "frame":
        content["device_traces"][0][1]["frames"][0]["name"] = name
    elif where == "annotation":
        content["external_annotations"][0]["name"] = name
    else:
        content["segments"][0]["blocks"][0]["state"] = name
    with pytest.raises(SnapshotError, match=f"a name is a {type(name).__name__}"):
        analysis.analyse_file(written(content, tmp_path / "a.pickle"))


@pytest.mark.parametrize("known", [False, True])
def test_a_pipe_is_refused_at_once(tmp_path, known):
    path = written(Simulator().snapshot(), tmp_path / "a.pickle")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SnapshotError, match="pipe: this is a pipe or a device"):
        analysis.analyse_file(
            path if known else tmp_path / "pipe", tmp_path / "pipe" if known else None
        )


def test_sixty_megabytes_of_empty_dicts_are_one_line(run_analyze, tmp_path):
    path = tmp_path / "a.pickle"
    path.write_bytes(b"\x80\x04](" + b"}" * 60_000_000 + b"e.")
    done = run_analyze(path, "--most-gigabytes", 0.5, "--out", tmp_path / "out")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: {path}: ") and "memory" in done.stderr


def test_control_characters_never_reach_the_terminal(run_analyze, tmp_path):
    simulator = Simulator()
    simulator.alloc(500, [python_frame("\x1b[31mred\x07\u202e")])
    done = run_analyze(
        written(simulator.snapshot(), tmp_path / "a.pickle"), "--out", tmp_path / "out"
    )
    assert (
        done.returncode == 0
        and "red" in done.stdout
        and not set("\x1b\x07\u202e") & set(done.stdout)
    )


@pytest.mark.parametrize(
    "inner, outer", [("<lambda>", "cuda"), ("convert", "to"), ("<lambda>", "bfloat16")]
)
def test_what_moves_a_module_to_its_device_makes_parameters(analyse, inner, outer):
    """`model.cuda()` outside every constructor: the innermost frame is a function within torch's
    own `Module`."""
    module = "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py"
    names = (inner, "_apply", "_apply", outer)
    simulator = Simulator()
    simulator.alloc(3000, [*(python_frame(name, 900, module) for name in names), USER])
    simulator.alloc(500, FORWARD)
    held = at_peak(analyse(simulator.snapshot()))
    assert (held["parameters"], held["activations"]) == (3000, 500)
