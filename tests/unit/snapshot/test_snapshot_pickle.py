"""Reading pickles: as Python does where they are plain data, and one line for everything else."""

import copy
import gzip
import os
import pickle
import random
import tracemalloc
from pathlib import Path

import pytest
from snapshot_simulator import FORWARD, Simulator, python_frame, written
from stepscope.snapshot import SnapshotError, loader
from stepscope.snapshot.events import ACTIONS, Rows
from stepscope.snapshot.plain_pickle import Reader

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*/snapshot.pickle.gz"))


def expanded(raw):
    """What the reader makes of a pickle, with the events as dicts again, and how many went through the columns."""
    reader = Reader(raw)
    content, columns, at_once = reader.load(), reader.columns, 0
    for trace in content["device_traces"]:
        events = []
        for item in trace:
            if isinstance(item, Rows):
                at_once += item.stop - item.start
                events += [_event(columns, row) for row in range(item.start, item.stop)]
            else:
                events.append(_chosen(item))
        trace[:] = events
    return content, at_once


def _event(columns, row):
    stack = columns.stack[row]
    return {
        "action": ACTIONS[columns.action[row]],
        "addr": columns.address[row],
        "size": columns.size[row],
        "time_us": columns.time[row],
        "frames": columns.stacks[stack] if stack >= 0 else [],
    }


def _chosen(event):
    found = {key: event.get(key) for key in ("action", "size", "time_us")}
    return found | {"addr": event.get("addr", event.get("device_free")), "frames": event.get("frames", [])}


def expected(raw):
    content = pickle.loads(raw)
    content["device_traces"] = [[_chosen(event) for event in trace] for trace in content["device_traces"]]
    return content


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.parent.name)
def test_a_recording_is_read_as_python_reads_it(path):
    raw = gzip.decompress(path.read_bytes())
    found, at_once = expanded(raw)
    assert found == expected(raw)
    assert at_once > 0.7 * sum(map(len, found["device_traces"]))


def varied():
    """Many events of several layouts: with and without frames, with pools, other texts and long stacks."""
    chance, simulator = random.Random(1), Simulator()
    lines = [python_frame(f"size_{n}" if n else "size", n) for n in range(400)]  # a function named like a key
    for n in range(3000):
        simulator.free(simulator.alloc(chance.choice((1, 255, 256, 65536, 1 << 19)), chance.sample(lines, n % 40)))
        event = simulator.events[-1]
        if n % 3 == 0:
            event["pool_id"] = (0, n % 300)
        if n % 5 == 0:
            event["user_metadata"] = f"step {n % 7}"
        if n % 11 == 0:
            del event["frames"]
    simulator.oom(1 << 40, 12345)
    return simulator.snapshot()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_and_layout_is_read_as_python_reads_it(protocol):
    raw = pickle.dumps(varied(), protocol)
    found, at_once = expanded(raw)
    assert found == expected(raw)
    assert protocol < 4 or at_once > 4000


def test_a_packed_file_is_read_too(tmp_path):
    content = varied()
    plain = loader.read(written(content, tmp_path / "a.pickle")).devices[0]
    packed = loader.read(written(content, tmp_path / "b.pickle.gz")).devices[0]
    assert plain.size.tolist() == packed.size.tolist() and len(plain.size) > 9000


class Calls:
    def __init__(self, made):
        self.made = made

    def __reduce__(self):
        return self.made


class Persistent(pickle.Pickler):
    def persistent_id(self, obj):
        return "tensor 1" if obj == "there" else None


def persistent(tmp_path):
    with (tmp_path / "made").open("wb") as file:
        Persistent(file, 4).dump(["there"])
    return (tmp_path / "made").read_bytes()


def nested(levels, tuples=False):
    return b"\x80\x04" + b"]" * levels + b"a" * (levels - 1) + b"." if not tuples else b"\x80\x04)" + b"\x85" * levels


def of_segments(*segments):
    """A snapshot's pickle of segments with these fields."""
    whole = [{"device": 0, "address": 0, "total_size": 0, "blocks": []} | copy.deepcopy(each) for each in segments]
    return pickle.dumps({"segments": whole, "device_traces": []})


LAUGHS = b"\x80\x04]\x94" + b"".join(b"](h" + bytes([n]) * 1 + b"h" + bytes([n]) + b"e\x94" for n in range(200)) + b"."
# Tuples of two times the same tuple, as a dict's key: Python hashes 2 ** 60 of them.
LAUGHING_KEY = b"\x80\x04)\x94" + b"".join(b"h" + bytes([n, ord("h"), n]) + b"\x86\x94" for n in range(60))
LAUGHING_KEY += b"}h\x3cNs."


def colliding(number):
    """A key and None, whose hash is 0: a multiple of the prime that Python's hashes of numbers are taken by."""
    return b"\x8a\x09" + (number * ((1 << 61) - 1)).to_bytes(9, "little") + b"N"


HOSTILE = {
    "a call of protocol 2": (pickle.dumps(Calls((os.system, ("true",))), 2), "posix"),
    "a call of protocol 4": (pickle.dumps(Calls((os.system, ("true",))), 4), "posix.system"),
    "an object": (pickle.dumps(Path("a"), 4), "pathlib.PosixPath"),
    "a set": (pickle.dumps({1, 2}, 4), "not plain data"),
    "REDUCE": (b"\x80\x04K\x01)R.", "REDUCE"),
    "BUILD": (b"\x80\x04]Nb.", "BUILD"),
    "NEWOBJ": (b"\x80\x04K\x01)\x81.", "NEWOBJ"),
    "EXT": (b"\x80\x04\x82\x05.", "extension code"),
    "INST": (b"\x80\x02(ios\nsystem\n.", "os.system"),
    "deep nesting": (nested(300_000), "not a memory snapshot"),
    "OBJ": (b"\x80\x02(K\x01o.", "OBJ"),
    "a buffer": (b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b"x.", "not plain data"),
    "a frame without end": (b"\x80\x04\x95" + (1 << 40).to_bytes(8, "little") + b"x.", "not plain data"),
    "a key that is endless to hash": (LAUGHING_KEY, "key"),
    "keys that collide": (b"\x80\x04}(" + b"".join(map(colliding, range(1, 1000))) + b"u.", "key"),
    "a deep tuple as a key": (b"\x80\x04}" + b")" + b"\x85" * 300_000 + b"K\x00s.", "key"),
    "exponential sharing": (LAUGHS, "not a memory snapshot"),
    "a huge text": (b"\x80\x04\x8d" + (1 << 60).to_bytes(8, "little") + b"x.", "1152921504606846976 bytes long"),
    "huge bytes": (b"\x80\x04\x8e" + (1 << 34).to_bytes(8, "little") + b"x.", "bytes long"),
    "a huge number": (b"\x80\x04\x8b" + (1 << 30).to_bytes(4, "little") + b"1.", "number of"),
    "a number for the end of a huge table": (b"\x80\x02]r\xff\xff\xff\x7f.", "damaged"),
    "a reference to nothing": (b"\x80\x04j\xff\xff\xff\x7f.", "damaged"),
    "no values": (b"\x80\x04.", "damaged"),
    "marks without end": (b"\x80\x04" + b"(" * 100_000 + b".", "damaged"),
    "a newer protocol": (b"\x80\x09N.", "protocol 9"),
    "protocol 0": (pickle.dumps({"segments": []}, 0), "protocol 0"),
    "an empty file": (b"", "empty"),
    "a text": (b"Hello, world\n", "not a pickle"),
    "a list of numbers": (pickle.dumps([1, 2]), "not a memory snapshot"),
    "another dict": (pickle.dumps({"state_dict": {}}), "neither segments nor device_traces"),
    "segments that are none": (pickle.dumps({"segments": {"a": 1}, "device_traces": []}), "not a memory snapshot"),
    "events that are none": (pickle.dumps({"segments": [], "device_traces": [[1, 2]]}), "an event is a int"),
    "sizes that are none": (
        pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": "x"}]]}),
        "not a memory snapshot",
    ),
    "negative sizes": (
        pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": -5}]]}),
        "negative",
    ),
    "negative sizes later on": (
        pickle.dumps(
            {
                "segments": [],
                "device_traces": [[{"action": "alloc", "addr": 1, "size": size} for size in (5, 5, -5)]],
            }
        ),
        "negative",
    ),
    "segments that are too large together": (of_segments({"total_size": 1 << 62}, {"total_size": 1 << 62}), "add up"),
    "a segment of a negative size": (of_segments({"total_size": -1}), "a segment has a negative size"),
    "a block of a negative size": (of_segments({}, {"blocks": [{"size": -1}]}), "a block has a negative size"),
    "a negative request": (
        of_segments({"blocks": [{"size": 512, "requested_size": -1}]}),
        "an allocation has a negative size",
    ),
    "blocks that are too large together": (of_segments(*[{"blocks": [{"size": 1 << 61}]}] * 2), "add up"),
    "requests that are too large together": (
        of_segments(*[{"blocks": [{"size": 0, "requested_size": 1 << 61}]}] * 2),
        "add up",
    ),
    "events that are too large together": (
        pickle.dumps(
            {
                "segments": [],
                "device_traces": [[{"action": "alloc", "addr": address, "size": 1 << 61} for address in range(4)]],
            }
        ),
        "add up",
    ),
    "numbers beyond 64 bits": (
        pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 1 << 64}]]}),
        "not a memory snapshot",
    ),
    "frames that are none": (
        pickle.dumps({"segments": [], "device_traces": [[{"action": "alloc", "addr": 1, "size": 1, "frames": [1]}]]}),
        "a frame is a int",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_snapshot_is_one_line_and_little_memory(name, tmp_path, monkeypatch):
    raw, told = HOSTILE[name]
    ran, path = [], tmp_path / "bad.pickle"
    monkeypatch.setattr(f"{os.name}.system", ran.append)
    path.write_bytes(raw)
    tracemalloc.start()
    try:
        with pytest.raises(SnapshotError) as error:
            loader.read(path)
        used = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    text = str(error.value)
    assert text.startswith(f"{path}: ") and told in text and "; " in text and "\n" not in text
    assert used < 60e6
    assert not ran


def test_a_persistent_id_is_refused(tmp_path):
    path = tmp_path / "bad.pickle"
    path.write_bytes(persistent(tmp_path))
    with pytest.raises(SnapshotError, match="persistent id"):
        loader.read(path)


def test_a_file_cut_off_anywhere_is_refused(tmp_path):
    simulator = Simulator()
    for _ in range(3):
        simulator.free(simulator.alloc(5000, FORWARD))
    raw = written(simulator.snapshot(), tmp_path / "a.pickle").read_bytes()
    path = tmp_path / "cut.pickle"
    for length in range(1, len(raw) - 1, 7):
        path.write_bytes(raw[:length])
        with pytest.raises(SnapshotError, match=r"damaged|not a pickle|bytes long"):
            loader.read(path)


def test_a_packed_file_that_is_cut_off_or_a_bomb_is_refused(tmp_path):
    path = written(varied(), tmp_path / "a.pickle.gz")
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(SnapshotError, match="cut off or damaged"):
        loader.read(path)
    path.write_bytes(gzip.compress(b"\x80\x04" + bytes(100 << 20)))
    with pytest.raises(SnapshotError, match="larger than 64 MB"):
        loader.read(path)


def test_shared_lists_cannot_multiply_the_work(tmp_path):
    """A thousand references to one list of a thousand events are a million events in a file of a few kilobytes."""
    simulator = Simulator()
    for _ in range(10):
        simulator.free(simulator.alloc(500))
    content = simulator.snapshot()
    trace, segment = content["device_traces"][0], content["segments"][0]
    for shared in (
        content | {"device_traces": [trace] * 1000},
        content | {"segments": [segment] * 1000},
        content | {"segments": [segment, segment | {"address": 5}]},
    ):
        with pytest.raises(SnapshotError, match="several times"):
            loader.read(written(shared, tmp_path / "a.pickle"))


@pytest.mark.parametrize("what", ["folder", "missing"])
def test_what_is_no_file(what, tmp_path):
    path = tmp_path if what == "folder" else tmp_path / "none.pickle"
    with pytest.raises(SnapshotError, match=r"folder|no such file"):
        loader.read(path)
