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
    at_peak,
    phases_of,
    python_frame,
    runs,
    summary_of,
    written,
)
from stepscope.snapshot import MEMORY_CATEGORIES, stacks
from stepscope.snapshot.events import ACTIONS, Frame

ENGINE = [python_frame("torch::autograd::Engine::evaluate_function(std::shared_ptr)", 0, "??")]
AUTOGRAD_FUNCTION = python_frame(
    "apply", 311, "/usr/lib/python3.12/site-packages/torch/autograd/function.py"
)
CHECKPOINT = python_frame(
    "unpack_hook", 1, "/usr/lib/python3.12/site-packages/torch/utils/checkpoint.py"
)


def training(steps=2):
    """Parameters of 1000 bytes, moments of 2000, and in each step activations, gradients and
    scratch."""
    simulator = Simulator()
    simulator.alloc(1000, MADE)
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


def test_categories_from_stacks_and_lives(analyse):
    found = analyse(training().snapshot())
    row = (
        found["memory_timeline"].set_index("event").loc[8]
    )  # segment, 2 before, 6 of the first step: all is alive
    assert row[
        ["parameters", "gradients", "optimizer_state", "activations", "cast_weights", "other"]
    ].tolist() == [
        1000,
        1010,
        0,
        400 + 500 + 60,
        500,
        70 + 300,  # other: workspace and unknown
    ]
    assert found["memory_timeline"]["optimizer_state"].max() == 2000
    told = phases_of(found)
    assert told["phase"].tolist() == ["forward", "backward", "optimizer"] * 2
    assert told["step"].tolist() == [0] * 3 + [1] * 3


def test_a_backward_pass_in_python_is_one(analyse):
    """An autograd.Function has a frame of its own in autograd's thread."""
    simulator = Simulator()
    simulator.alloc(1000, FORWARD)
    made = simulator.alloc(
        30, [python_frame("backward", 35, "/home/user/loss.py"), AUTOGRAD_FUNCTION]
    )
    simulator.alloc(4, OPTIMIZER)
    simulator.free(made)
    held = at_peak(analyse(simulator.snapshot()))
    assert held[["activations", "gradients", "optimizer state"]].tolist() == [1000, 30, 4]


def test_what_is_held_is_at_least_what_is_active(analyse):
    """torch.profiler's memory events of a processor have no segments over time."""
    simulator = Simulator()
    simulator.free(simulator.alloc(1 << 20), simulator.alloc(1 << 20))
    content = simulator.snapshot(first=1)
    content["segments"][0]["total_size"] = 4096
    row = summary_of(analyse(content))
    assert row["reserved_at_peak"] == row["peak"] == 2 << 20


def test_what_a_backward_pass_leaves_when_memory_runs_out_is_unknown(analyse):
    simulator = Simulator()
    simulator.alloc(1000, MADE)
    made = simulator.alloc(500, FORWARD)
    simulator.alloc(1010, AUTOGRAD)
    for ran_out in (False, True):
        if ran_out:
            simulator.oom(1 << 40, 0, AUTOGRAD)
        held = at_peak(analyse(simulator.snapshot()))
        assert held[["gradients", "unknown"]].tolist() == ([0, 1010] if ran_out else [1010, 0])
        assert held["activations"] == 500 and made


def test_without_stacks_or_annotations_all_is_unknown(analyse):
    content = training().snapshot()
    for part in (*content["device_traces"][0], *content["segments"][0]["blocks"]):
        del part["frames"]
    found = analyse(content)
    assert at_peak(found)["unknown"] == summary_of(found)["peak"]
    assert summary_of(found)["without_frames"] == 1
    assert set(runs(found)["phase"]) == {""}


def test_stacks_of_the_final_state_tell_of_what_is_left(analyse):
    """_record_memory_history(context="state"): events have no stacks, blocks that are there at the
    end have."""
    simulator = training()
    simulator.free(simulator.alloc(1 << 19))
    content = simulator.snapshot()
    for event in content["device_traces"][0]:
        del event["frames"]
    held = at_peak(analyse(content))
    assert held[["parameters", "optimizer state", "unknown"]].tolist() == [1000, 2000, 1 << 19]


def test_annotations_alone_tell_phases_and_categories(analyse):
    simulator = Simulator()
    for step in (7, 8):
        simulator.annotate(f"ProfilerStep#{step}", "START")
        simulator.annotate("my forward", "START")
        made = simulator.alloc(500, None)
        simulator.annotate("my forward", "END")
        simulator.annotate("backward", "START")
        gradient = simulator.alloc(100, None)
        simulator.free(made)
        simulator.annotate("backward", "END")
        simulator.annotate("Optimizer.step#SGD.step", "START")
        simulator.free(simulator.alloc(50, None))
        simulator.annotate("Optimizer.step#SGD.step", "END")
        simulator.free(gradient)
        simulator.annotate(f"ProfilerStep#{step}", "END")
    found = analyse(simulator.snapshot(first=1))
    told = phases_of(found)
    assert told["phase"].tolist() == ["forward", "backward", "optimizer"] * 2
    assert told["step"].tolist() == [7] * 3 + [8] * 3
    held = at_peak(found)
    assert held[["activations", "gradients"]].tolist() == [500, 100]


def test_annotations_before_the_first_event_prove_a_cut(analyse):
    simulator = Simulator()
    simulator.annotate("backward of nothing", "START")
    simulator.annotate("backward of nothing", "END")
    for _ in range(3):
        simulator.annotate("backward", "START")
        simulator.free(simulator.alloc(500))
        simulator.annotate("backward", "END")
    one = 3
    assert not summary_of(analyse(simulator.snapshot(first=1)))["cut"]
    assert summary_of(analyse(simulator.snapshot(first=1 + one)))["cut"]


@pytest.mark.parametrize(
    "gone", ["time_us", "frames", "external_annotations", "requested_size", "address"]
)
def test_older_layouts_lack_fields(analyse, gone):
    content = training().snapshot(first=3)  # parameters and batch were there before
    content.pop(gone, None)
    for event in content["device_traces"][0]:
        event.pop(gone, None)
        event.pop("compile_context"), event.pop("user_metadata")
    for block in content["segments"][0]["blocks"]:
        requested = block["requested_size"]
        block.pop(gone, None)
        if gone == "requested_size" and block["state"] != "inactive":
            block["history"] = [
                {"addr": block["address"], "real_size": requested, "frames": block.pop("frames")}
            ]
    found = analyse(content)
    row = summary_of(found)
    assert row["peak"] == max(training().active[3:]) and row["start"] == 1300
    assert row["end"] == training().active[-1] and row["reserved_at_peak"] == SEGMENT
    assert pd.isna(row["peak_time"]) == (gone == "time_us")


def test_segments_without_a_history(analyse):
    """torch.cuda.memory_snapshot(), and snapshots with _record_memory_history("state")."""
    simulator = Simulator()
    simulator.alloc(1000, MADE)
    content = simulator.snapshot()
    for without in (
        content["segments"],
        content | {"device_traces": []},
        content | {"device_traces": [[]]},
    ):
        found = analyse(without)
        row = summary_of(found)
        assert (row["events"], row["peak"], row["start"], row["peak_event"]) == (0, 1000, 1000, -1)
        assert at_peak(found)["parameters"] == 1000
        assert found["memory_timeline"]["event"].tolist() == [-1]


def test_a_snapshot_of_nothing_has_tables_without_rows(analyse):
    assert all(
        table.empty for table in analyse({"segments": [], "device_traces": [[], []]}).values()
    )


def test_each_device_has_its_own_rows(analyse):
    first, second = training(), Simulator(device=1)
    second.free(second.alloc(77))
    second.oom(1 << 33, 4096)
    second.oom(5, 6)
    one, two = first.snapshot(), second.snapshot()
    content = one | {"segments": one["segments"] + two["segments"]}
    content["device_traces"] = [*one["device_traces"], two["device_traces"][1]]
    found = analyse(content)
    rows = found["memory_summary"].set_index("device")
    assert rows["peak"].to_dict() == {0: max(first.active), 1: 77}
    assert rows["ooms"].to_dict() == {0: 0, 1: 2}
    assert rows.loc[1, ["oom_requested", "oom_free"]].tolist() == [1 << 33, 4096]
    assert rows.loc[1, "oom_frame"] == "model.py:20 forward"
    for name in ("timeline", "peak", "largest"):
        assert set(found[f"memory_{name}"]["device"]) == {0, 1}


def test_a_long_timeline_keeps_the_peak_and_its_extremes(analyse):
    simulator = Simulator()
    for number in range(4000):
        made = simulator.alloc(10 + number % 97)
        if number == 2345:
            simulator.free(simulator.alloc(1 << 19))
        simulator.free(made)
    found = analyse(simulator.snapshot())
    timeline = found["memory_timeline"]
    assert (
        len(timeline) <= 2000
        and timeline["event"].is_monotonic_increasing
        and timeline["event"].is_unique
    )
    assert (
        timeline["event"].iloc[0] == -1 and timeline["event"].iloc[-1] == len(simulator.events) - 1
    )
    assert timeline["active"].max() == max(simulator.active)
    assert summary_of(found)["peak_event"] in set(timeline["event"])
    assert timeline["active"].tolist() == [
        simulator.active[event + 1] for event in timeline["event"]
    ]
    categories = [*(name.replace(" ", "_") for name in MEMORY_CATEGORIES[:5]), "other"]
    assert (timeline[categories].sum(axis=1) == timeline["active"]).all()


def test_the_largest_lines_and_allocations_stand(analyse):
    simulator = Simulator()
    for number in range(63):
        simulator.alloc(100 + number, [python_frame("f", number), *FORWARD])
    found = analyse(simulator.snapshot())
    assert found["memory_lines"]["bytes"].tolist() == list(range(162, 99, -1))
    assert found["memory_largest"]["bytes"].tolist() == list(range(162, 122, -1))


def test_equal_allocations_are_one_row_with_their_median_life(analyse):
    simulator = Simulator()
    for waits in (1, 2, 9):
        made = simulator.alloc(5000, FORWARD)
        for _ in range(waits):
            simulator.free(simulator.alloc(1))
        simulator.free(made)
    row = analyse(simulator.snapshot())["memory_largest"].iloc[0]
    assert (row["count"], row["bytes"], row["alive"]) == (3, 5000, 1)
    # Between allocation and completed free: the waits, of three events each, and two more; an event
    # takes 10 us.
    assert row["lifetime"] == pytest.approx((2 * 3 + 2) * 10e-6)
    assert row["frame"] == "model.py:20 forward"


@pytest.mark.parametrize(
    "file, function, shown",
    [
        ("/home/user/train.py", "main", "train.py:5 main"),
        (
            "/work/a/scripts/old/scripts/stepscope/model/softmax.py",
            "f",
            "scripts/stepscope/model/softmax.py:5 f",
        ),
        ("C:\\code\\train.py", "main", "train.py:5 main"),
        ("/home/user/package/__init__.py", "f", "package/__init__.py:5 f"),
        ("<stdin>", "<module>", "<stdin>:5 <module>"),
        ("/tmp/ipykernel_12/34.py", "<module>", "34.py:5 <module>"),
        ("/home/user/einops/train.py", "main", "train.py:5 main"),
    ],
)
def test_user_code(file, function, shown):
    frame = Frame(file, 5, function)
    assert stacks.is_user(frame) and stacks.shown(frame) == shown


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
    assert not stacks.is_user(
        Frame("/work/scripts/a.py", 5, "__torch_dispatch__")
    )  # a hook that only watches


def test_actions_of_a_newer_pytorch_do_no_harm(analyse):
    simulator = Simulator()
    simulator._event("workspace_snapshot", 0, 0)
    simulator.free(simulator.alloc(9))
    assert "workspace_snapshot" not in ACTIONS
    assert summary_of(analyse(simulator.snapshot()))["peak"] == 9


def test_the_program(run_analyze, tmp_path):
    path = written(training().snapshot(), tmp_path / "a.pickle.gz")
    done = run_analyze(path, "--out", tmp_path / "new" / "out")
    assert done.returncode == 0 and done.stderr == ""
    assert (
        "Device 0: peak" in done.stdout
        and "parameters" in done.stdout
        and "after event" in done.stdout
    )
    written_files = {path.stem for path in (tmp_path / "new" / "out").glob("*.csv")}
    assert written_files == {
        f"memory_{name}" for name in ("summary", "timeline", "peak", "largest", "lines")
    }
    assert (tmp_path / "new" / "out" / "summary.txt").read_text() == done.stdout


def test_two_snapshots_are_compared_by_category_and_line(run_analyze, tmp_path):
    """The second one's layer 2 keeps 300 bytes more, layer 3 is new, and a constructor's 1000 bytes
    are gone."""
    paths = []
    for side, sizes in (("a", {1: 100, 2: 200}), ("b", {1: 100, 2: 500, 3: 50})):
        simulator = Simulator()
        if side == "a":
            simulator.alloc(1000, MADE)
        for line, size in sizes.items():
            simulator.alloc(
                size, [python_frame("forward", line, "/home/user/model.py"), *FORWARD[1:]]
            )
        paths.append(written(simulator.snapshot(), tmp_path / f"{side}.pickle"))
    done = run_analyze(*paths, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "out" / "compared.csv", keep_default_na=False)
    rows = [
        tuple(row)
        for row in table[["kind", "category", "name", "before", "after", "difference"]].to_numpy()
    ]
    assert rows == [
        ("peak", "", "", 1300, 650, -650),
        ("category", "parameters", "", 1000, 0, -1000),
        ("category", "activations", "", 300, 650, 350),
        ("line", "parameters", "train.py:7 main", 1000, 0, -1000),
        ("line", "activations", "model.py:2 forward", 200, 500, 300),
        ("line", "activations", "model.py:3 forward", 0, 50, 50),
        ("line", "activations", "model.py:1 forward", 100, 100, 0),
    ]
    assert (tmp_path / "out" / "after" / "memory_lines.csv").is_file()
    assert run_analyze(*paths, paths[0], "--out", tmp_path / "out").returncode == 2


def test_the_program_says_what_cannot_be_written_or_found(run_analyze, tmp_path):
    path = written(training().snapshot(), tmp_path / "a.pickle")
    (tmp_path / "file").write_text("")
    done = run_analyze(path, "--out", tmp_path / "file")
    assert done.returncode == 1 and "cannot write" in done.stderr and done.stderr.count("\n") == 1
    done = run_analyze(path, "--known", tmp_path / "none.json", "--out", tmp_path / "out")
    assert done.returncode == 1 and "none.json" in done.stderr and done.stderr.count("\n") == 1
