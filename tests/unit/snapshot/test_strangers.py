"""Snapshots of programs that are none of ours: what autocast casts, what stacks hide."""

import os

import pandas as pd
import pytest
from common import one_line
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
    analyse,
    at_peak,
    held,
    python_frame,
    summary_of,
    torch_frame,
    written,
)
from stepscope.snapshot import SnapshotError, analysis, stacks, summary
from stepscope.snapshot.events import Frame, Snapshot


@pytest.mark.parametrize("midway", [0, 3])
def test_casts_of_activations_are_no_cast_weights(midway):
    """Weights of 1000 and 3000 bytes in fp32: in 16 bits 500 and 1500; all other casts are of
    activations."""
    casts = [(size, CAST) for size in (500, 1500, 700, 1000, 499)]
    content = Simulator((1000, MADE), (3000, MADE), *casts).snapshot(first=midway)
    assert held(content, "cast weights", "activations") == [2000, 700 + 1000 + 499]


def test_a_folder_called_optimization_makes_nothing_an_optimizers():
    def in_folder(frames):
        place = "/home/llm-optimization"
        return [
            each | {"filename": each["filename"].replace("/home/user", place)} for each in frames
        ]

    made = [(1000, [python_frame("__init__", 3), USER]), (600, FORWARD), (50, BATCH)]
    simulator = Simulator(*((size, in_folder(frames)) for size, frames in made), (70, AUTOGRAD))
    kinds = ["parameters", "activations", "gradients", "unknown", "optimizer state"]
    assert held(simulator, *kinds) == [1000, 600, 70, 50, 0]


WRAPPER = torch_frame("wrapper", 500, "optim/optimizer.py")


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


def test_a_step_that_calls_the_model_is_a_step_of_training():
    """Trainer.step: the batch that it allocates itself is none of an optimizer's."""
    trainer = [python_frame("step", 40, "/home/user/trainer.py"), USER]
    simulator = Simulator((300, trainer), (500, [FORWARD[0], CALL, *trainer]), (80, OPTIMIZER))
    assert held(simulator, "unknown", "activations", "optimizer state") == [300, 500, 80]


def test_what_was_allocated_before_the_recording_is_told():
    found = analyse(Simulator((1 << 19, BATCH), (1 << 18, BATCH)).snapshot(first=2))
    assert summary_of(found)["unknown_before"] == 1 << 19 and at_peak(found)["unknown"] == 3 << 18
    assert "of what is unknown, 0.5 MiB were allocated before" in summary.markdown(found, "x")


def test_the_peak_is_told_in_requested_and_in_rounded_bytes():
    """The allocator hands out multiples of 512 bytes."""
    row = summary_of(analyse(Simulator([1], [512], [513])))
    assert (row["peak"], row["peak_allocated"]) == (1026, 512 + 512 + 1024)


@pytest.mark.parametrize("without, said", [(90, False), (91, True)])
def test_frames_that_are_missing_are_said(without, said):
    simulator = Simulator((1000 * (100 - without), BATCH), (1000 * without, []))
    told = "91.0 % of the allocated bytes have no line" in summary.markdown(analyse(simulator), "x")
    assert told == said


def test_whole_stacks():
    found = analyse(Simulator((1000, MADE), (500, FORWARD), (600, FORWARD)))
    rows = found["memory_lines"]
    assert rows["bytes"].tolist() == [1100, 1000] and rows["blocks"].tolist() == [2, 1]
    call = "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py:1500 _call_impl"
    whole = f"/home/user/model.py:20 forward ← {call} ← /home/user/train.py:7 main"
    assert rows["stack"].iloc[0] == whole


def nested(levels, times):
    """A list of so many times the same list of …: of two its text is 2 ** levels long."""
    return [nested(levels - 1, times)] * times if levels else []


@pytest.mark.parametrize("name", [nested(60, 2), nested(150, 1), 5, {"a": 1}])
@pytest.mark.parametrize("where", ["frame", "annotation", "state"])
def test_a_name_that_is_no_text_is_refused_at_once(name, where):
    """Of a function, a range, a block's state."""
    simulator = Simulator((500, [python_frame("f")]))
    with simulator.annotated("forward"):
        pass
    content = simulator.snapshot()
    (trace,), (segment,) = content["device_traces"], content["segments"]
    places = {
        "frame": (trace[1]["frames"][0], "name"),
        "annotation": (content["external_annotations"][0], "name"),
        "state": (segment["blocks"][0], "state"),
    }
    holder, key = places[where]
    holder[key] = name
    with pytest.raises(SnapshotError, match=f"a name is a {type(name).__name__}"):
        analyse(content)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "pipe: this is a pipe or a device" in one_line(
        SnapshotError, analysis.analyse_file, tmp_path / "pipe"
    )


def test_sixty_megabytes_of_empty_dicts_are_one_line(run_analyze, tmp_path):
    path = tmp_path / "a.pickle"
    path.write_bytes(b"\x80\x04](" + b"}" * 60_000_000 + b"e.")
    done = run_analyze(path, "--most-gigabytes", 0.5, "--out", tmp_path / "out")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: {path}: ") and "memory" in done.stderr


def test_control_characters_never_reach_the_terminal(run_analyze, tmp_path):
    simulator = Simulator((500, [python_frame("\x1b[31mred\x07\u202e")]))
    done = run_analyze(written(simulator, tmp_path / "a.pickle"), "--out", tmp_path / "out")
    assert done.returncode == 0 and "red" in done.stdout
    assert not set("\x1b\x07\u202e") & set(done.stdout)


@pytest.mark.parametrize(
    "inner, outer", [("<lambda>", "cuda"), ("convert", "to"), ("<lambda>", "bfloat16")]
)
def test_what_moves_a_module_to_its_device_makes_parameters(inner, outer):
    """`model.cuda()` outside every constructor: the innermost frame is a function within torch's
    own `Module`."""
    names = (inner, "_apply", "_apply", outer)
    moves = [torch_frame(name, 900, "nn/modules/module.py") for name in names]
    simulator = Simulator((3000, [*moves, USER]), (500, FORWARD))
    assert held(simulator, "parameters", "activations") == [3000, 500]
