"""Tables of a large memory snapshot: should take at most 90 s and five times the file's size on two
cores.

python benchmarks/snapshot_scale.py [--events 4000000] [--frames 90] [--keep SNAPSHOT.pickle]

Writes a made-up snapshot of a training loop with four million events, each with a stack of ninety
frames that it shares with others (about 1 GB), runs analyze_snapshot.py on it and prints its time
and peak memory. The file is written opcode by opcode as Python's pickler does it: made from objects
it would itself need more memory than the analysis.
"""

import argparse
import itertools
import resource
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "scripts" / "analyze_snapshot.py"
SECONDS, TIMES = 90, 5
BASE, START_US = 0x7F00_0000_0000, 1_795_000_000_000_000
LINES = 400  # different lines of Python that allocate
TENSORS = 1200  # that a forward pass leaves for the backward pass
SLOT = 8 << 20  # address space of each
BATCH = 1000  # items that pickle appends to a list at once


class Pickle:
    """Opcodes of protocol 4 (see pickletools), to be written in the order in which they are made:
    what was made before is a reference to its number."""

    def __init__(self) -> None:
        self.count = 0
        self.places: dict[object, int] = {}

    def begin(self, opcode: bytes) -> bytes:
        """An empty dict ("}") or list ("]"), its number, and the mark of its items."""
        self.count += 1
        return opcode + b"\x94("

    def text(self, value: str) -> bytes:
        place = self.places.get(value)
        if place is not None:
            return reference(place)
        raw = value.encode()
        self.places[value] = self.count
        self.count += 1
        return b"\x8c" + bytes([len(raw)]) + raw + b"\x94"

    def items(self, **items: int | str) -> bytes:
        return b"".join(
            self.text(key) + (self.text(value) if isinstance(value, str) else integer(value))
            for key, value in items.items()
        )

    def frame(self, name: str, filename: str, line: int) -> bytes:
        """A frame of a stack: a dict that all stacks share."""
        frame = (name, filename, line)
        place = self.places.setdefault(frame, self.count)
        if place != self.count:
            return reference(place)
        return self.begin(b"}") + self.items(name=name, filename=filename, line=line) + b"u"


def reference(place: int) -> bytes:
    return b"h" + bytes([place]) if place < 256 else b"j" + struct.pack("<I", place)


def integer(value: int) -> bytes:
    if value < 256:
        return b"K" + bytes([value])
    if value < 65536:
        return b"M" + struct.pack("<H", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"J" + struct.pack("<i", value) if len(raw) <= 4 else b"\x8a" + bytes([len(raw)]) + raw


def step() -> Iterator[tuple[str, int, int, int]]:
    """(action, address, bytes, number) of a step: what the forward pass makes, the backward pass
    frees in reverse."""
    sizes = itertools.cycle((512, 4096, 1 << 20, 3 << 20, 8 << 20))
    made = [
        (BASE + number * SLOT, size, number)
        for number, size in zip(range(TENSORS), sizes, strict=False)
    ]
    for each in made:
        yield "alloc", *each
    for each in reversed(made):
        yield "free_requested", *each
        yield "free_completed", *each


def write_snapshot(path: Path, events: int, depth: int) -> int:
    """Write a snapshot with at least so many events; returns how many it has."""
    with path.open("wb", buffering=1 << 20) as file:
        out = Pickle()
        file.write(b"\x80\x04" + out.begin(b"}") + out.text("segments") + out.begin(b"]"))
        file.write(_segment(out) + b"e")
        file.write(out.text("device_traces") + out.begin(b"]") + out.begin(b"]"))
        writer, count = Events(out, depth), 0
        while count < events:
            for action, address, size, number in step():
                file.write(writer.event(action, address, size, number, START_US + 5 * count))
                count += 1
                if count % BATCH == 0:
                    file.write(b"e(")
        file.write(b"eeu.")
    return count


def _segment(out: Pickle) -> bytes:
    """One segment as it is after all steps: a part that lives all the time, and many free ones."""
    found = out.begin(b"}") + out.items(
        device=0, address=BASE - SLOT, total_size=(TENSORS + 1) * SLOT, stream=0
    )
    found += out.text("blocks") + out.begin(b"]")
    for number in range(-1, TENSORS):
        state = "inactive" if number >= 0 else "active_allocated"
        place = BASE + number * SLOT
        found += (
            out.begin(b"}")
            + out.items(address=place, size=SLOT, requested_size=SLOT, state=state)
            + b"u"
        )
    return found + b"eu"


class Events:
    """Writes events; a free has the very stack of its allocation, as in PyTorch."""

    def __init__(self, out: Pickle, depth: int) -> None:
        self.out, self.depth = out, depth
        self.stacks = [0] * TENSORS  # the number of each one's latest stack
        self.frames: dict[int, bytes] = {}

    def event(self, action: str, address: int, size: int, number: int, at: int) -> bytes:
        text = self.out.text
        found = (
            self.out.begin(b"}") + text("action") + text(action) + text("addr") + integer(address)
        )
        found += (
            text("size") + integer(size) + text("stream") + b"K\0" + text("time_us") + integer(at)
        )
        found += text("compile_context") + b"\x8c\x03N/A\x94"  # a text of its own in each event
        self.out.count += 1
        found += text("user_metadata") + text("") + text("frames")
        if action != "alloc":
            return found + reference(self.stacks[number]) + b"u"
        self.stacks[number] = self.out.count
        return found + self.out.begin(b"]") + self._frames(number % LINES) + b"eu"

    def _frames(self, line: int) -> bytes:
        if line in self.frames:
            return self.frames[line]
        callers = [
            (
                "_call_impl",
                "/usr/lib/python3.12/site-packages/torch/nn/modules/module.py",
                1000 + level,
            )
            for level in range(self.depth - 1)
        ]
        every = [(f"layer_{line}", "/home/user/train/model.py", line), *callers]
        found = b"".join(self.out.frame(*frame) for frame in every)
        self.frames[line] = b"".join(
            reference(self.out.places[frame]) for frame in every
        )  # the next time
        return found


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--events", type=int, default=4_000_000, help="events, at least (4000000)")
    flags.add_argument("--frames", type=int, default=90, help="frames of a stack (90)")
    flags.add_argument("--keep", type=Path, help="write the snapshot here and leave it there")
    given = flags.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = given.keep or Path(scratch) / "snapshot.pickle"
        events = write_snapshot(path, given.events, given.frames)
        print(f"  {events:,} events: {path.stat().st_size / 1e6:.0f} MB", flush=True)
        start = time.perf_counter()
        command = [sys.executable, str(PROGRAM), str(path), "--out", str(Path(scratch) / "tables")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        most = used.ru_maxrss / 1e6
        processor = used.ru_utime + used.ru_stime
        print(
            f"  time: {taken:.1f} s, {taken / SECONDS:.2f} of {SECONDS} s (of the processor:"
            f" {processor:.1f} s)"
        )
        times = most * 1e9 / path.stat().st_size
        print(
            f"  peak memory: {most:.2f} GB, {times:.2f} times the file's size, of at most {TIMES}"
        )


if __name__ == "__main__":
    main()
