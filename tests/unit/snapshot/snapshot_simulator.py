"""A small allocator of its own: it writes the history and the final state that PyTorch's would, and
counts by itself.

Every block has a slot of its own in one segment, so addresses are used again as soon as a block is
gone.
"""

import copy
import gzip
import pickle
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from common import picked
from stepscope.snapshot import analysis

SEGMENT, SLOT, BASE = 64 << 20, 1 << 20, 0x7F00_0000_0000
PLACES = range(BASE, BASE + SEGMENT, SLOT)


def python_frame(name, line=1, file="/home/user/train.py"):
    """A frame of a stack as PyTorch records it."""
    return {"filename": file, "line": line, "name": name}


def torch_frame(name, line, file):
    """A frame of PyTorch's own Python."""
    return python_frame(name, line, f"/usr/lib/python3.12/site-packages/torch/{file}")


USER = python_frame("main", 7)
CALL = torch_frame("_call_impl", 1500, "nn/modules/module.py")
FORWARD = [python_frame("forward", 20, "/home/user/model.py"), CALL, USER]
OPTIMIZER = [torch_frame("_init_group", 90, "optim/adam.py"), USER]
MADE = [torch_frame("__init__", 110, "nn/modules/linear.py"), USER]
_CACHED = python_frame("at::autocast::cached_cast(c10::ScalarType)", 0, "autocast_mode.cpp")
CAST = [_CACHED, *FORWARD]
AUTOGRAD = []  # the backward pass has a thread of its own, without Python
BATCH = [USER]


def block(address, size, requested=0, state="inactive", frames=None):
    """A block of a segment in the final state."""
    told = {"address": address, "size": size, "requested_size": requested}
    return told | {"state": state, "frames": frames or []}


class Simulator:
    """alloc, free and the rest write events; active[i] is what is active after event i - 1, counted
    block by block. Given bytes and their stacks are allocated first."""

    def __init__(self, *made, device=0):
        self.device = device
        self.events, self.alive, self.reserved, self.now = [], {}, 0, 1_700_000_000_000_000
        self.active, self.held, self.pending = [0], [0], set()
        self.annotations = []
        self.grow(SEGMENT)
        for each in made:
            self.alloc(*each)

    def _event(self, action, addr, size, frames=None, **more):
        self.now += 10
        entry = {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": self.now}
        entry |= {"compile_context": "N/A", "user_metadata": ""} | more
        if action == "oom":
            entry["device_free"] = entry.pop("addr")
        if frames is not None:
            entry["frames"] = frames
        self.events.append(entry)
        self.active.append(sum(size for size, _ in self.alive.values()))
        self.held.append(self.reserved)

    def grow(self, size, action="segment_alloc"):
        """The segment gets larger; or another kind of action that reserves memory."""
        self.reserved += size
        self._event(action, BASE, size, [])

    def shrink(self, size, action="segment_free"):
        """The segment gets smaller."""
        self.reserved -= size
        self._event(action, BASE + (40 << 20), size, [])

    def alloc(self, size, frames=BATCH):
        """Allocate at the first free place; returns its address."""
        address = next(place for place in PLACES if place not in self.alive)
        self.alive[address] = (size, frames)
        self._event("alloc", address, size, frames)
        return address

    def free(self, *addresses, completes=True):
        """Ask to free; one that does not complete yet waits for complete()."""
        for address in addresses:
            size, frames = self.alive[address]
            self._event("free_requested", address, size, frames)
            if completes:
                self.complete(address)
            else:
                self.pending.add(address)

    def complete(self, address):
        """What was asked to be freed is gone."""
        size, frames = self.alive.pop(address)
        self.pending.discard(address)
        self._event("free_completed", address, size, frames)

    def oom(self, size, free, frames=FORWARD):
        """An allocation that failed, and what the device had free."""
        self._event("oom", free, size, frames)

    @contextmanager
    def annotated(self, name):
        """As torch.profiler.record_function does."""
        for stage in ("START", "END"):
            self.now += 1
            entry = {"name": name, "stage": stage, "device": self.device, "time_us": self.now}
            self.annotations.append(entry)
            if stage == "START":
                yield

    def segment(self):
        """The final state: blocks as PyTorch rounds them, to 512 bytes, each followed by the rest
        of its slot."""
        blocks = []
        for address in PLACES:
            size, frames = self.alive.get(address, (0, []))
            rounded = -(-size // 512) * 512
            if size:
                state = "active_pending_free" if address in self.pending else "active_allocated"
                blocks.append(block(address, rounded, size, state, frames))
            blocks.append(block(address + rounded, SLOT - rounded))
        return {
            "device": self.device,
            "address": BASE,
            "total_size": self.reserved,
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": blocks,
        }

    def snapshot(self, first=0):
        """As `_snapshot` gives it; first: how many events came before the recording began."""
        unrecorded = set(picked(self.events[:first], "addr", action="alloc"))
        segment, events = copy.deepcopy(self.segment()), self.events[first:]
        later = set(picked(events, "addr", action="alloc"))
        for block in segment["blocks"]:
            if block["address"] in unrecorded - later:
                block["frames"] = []
        traces = [[] for _ in range(self.device)] + [list(events)]
        return {
            "segments": [segment],
            "device_traces": traces,
            "allocator_settings": {"expandable_segments": False},
            "external_annotations": list(self.annotations),
        }


def written(content, path, protocol=4):
    """Write a simulator or any object as a snapshot's file, packed if the name ends so."""
    content = content.snapshot() if isinstance(content, Simulator) else content
    raw = pickle.dumps(content, protocol)
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def analyse(content):
    """The tables of a simulator's or any other snapshot, by name."""
    with TemporaryDirectory() as folder:
        return analysis.analyse_file(written(content, Path(folder) / "snapshot.pickle"))


def runs(found):
    """Stretches of events in one phase of one step, as the timeline has them: columns step, phase,
    start and end (the first and the last event), and what is active after the end."""
    table = found["memory_timeline"]
    table = table[table["event"] >= 0]
    step = table["step"].fillna(-1)
    new = (table["phase"] != table["phase"].shift()) | (step != step.shift())
    groups = table.groupby(new.cumsum())
    columns = {"step": ("step", "first"), "phase": ("phase", "first"), "start": ("event", "first")}
    return groups.agg(**columns, end=("event", "last"), active=("active", "last")).reset_index(
        drop=True
    )


def phases_of(found):
    """Those stretches that are in a phase."""
    told = runs(found)
    return told[told["phase"] != ""]


def at_peak(found):
    """Category → bytes at the peak."""
    return found["memory_peak"].set_index("category")["bytes"]


def held(content, *categories):
    """Bytes of some categories at a snapshot's peak."""
    return at_peak(analyse(content))[[*categories]].tolist()


def summary_of(found):
    """The row of the first device."""
    return found["memory_summary"].iloc[0]
