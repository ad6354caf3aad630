"""The tables of programs that are none of ours: categories from stacks, old layouts, several
devices, many rows."""

import pandas as pd
import pytest
from snapshot_simulator import (
    AUTOGRAD,
    BATCH,
    CAST,
    FORWARD,
    MADE,
    OPTIMIZER,
    SEGMENT,
    Simulator,
    analyse,
    at_peak,
    held,
    phases_of,
    python_frame,
    runs,
    summary_of,
    torch_frame,
    written,
)
from stepscope.snapshot import stacks
from stepscope.snapshot.events import Frame

ENGINE = [python_frame("torch::autograd::Engine::evaluate_function(std::shared_ptr)", 0, "??")]
AUTOGRAD_FUNCTION = torch_frame("apply", 311, "autograd/function.py")
CHECKPOINT = torch_frame("unpack_hook", 1, "utils/checkpoint.py")


def training(steps=2):
    """Parameters of 1000 bytes, moments of 2000, and in each step activations, gradients and
    scratch."""
    simulator = Simulator((1000, MADE))
    batch = simulator.alloc(300, BATCH)
    for step in range(steps):
        activations = [simulator.alloc(size, FORWARD) for size in (400, 500)]
        cast = simulator.alloc(500, CAST)
        scratch, gradient = simulator.alloc(70, AUTOGRAD), simulator.alloc(1010, ENGINE)
        again = simulator.alloc(60, [*FORWARD, CHECKPOINT])
        simulator.free(*activations, cast, scratch, again)
        if step == 0:
            simulator.alloc(2000, OPTIMIZER)
        simulator.free(simulator.alloc(90, OPTIMIZER))
        simulator.free(gradient)
    simulator.free(batch)
    return simulator


def test_categories_from_stacks_and_lives():
    found = analyse(training())
    timeline = found["memory_timeline"].set_index("event")
    # segment, 2 before, 6 of the first step: all is alive; other: workspace and unknown
    assert (
        timeline.loc[8].to_dict()
        | {
            "parameters": 1000,
            "gradients": 1010,
            "optimizer_state": 0,
            "activations": 400 + 500 + 60,
            "cast_weights": 500,
            "other": 70 + 300,
        }
        == timeline.loc[8].to_dict()
    )
    assert timeline["optimizer_state"].max() == 2000
    told = phases_of(found)
    assert told["phase"].tolist() == ["forward", "backward", "optimizer"] * 2
    assert told["step"].tolist() == [0] * 3 + [1] * 3


def test_a_backward_pass_in_python_is_one():
    """An autograd.Function has a frame of its own in autograd's thread."""
    simulator = Simulator((1000, FORWARD))
    own = python_frame("backward", 35, "/home/user/loss.py")
    made = simulator.alloc(30, [own, AUTOGRAD_FUNCTION])
    simulator.alloc(4, OPTIMIZER)
    simulator.free(made)
    assert held(simulator, "activations", "gradients", "optimizer state") == [1000, 30, 4]


def test_what_is_held_is_at_least_what_is_active():
    """torch.profiler's memory events of a processor have no segments over time."""
    simulator = Simulator()
    simulator.free(simulator.alloc(1 << 20), simulator.alloc(1 << 20))
    content = simulator.snapshot(first=1)
    content["segments"][0]["total_size"] = 4096
    row = summary_of(analyse(content))
    assert row["reserved_at_peak"] == row["peak"] == 2 << 20


def test_what_a_backward_pass_leaves_when_memory_runs_out_is_unknown():
    simulator = Simulator((1000, MADE), (500, FORWARD), (1010, AUTOGRAD))
    assert held(simulator, "activations", "gradients", "unknown") == [500, 1010, 0]
    simulator.oom(1 << 40, 0, AUTOGRAD)
    assert held(simulator, "activations", "gradients", "unknown") == [500, 0, 1010]


def test_without_stacks_or_annotations_all_is_unknown():
    content = training().snapshot()
    for part in (*content["device_traces"][0], *content["segments"][0]["blocks"]):
        del part["frames"]
    found = analyse(content)
    assert at_peak(found)["unknown"] == summary_of(found)["peak"]
    assert summary_of(found)["without_frames"] == 1
    assert set(runs(found)["phase"]) == {""}


def test_stacks_of_the_final_state_tell_of_what_is_left():
    """_record_memory_history(context="state"): events have no stacks, blocks that are there at the
    end have."""
    simulator = training()
    simulator.free(simulator.alloc(1 << 19))
    content = simulator.snapshot()
    for event in content["device_traces"][0]:
        del event["frames"]
    assert held(content, "parameters", "optimizer state", "unknown") == [1000, 2000, 1 << 19]


def test_annotations_alone_tell_phases_and_categories():
    simulator = Simulator()
    for step in (7, 8):
        with simulator.annotated(f"ProfilerStep#{step}"):
            with simulator.annotated("my forward"):
                made = simulator.alloc(500, None)
            with simulator.annotated("backward"):
                gradient = simulator.alloc(100, None)
                simulator.free(made)
            with simulator.annotated("Optimizer.step#SGD.step"):
                simulator.free(simulator.alloc(50, None))
            simulator.free(gradient)
    found = analyse(simulator.snapshot(first=1))
    told = phases_of(found)
    assert told["phase"].tolist() == ["forward", "backward", "optimizer"] * 2
    assert told["step"].tolist() == [7] * 3 + [8] * 3
    assert at_peak(found)[["activations", "gradients"]].tolist() == [500, 100]


def test_annotations_before_the_first_event_prove_a_cut():
    simulator = Simulator()
    with simulator.annotated("backward of nothing"):
        pass
    for _ in range(3):
        with simulator.annotated("backward"):
            simulator.free(simulator.alloc(500))
    for first, is_cut in ((1, False), (1 + 3, True)):  # three events of a pass
        assert summary_of(analyse(simulator.snapshot(first)))["cut"] == is_cut


@pytest.mark.parametrize(
    "gone", ["time_us", "frames", "external_annotations", "requested_size", "address"]
)
def test_older_layouts_lack_fields(gone):
    simulator = training()
    content = simulator.snapshot(first=3)  # parameters and batch were there before
    content.pop(gone, None)
    for event in content["device_traces"][0]:
        event.pop(gone, None)
        event.pop("compile_context"), event.pop("user_metadata")
    for block in content["segments"][0]["blocks"]:
        requested = block["requested_size"]
        block.pop(gone, None)
        if gone == "requested_size" and block["state"] != "inactive":
            history = {"addr": block["address"], "real_size": requested}
            block["history"] = [history | {"frames": block.pop("frames")}]
    row = summary_of(analyse(content))
    assert row["peak"] == max(simulator.active[3:]) and row["start"] == 1300
    assert row["end"] == simulator.active[-1] and row["reserved_at_peak"] == SEGMENT
    assert pd.isna(row["peak_time"]) == (gone == "time_us")


@pytest.mark.parametrize("traces", [None, [], [[]]])
def test_segments_without_a_history(traces):
    """torch.cuda.memory_snapshot(), and snapshots with _record_memory_history("state")."""
    content = Simulator((1000, MADE)).snapshot()
    without = content | {"device_traces": traces}
    found = analyse(content["segments"] if traces is None else without)
    row = summary_of(found)
    assert (row["events"], row["peak"], row["start"], row["peak_event"]) == (0, 1000, 1000, -1)
    assert at_peak(found)["parameters"] == 1000
    assert found["memory_timeline"]["event"].tolist() == [-1]


def test_a_snapshot_of_nothing_has_tables_without_rows():
    found = analyse({"segments": [], "device_traces": [[], []]})
    assert all(table.empty for table in found.values())


def test_each_device_has_its_own_rows():
    first, second = training(), Simulator(device=1)
    second.free(second.alloc(77))
    second.oom(1 << 33, 4096)
    second.oom(5, 6)
    content, other = first.snapshot(), second.snapshot()
    content["segments"] += other["segments"]
    content["device_traces"].append(other["device_traces"][1])
    found = analyse(content)
    rows = found["memory_summary"]
    assert rows[["device", "peak", "ooms"]].to_numpy().tolist() == [
        [0, max(first.active), 0],
        [1, 77, 2],
    ]
    out = rows.iloc[1][["oom_requested", "oom_free", "oom_frame"]]
    assert out.tolist() == [1 << 33, 4096, "model.py:20 forward"]
    for name in ("timeline", "peak", "largest"):
        assert set(found[f"memory_{name}"]["device"]) == {0, 1}


def test_a_long_timeline_keeps_the_peak_and_its_extremes():
    simulator = Simulator()
    for number in range(4000):
        made = simulator.alloc(10 + number % 97)
        if number == 2345:
            simulator.free(simulator.alloc(1 << 19))
        simulator.free(made)
    found = analyse(simulator)
    timeline = found["memory_timeline"]
    events = timeline["event"]
    assert len(events) <= 2000 and events.is_monotonic_increasing and events.is_unique
    assert {-1, len(simulator.events) - 1, summary_of(found)["peak_event"]} <= set(events)
    assert timeline["active"].max() == max(simulator.active)
    assert timeline["active"].tolist() == [simulator.active[event + 1] for event in events]


def test_the_largest_lines_and_allocations_stand():
    made = [(100 + number, [python_frame("f", number), *FORWARD]) for number in range(63)]
    found = analyse(Simulator(*made))
    assert found["memory_lines"]["bytes"].tolist() == list(range(162, 99, -1))
    assert found["memory_largest"]["bytes"].tolist() == list(range(162, 122, -1))


def test_equal_allocations_are_one_row():
    simulator = Simulator()
    for _ in range(3):
        simulator.free(simulator.alloc(5000, FORWARD))
    row = analyse(simulator)["memory_largest"].iloc[0]
    assert row[["count", "bytes", "alive", "frame"]].tolist() == [3, 5000, 1, "model.py:20 forward"]


@pytest.mark.parametrize(
    "file, shown",
    {
        "/home/user/train.py": "train.py",
        "/work/scripts/old/scripts/stepscope/softmax.py": "scripts/stepscope/softmax.py",
        "C:\\code\\train.py": "train.py",
        "/home/user/package/__init__.py": "package/__init__.py",
        "<stdin>": "<stdin>",
        "/tmp/ipykernel_12/34.py": "34.py",
        "/home/user/einops/train.py": "train.py",
    }.items(),
)
def test_user_code(file, shown):
    frame = Frame(file, 5, "<module>")
    assert stacks.is_user(frame) and stacks.shown(frame) == f"{shown}:5 <module>"


@pytest.mark.parametrize(
    "file",
    [
        "/work/.venv/lib/python3.12/site-packages/torch/nn/modules/linear.py",
        "/usr/lib/python3.12/contextlib.py",
        "/opt/pytorch/torch/nn/functional.py",
        "<frozen importlib._bootstrap>",
        "<string>",
        "??",
        "Linear.cpp",
        "",
        "C:\\Python312\\Lib\\runpy.py",
        "/usr/lib/python3/dist-packages/einops/einops.py",
        "/tmp/x/einops/_backends.py",
        "/tmp/x/einops/layers/torch.py",
        "/opt/pytorch/torch/overrides.py",
    ],
)
def test_not_user_code(file):
    assert not stacks.is_user(Frame(file, 5, "f"))


def test_a_hook_that_only_watches_is_no_user_code():
    assert not stacks.is_user(Frame("/work/scripts/a.py", 5, "__torch_dispatch__"))


def test_actions_of_a_newer_pytorch_do_no_harm():
    simulator = Simulator()
    simulator._event("workspace_snapshot", 0, 0)
    simulator.free(simulator.alloc(9))
    assert summary_of(analyse(simulator))["peak"] == 9


def test_the_program(run_analyze, tmp_path):
    path, out = written(training(), tmp_path / "a.pickle.gz"), tmp_path / "new/out"
    done = run_analyze(path, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(each in done.stdout for each in ("Device 0: peak", "parameters", "after event"))
    names = ("summary", "timeline", "peak", "largest", "lines")
    assert {path.stem for path in out.glob("*.csv")} == {f"memory_{name}" for name in names}
    assert (out / "summary.md").read_text() == done.stdout


def line(number, size):
    """What a line of a model's file allocates."""
    return size, [python_frame("forward", number, "/home/user/model.py"), *FORWARD[1:]]


def test_two_snapshots_are_compared_by_category_and_line(run_analyze, tmp_path):
    """The second one's layer 2 keeps 300 bytes more, layer 3 is new, and a constructor's 1000 bytes
    are gone."""
    first = Simulator((1000, MADE), line(2, 200))
    second = Simulator(line(2, 500), line(3, 50))
    paths = [written(first, tmp_path / "a.pickle"), written(second, tmp_path / "b.pickle")]
    done = run_analyze(*paths, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "out" / "compared.csv", keep_default_na=False)
    assert table[["kind", "category", "name", "before", "after"]].to_numpy().tolist() == [
        ["peak", "", "", 1200, 550],
        ["category", "parameters", "", 1000, 0],
        ["category", "activations", "", 200, 550],
        ["line", "parameters", "train.py:7 main", 1000, 0],
        ["line", "activations", "model.py:2 forward", 200, 500],
        ["line", "activations", "model.py:3 forward", 0, 50],
    ]
    assert (table["difference"] == table["after"] - table["before"]).all()
    assert (tmp_path / "out" / "after" / "memory_lines.csv").is_file()
    assert run_analyze(*paths, paths[0], "--out", tmp_path / "out").returncode == 2


def test_the_program_says_what_cannot_be_written_or_found(run_analyze, tmp_path):
    path = written(training(), tmp_path / "a.pickle")
    (tmp_path / "file").write_text("")
    for words, said in (
        (["--out", tmp_path / "file"], "cannot write"),
        (["--known", tmp_path / "none.json", "--out", tmp_path / "out"], "none.json"),
    ):
        done = run_analyze(path, *words)
        assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1
