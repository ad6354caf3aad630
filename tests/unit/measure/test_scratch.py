"""Traces are there as a whole, or the program fails: C++ says nothing of a full disk."""

import errno
import gzip

import pytest
import torch
from common import one_line
from stepscope.measure import scratch, steps

# as Kineto's finalizeTrace ends it (output_json.cpp), the path as long as Linux has it
END = f'\n  ],"traceName": "/{"x" * 4000}/trace.json" }}'
WHOLE = '{"traceEvents": [\n  {"name": "a", "args": {"Dims": [1, 2]}\n  }' + END


class Profile:
    """torch's profiler, whose disk has room for so many signs of a trace; for None not for the
    file."""

    def __init__(self, room):
        self._room = room

    def export_chrome_trace(self, path):
        if self._room is not None:
            with open(path, "w") as file:
                file.write(WHOLE[: self._room])


@pytest.mark.parametrize(
    "room",
    [None, 0, 10, WHOLE.index("\n  ]"), WHOLE.index("]}") + 2, WHOLE.index("x"), len(WHOLE) - 1],
)
def test_a_trace_that_a_full_disk_has_cut_is_an_error_of_the_file(room, tmp_path):
    for export in (
        scratch.trace_of,
        lambda profile: scratch.write_trace(profile, tmp_path / "trace.json.gz"),
    ):
        with pytest.raises(OSError, match="is cut off") as raised:
            export(Profile(room))
        assert raised.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def test_a_whole_trace_is_packed_as_it_is(tmp_path):
    scratch.write_trace(Profile(len(WHOLE)), tmp_path / "trace.json.gz")
    assert gzip.decompress((tmp_path / "trace.json.gz").read_bytes()).decode() == WHOLE
    (event,) = scratch.trace_of(Profile(len(WHOLE)))["traceEvents"]
    assert event == {"name": "a", "args": {"Dims": [1, 2]}}


def test_what_torch_writes_is_whole(tmp_path):
    with scratch.profiler("cpu") as profile:
        torch.ones(3).add(1)
    events = scratch.trace_of(profile)["traceEvents"]
    assert "aten::add" in {event.get("name") for event in events}


def test_a_file_that_cannot_be_written_says_nothing_of_a_step():
    """It is a failure of the cell; as a status it would stay for ever."""
    full = OSError(errno.ENOSPC, "No space left on device")
    assert "No space left" in one_line(OSError, steps.why, full)
    assert steps.why(RuntimeError("no such kernel")).status == "unsupported"
