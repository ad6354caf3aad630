"""Reading pickles: as Python does where they are plain data, and one line for everything else."""

import copy
import faulthandler
import gzip
import pickle

import pytest
from attacks.recordings import OPCODES
from common import SNAPSHOTS, one_line, picked
from snapshot_simulator import FORWARD, Simulator, written
from stepscope.recordings.limits import LimitError, Limits, within
from stepscope.snapshot import SnapshotError, loader
from stepscope.snapshot.events import ACTIONS

RECORDINGS = sorted(SNAPSHOTS.glob("*/snapshot.pickle.gz"))


def of_devices(path):
    """(action, address, bytes, µs, frames as (file, line, function)) of each event that the loader
    gives, by device."""
    found = loader.read(path)
    frames = [(each.file, each.line, each.function) for each in found.frames]
    stacks = [*([frames[at] for at in stack] for stack in found.stacks), []]
    of_device = {}
    for each in found.devices:
        action = [ACTIONS[at] for at in each.action]
        stack = [stacks[at] for at in each.stack]
        rows = zip(action, each.address, each.size, each.time, stack, strict=True)
        of_device[each.number] = [*rows]
    return of_device


def expected(raw):
    """The same of what Python makes of the pickle."""
    return {
        number: [*map(_event, trace)]
        for number, trace in enumerate(pickle.loads(raw)["device_traces"])
    }


def _event(event):
    frames = picked(event.get("frames", []), "filename", "line", "name")
    address = event.get("addr", event.get("device_free"))
    return event["action"], address, event["size"], event["time_us"], frames


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.parent.name)
def test_a_recording_is_read_as_python_reads_it(path):
    assert of_devices(path) == expected(gzip.decompress(path.read_bytes()))


def of_events(*events):
    """A snapshot's pickle of allocations with these fields."""
    trace = [{"action": "alloc", "addr": at, "size": 1} | each for at, each in enumerate(events)]
    return pickle.dumps({"segments": [], "device_traces": [trace]})


def of_segments(*segments):
    """A snapshot's pickle of segments with these fields."""
    empty = {"device": 0, "address": 0, "total_size": 0, "blocks": []}
    whole = [copy.deepcopy(empty | each) for each in segments]
    return pickle.dumps({"segments": whole, "device_traces": []})


HOSTILE = {
    "another dict": (pickle.dumps({"state_dict": {}}), "neither segments nor device_traces"),
    "segments that are none": (
        pickle.dumps({"segments": {"a": 1}, "device_traces": []}),
        "not a memory snapshot",
    ),
    "events that are none": (
        pickle.dumps({"segments": [], "device_traces": [[1]]}),
        "not a memory snapshot",
    ),
    "sizes that are none": (of_events({"size": "x"}), "not a memory snapshot"),
    "negative sizes": (of_events({"size": -5}), "negative"),
    "negative sizes later on": (of_events({"size": 5}, {"size": 5}, {"size": -5}), "negative"),
    "segments that are too large together": (
        of_segments({"total_size": 1 << 62}, {"total_size": 1 << 62}),
        "add up",
    ),
    "a segment of a negative size": (
        of_segments({"total_size": -1}),
        "a segment has a negative size",
    ),
    "a negative request": (
        of_segments({"blocks": [{"size": 512, "requested_size": -1}]}),
        "an allocation has a negative size",
    ),
    "requests that are too large together": (
        of_segments(*[{"blocks": [{"size": 0, "requested_size": 1 << 61}]}] * 2),
        "add up",
    ),
    "events that are too large together": (of_events(*[{"size": 1 << 61}] * 4), "add up"),
    "numbers beyond 64 bits": (of_events({"size": 1 << 64}), "not a memory snapshot"),
    "frames that are none": (of_events({"frames": [1]}), "not a memory snapshot"),
}


def read_quietly(path):
    """What the loader makes of a file, in a child process whose crash pytest's own handler does not
    report."""
    faulthandler.disable()
    return loader.read(path)


def refusal(raw, folder, monkeypatch):
    """What is said of a stranger's file, as the program reads it: with 1 s of the processor and
    0.5 GB. Nothing of it runs."""
    monkeypatch.chdir(folder)
    path = folder / "bad.pickle"
    path.write_bytes(raw)
    reading = (Limits(1, 0.5), str(path), lambda: read_quietly(path), (SnapshotError,))
    said = one_line((SnapshotError, LimitError), within, *reading)
    assert list(folder.iterdir()) == [path]
    return said.removeprefix(f"{path}: ")


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_snapshot_is_one_line(name, tmp_path, monkeypatch):
    raw, told = HOSTILE[name]
    assert told in refusal(raw, tmp_path, monkeypatch)


@pytest.mark.parametrize("name", OPCODES)
def test_programs_for_the_unpickler_end_within_the_limits(name, tmp_path, monkeypatch):
    told = {"import": "os.system", "import by name": "os.system", "persistent": "persistent id"}
    assert told.get(name, "") in refusal(OPCODES[name], tmp_path, monkeypatch)


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    simulator = Simulator()
    for _ in range(3):
        simulator.free(simulator.alloc(5000, FORWARD))
    raw = written(simulator.snapshot(), tmp_path / "a.pickle").read_bytes()
    path = tmp_path / "cut.pickle"
    for length in range(0, len(raw) - 1, 7):
        path.write_bytes(raw[:length])
        assert "damaged" in one_line(SnapshotError, loader.read, path)


def test_a_packed_file_that_is_cut_off_or_a_bomb_is_refused(tmp_path):
    path = written(Simulator(*[(1000, FORWARD)] * 50), tmp_path / "a.pickle.gz")
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    assert "cut off or damaged" in one_line(SnapshotError, loader.read, path)
    path.write_bytes(gzip.compress(bytes(100 << 20)))
    assert "unpacked it is larger than 64 MB" in one_line(SnapshotError, loader.read, path)


def test_shared_lists_end_within_the_limits(tmp_path, monkeypatch):
    """Ten thousand references to one list of as many are a hundred million events in a few
    kilobytes."""
    (trace,) = Simulator([500]).snapshot()["device_traces"]
    raw = pickle.dumps({"segments": [], "device_traces": [trace * 10_000] * 10_000})
    assert "takes more than" in refusal(raw, tmp_path, monkeypatch)


def test_what_is_no_file(tmp_path):
    for path, told in ((tmp_path, "folder"), (tmp_path / "none.pickle", "no such file")):
        with pytest.raises(SnapshotError, match=told):
            loader.read(path)
