"""What known.json tells: marks, seen tensors, the operators of one step, and histories that it
proves to be cut."""

import json
import math

import pytest
from common import one_line, picked
from snapshot_simulator import (
    AUTOGRAD,
    FORWARD,
    OPTIMIZER,
    Simulator,
    at_peak,
    runs,
    summary_of,
    torch_frame,
    written,
)
from stepscope.recordings.tables import write_tables
from stepscope.snapshot import SnapshotError, analysis, categories, known

WEIGHT, GRADIENT, MOMENT, CAST, OUTPUT, SCRATCH = 4096, 4096, 8192, 2048, 4096, 1000


def of_bytes(size):
    """What is told of every tensor."""
    return {"bytes": size, "shape": [size // 4], "dtype": "float32"}


def saved(module, op, size, cast_of=None):
    """A tensor that autograd saved."""
    return of_bytes(size) | {"module": module, "op": op, "cast_of": cast_of}


def entry(phase, *given):
    """An output of an operator."""
    return {"phase": phase} | saved(*given)


class Program(Simulator):
    """A training loop of three parts, its marks and its tensors, as the measuring program would
    write them."""

    def __init__(self, steps=2):
        super().__init__()
        self.marks, self.tensors, self.saved = [], [], SAVED
        weight, moment = self.alloc(WEIGHT), self.alloc(MOMENT)
        self.recording_from = len(self.events)
        self.seen("parameters", "blocks.0.weight", weight, WEIGHT)
        # a part of a larger block
        self.seen("optimizer state", "blocks.0.weight", moment + 100, MOMENT - 100)
        for step in range(steps):
            self.step(step)

    @property
    def counts(self):
        """Allocations and completed frees since the recording began."""
        actions = picked(self.events[self.recording_from :], "action")
        return [actions.count("alloc"), actions.count("free_completed")]

    def mark(self, *where):
        """From here on the program is in this step, phase and module."""
        self.marks.append([*self.counts, *where])

    def seen(self, category, name, address, size):
        """A tensor that the program knows, now at this address."""
        seen = {"category": category, "name": name, "address": address, "at": self.counts}
        self.tensors.append(seen | of_bytes(size))

    def step(self, number):
        self.mark(number, "forward", "blocks.0/FFN")
        cast, output = self.alloc(CAST, FORWARD), self.alloc(OUTPUT, FORWARD)
        self.mark(number, "backward", "blocks.0/FFN")
        scratch, gradient = self.alloc(SCRATCH, AUTOGRAD), self.alloc(GRADIENT, AUTOGRAD)
        self.free(scratch, output, cast)
        self.seen("gradients", "blocks.0.weight", gradient, GRADIENT)
        self.mark(number, "optimizer", "")
        self.free(self.alloc(WEIGHT, OPTIMIZER))
        self.mark(number, "", "")
        self.free(gradient)

    def known(self):
        """What is written beside the snapshot."""
        made = [
            entry("forward", "blocks.0/FFN", "_to_copy", CAST, "blocks.0.weight"),
            entry("forward", "blocks.0/FFN", "mm", OUTPUT),
            entry("backward", "blocks.0/FFN", "mul", SCRATCH),
            entry("optimizer", "", "zeros_like", WEIGHT),  # the first step made the moments
            entry("optimizer", "", "zeros_like", WEIGHT),
            entry("optimizer", "", "sqrt", WEIGHT),
        ]
        content = {"schema_version": 1, "device": "cuda", "mode": "step", "made": made}
        return content | {"marks": self.marks, "tensors": self.tensors, "saved": self.saved}


SAVED = [saved(f"blocks.{n}/FFN", "mm", 4 * n) for n in (0, 1, 2, 2)]
SAVED.append(saved("loss", "exp", 40, "x"))


@pytest.fixture
def run(tmp_path):
    def run(program):
        content = program.snapshot(program.recording_from)
        path = written(content, tmp_path / "snapshot.pickle")
        (tmp_path / "known.json").write_text(json.dumps(program.known()))
        return analysis.analyse_file(path)

    return run


def test_every_byte_has_its_category(run):
    program = Program()
    found = run(program)
    timeline = found["memory_timeline"].set_index("event")
    # After the forward pass of the first step: two events.
    forward = ["parameters", "optimizer_state", "activations", "cast_weights", "gradients"]
    assert timeline.loc[1, forward].tolist() == [WEIGHT, MOMENT, OUTPUT, CAST, 0]
    backward = ["activations", "cast_weights", "gradients", "other"]
    assert timeline.loc[3, backward].tolist() == [OUTPUT, CAST, GRADIENT, SCRATCH]
    assert at_peak(found)["unknown"] == 0
    peak = summary_of(found)
    assert peak["peak"] == WEIGHT + MOMENT + OUTPUT + CAST + GRADIENT + SCRATCH
    place = ["peak_event", "peak_step", "peak_phase", "peak_module", "cut"]
    assert peak[place].tolist() == [3, 0, "backward", "blocks.0/FFN", False]
    allocated = CAST + OUTPUT + SCRATCH + GRADIENT + WEIGHT
    assert peak["without_frames"] == pytest.approx((SCRATCH + GRADIENT) / allocated)


def test_operators_are_matched_by_order_or_by_the_most_frequent(run):
    rows = run(Program())["memory_largest"].set_index(["phase", "bytes"])
    assert rows.loc[("forward", OUTPUT), "op"] == "mm"
    cast = rows.loc[("forward", CAST), ["op", "category", "module"]]
    assert cast.tolist() == ["_to_copy", "cast weights", "blocks.*/FFN"]
    # 1 allocation, 3 entries: fills do not count
    assert rows.loc[("optimizer", WEIGHT), "op"] == "sqrt"
    assert rows.loc[("backward", SCRATCH), "count"] == 2


def test_what_checkpointing_makes_again_is_an_activation(run):
    program = Program(steps=0)
    checkpoint = torch_frame("unpack_hook", 1, "utils/checkpoint.py")
    program.mark(0, "backward", "blocks.0")
    program.alloc(700, [*FORWARD, checkpoint])
    program.alloc(70, AUTOGRAD)
    held = at_peak(run(program))
    assert held[["activations", "workspace"]].tolist() == [700, 70]


def test_phases_have_the_numbers_of_their_events(run):
    found = runs(run(Program(steps=1)))
    assert found["phase"].tolist() == ["forward", "backward", "optimizer", ""]
    assert found["start"].tolist() == [0, 2, 10, 13] and found["end"].tolist() == [1, 9, 12, 14]
    more = found["active"] - WEIGHT - MOMENT
    assert more.tolist() == [CAST + OUTPUT, GRADIENT, GRADIENT, 0]


def test_what_autograd_saved_is_of_the_middle_block_and_outside(run):
    columns = ["part", "module", "tensors", "bytes", "category", "shape"]
    assert run(Program())["memory_saved"][columns].to_numpy().tolist() == [
        ["block", "blocks.*/FFN", 1, 4, "activations", "1"],
        ["rest", "loss", 1, 40, "cast weights", "10"],
    ]


def saved_of(**changes):
    """A side file as text, with two saved tensors that have these fields."""
    tensors = [saved("", "", 4) | changes] * 2
    return json.dumps(
        {"schema_version": 1, "marks": [], "tensors": [], "made": [], "saved": tensors}
    )


@pytest.mark.parametrize(
    "told, text",
    {
        "JSONDecodeError": "{",
        "RecursionError": "[" * 100_000,
        "not the side file": "[]",
        "schema_version 2": '{"schema_version": 2}',
        "marks": '{"schema_version": 1}',
        "infinity": saved_of(shape=[math.inf]),
        "too large": saved_of(bytes=1 << 64),
        "passed data had 2 columns": '{"schema_version": 1, "marks": [[0, 0]]}',
    }.items(),
)
def test_a_side_file_that_is_none_is_one_line(text, told, tmp_path):
    path = tmp_path / "known.json"
    path.write_text(text)
    said = one_line(SnapshotError, known.read, path)
    assert said.startswith(f"{path}: ") and told in said


def test_names_of_any_kind_can_be_written(run, tmp_path):
    program = Program()
    for each in program.tensors:
        each["name"] = f"blocks.{'7' * 5000}.\ud800"
    odd = {"module": f"blocks.{'7' * 5000}/FFN", "op": "\udfff"}
    program.saved = [each | odd for each in SAVED]
    program.marks = [[*mark[:4], "\ud800"] for mark in program.marks]
    found = run(program)
    write_tables(found, tmp_path / "out")
    assert set(found["memory_saved"]["part"]) == {"rest"}
    assert "?" in set(found["memory_largest"]["module"])
    assert set(found["memory_saved"]["op"]) == {"?"}


def test_a_step_may_be_unknown(run):
    program = Program()
    program.marks = [[*mark[:2], None, *mark[3:]] for mark in program.marks]
    assert summary_of(run(program))["peak_step"] is None


def moved(program):
    for each in program.tensors:
        each["address"] += 1 << 30


def smaller(program):
    for each in program.tensors:
        each["bytes"] -= 4


def longer(program):
    program.marks.append([1000, 1000, 9, "forward", ""])


@pytest.mark.parametrize("change", [moved, smaller, longer])
def test_tensors_or_events_that_are_nowhere_are_those_of_another_snapshot(run, change):
    program = Program(steps=3)
    change(program)
    assert "known.json: it belongs to another snapshot" in one_line(SnapshotError, run, program)


def test_cublas_buffers_are_workspace_where_a_recording_saw_the_first_step(run, monkeypatch):
    buffer = 5000
    monkeypatch.setattr(categories, "_CUBLAS_BYTES", (buffer,))
    program = Program(steps=0)
    program.mark(0, "forward", "blocks.0")
    program.alloc(buffer, FORWARD)
    program.alloc(OUTPUT, FORWARD)
    held = at_peak(run(program))
    assert (held["activations"], held["workspace"]) == (OUTPUT, buffer)
