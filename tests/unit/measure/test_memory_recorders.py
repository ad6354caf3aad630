"""From torch.profiler's events to a memory snapshot: events with known truth, and a real recording
of one tensor."""

from types import SimpleNamespace

import pytest
import torch
from common import picked
from stepscope.measure import memory_recorders
from torch._C._profiler import _EventType


def call(file, line, parent=None):
    site = SimpleNamespace(file_name=file, line_number=line, function_name="forward")
    fields = SimpleNamespace(callsite=site)
    return SimpleNamespace(tag=_EventType.PyCall, parent=parent, extra_fields=fields)


PROGRAM = call("main.py", 1)
LOSS = call("stepscope/model/loss.py", 10, PROGRAM)
BUILT_IN = SimpleNamespace(tag=_EventType.PyCCall, parent=LOSS)


def memory(time, address, size, parent=PROGRAM):
    return SimpleNamespace(
        tag=_EventType.Allocation,
        start_time_ns=1000 * time + 999,
        parent=parent,
        extra_fields=SimpleNamespace(ptr=address, alloc_size=size),
    )


def named(name):
    return SimpleNamespace(tag=_EventType.TorchOp, name=name)


MARK = named("stepscope mark")
EVENTS = [
    PROGRAM,
    MARK,
    named("aten::mm"),
    memory(10, 0xA, 64, BUILT_IN),
    MARK,
    memory(35, 0xB, 128, LOSS),
    memory(50, 0xA, -64),
    memory(60, 0xA, 32),  # an address that is used again
    memory(70, 0xC, -16),  # from before the recording
    MARK,
]


@pytest.fixture
def converted():
    return memory_recorders.from_events(EVENTS)


def test_events_come_in_the_order_of_time_with_the_sizes_that_were_asked_for(converted):
    trace = picked(converted[0], "action", "addr", "size", "time_us")
    assert trace == [
        ("alloc", 0xA, 64, 10),
        ("alloc", 0xB, 128, 35),
        ("free_requested", 0xA, 64, 50),
        ("free_completed", 0xA, 64, 50),
        ("alloc", 0xA, 32, 60),
        ("free_requested", 0xC, 16, 70),
        ("free_completed", 0xC, 16, 70),
    ]


def test_marks_are_counts_of_what_was_before_them(converted):
    assert converted[1] == [[0, 0], [1, 0], [3, 2]]


def test_frames_are_the_open_functions_innermost_first(converted):
    frames = picked(converted[0], "frames", action="alloc")
    names = [
        [(frame["filename"].rpartition("stepscope/")[2], frame["line"]) for frame in each]
        for each in frames
    ]
    assert names == [
        [("model/loss.py", 10), ("main.py", 1)],
        [("model/loss.py", 10), ("main.py", 1)],
        [("main.py", 1)],
    ]
    assert frames[0][0]["filename"] == str(memory_recorders.SCRIPTS / "stepscope/model/loss.py")


def test_segments_are_what_is_alive_at_the_end(converted):
    sizes = {0xC: 16, 0xD: 8, 0xE: 0}
    before = [{"address": address, "bytes": size} for address, size in sizes.items()]
    segments = memory_recorders.segments_of(converted[0], before)
    alive = {segment["address"]: segment["blocks"][0]["size"] for segment in segments}
    assert alive == {0xA: 32, 0xB: 128, 0xD: 8}
    assert all(segment["total_size"] == segment["blocks"][0]["size"] for segment in segments)


def test_a_real_recording_knows_a_tensors_bytes_and_the_function_that_made_it(one_thread):
    def make_a_table():
        return torch.ones(1000, 17)

    recorder = memory_recorders.recorder("cpu")
    recorder.start()
    recorder.mark()
    kept = make_a_table()
    recorder.mark()
    snapshot, marks = recorder.stop()
    (entry,) = picked(snapshot["device_traces"][0], action="alloc", size=1000 * 17 * 4)
    assert entry["addr"] == kept.untyped_storage().data_ptr()
    assert "make_a_table" in picked(entry["frames"], "name")
    assert marks[0] == [0, 0]
    assert marks[1][0] >= 1


def test_starting_again_forgets_what_was_before(one_thread):
    recorder = memory_recorders.recorder("cpu")
    recorder.start()
    kept = [torch.ones(3333)]
    recorder.mark()
    recorder.start()
    kept.append(torch.ones(5555))
    snapshot, marks = recorder.stop()
    sizes = picked(snapshot["device_traces"][0], "size", action="alloc")
    assert 4 * 5555 in sizes
    assert 4 * 3333 not in sizes
    assert marks == []


def test_a_process_that_has_not_used_cuda_has_allocated_nothing():
    assert memory_recorders.CudaRecorder._counts() == [0, 0]
