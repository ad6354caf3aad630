"""Tables of a large trace: should take at most 30 s and 3 GB on two cores.

python benchmarks/trace_scale.py [--kernels 1000000] [--keep TRACE.sqlite]

Writes a made-up export of Nsight Systems with a million kernels and three million NVTX ranges (a third of them are
autograd's, each with a text of its own), runs analyze_nsys.py on it and prints its time and peak memory.
"""

import argparse
import contextlib
import itertools
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "scripts" / "analyze_nsys.py"
SECONDS, GIGABYTES = 30, 3
BLOCKS = 12
# Parts of a block and the operators that each runs; an operator launches one kernel.
ATTENTION = {
    "QKV projection": ["aten::mm"],
    "RoPE(Q)": ["aten::flip", "aten::mul", "aten::add"],
    "RoPE(K)": ["aten::flip", "aten::mul", "aten::add"],
    "attention scores": ["aten::bmm", "aten::mul"],
    "mask": ["aten::where"],
    "softmax": ["aten::amax", "aten::sub", "aten::exp", "aten::sum", "aten::div"],
    "attention × V": ["aten::bmm"],
    "output projection": ["aten::mm"],
}
NORM = ["aten::pow", "aten::mean", "aten::rsqrt", "aten::mul"]
FFN = ["aten::mm", "aten::silu", "aten::mul", "aten::mm"]
OPTIMIZER = ["aten::lerp", "aten::mul", "aten::addcmul", "aten::sqrt", "aten::addcdiv"] * 20
PROCESS = (1 << 48) + (4321 << 24)  # a global process id: machine, process
MAIN, AUTOGRAD = PROCESS + 4321, PROCESS + 4399
PUSH_POP = 59  # ENUM_NSYS_EVENT_TYPE


class Step:
    """The ranges and launches of one training step, in nanoseconds from its start; times are made up."""

    def __init__(self) -> None:
        self.now = 0
        self.ranges: list[list] = []  # thread, start, end, text, sequence number or None for a registered text
        self.launches: list[tuple] = []  # thread, start, operator
        self.sequence = 0
        with self._open(MAIN, "step"):
            with self._open(MAIN, "forward"):
                self._forward()
            self._part("loss", ["aten::logsumexp", "aten::gather", "aten::mean"])
            with self._open(MAIN, "backward"):
                self._backward()
            self._part("optimizer", OPTIMIZER)
        self.now += 5000

    @contextlib.contextmanager
    def _open(self, thread: int, text: str, sequence: int | None = None) -> Iterator[None]:
        self.now += 150
        entry = [thread, self.now, 0, text, sequence]
        self.ranges.append(entry)
        yield
        self.now += 150
        entry[2] = self.now

    def _launch(self, thread: int, name: str) -> None:
        self.now += 1000
        self.launches.append((thread, self.now, name))
        self.now += 1500

    def _part(self, part: str, operators: list[str]) -> None:
        with self._open(MAIN, part):
            for name in operators:
                self.sequence += 1
                dispatched, library = f"{name} (dispatched)", f"library call of {name}"
                with self._open(MAIN, name, self.sequence), self._open(MAIN, dispatched), self._open(MAIN, library):
                    self._launch(MAIN, name)

    def _forward(self) -> None:
        self._part("embedding", ["aten::embedding"])
        for _ in range(BLOCKS):
            self._part("attention norm", NORM)
            with self._open(MAIN, "attention"):
                for part, operators in ATTENTION.items():
                    self._part(part, operators)
            self._part("FFN norm", NORM)
            self._part("FFN", FFN)
        self._part("final norm", NORM)
        self._part("LM head", ["aten::mm"])

    def _backward(self) -> None:
        for number in range(self.sequence, 0, -1):
            engine = self._open(AUTOGRAD, "autograd::engine::evaluate_function: MmBackward0")
            with engine, self._open(AUTOGRAD, "MmBackward0", number), self._open(AUTOGRAD, "aten::mm"):
                self._launch(AUTOGRAD, "aten::mm")


def write_trace(path: Path, kernels: int) -> tuple[int, int, int]:
    """Write an export with at least so many kernels; returns how many steps, kernels and ranges it has."""
    step = Step()
    steps = -(-kernels // len(step.launches))
    names = sorted({text for *_, text, sequence in step.ranges if sequence is None})
    operators = sorted({name for *_, name in step.launches})
    strings = [
        "cudaLaunchKernel_v7000",
        *names,
        *[f"void kernel_of_{name}<float, (int)4>(int, T1, T2)" for name in operators],
    ]
    identifier = {text: number for number, text in enumerate(strings)}
    kernel = {name: identifier[f"void kernel_of_{name}<float, (int)4>(int, T1, T2)"] for name in operators}
    database = sqlite3.connect(path)
    database.executescript(
        """
        PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
        CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER,
            textId INTEGER, domainId INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER,
            nameId INTEGER, callchainId INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
            correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
        """
    )
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(strings))

    def ranges():
        number = itertools.count(1)
        for at in range(steps):
            zero = at * step.now
            for thread, start, end, text, sequence in step.ranges:
                if sequence is None:
                    yield zero + start, zero + end, PUSH_POP, None, thread, identifier[text], 0
                else:
                    named = f"{text}, seq = {at * step.sequence + sequence}, op_id = {next(number)}"
                    yield zero + start, zero + end, PUSH_POP, named, thread, None, 0

    def launches():
        for at in range(steps):
            for number, (thread, start, name) in enumerate(step.launches, at * len(step.launches) + 1):
                yield at * step.now + start, thread, number, kernel[name]

    database.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)", ranges())
    calls = ((start, start + 900, thread, number, 0, None) for start, thread, number, _ in launches())
    database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?, ?)", calls)
    ran = ((start + 2000, start + 3500, 0, 7, number, PROCESS, name, name) for start, _, number, name in launches())
    database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ran)
    database.commit()
    database.close()
    return steps, steps * len(step.launches), steps * len(step.ranges)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--kernels", type=int, default=1_000_000, help="kernels, at least (1000000)")
    flags.add_argument("--keep", type=Path, help="write the trace here and leave it there")
    given = flags.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        path = given.keep or Path(scratch) / "trace.sqlite"
        path.unlink(missing_ok=True)
        steps, kernels, ranges = write_trace(path, given.kernels)
        print(
            f"  {steps:,} steps, {kernels:,} kernels, {ranges:,} ranges: {path.stat().st_size / 1e6:.0f} MB", flush=True
        )
        start = time.perf_counter()
        command = [sys.executable, str(PROGRAM), str(path), "--out", str(Path(scratch) / "tables")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    most = used.ru_maxrss / 1e6
    processor = used.ru_utime + used.ru_stime
    print(f"  time: {taken:.1f} s, {taken / SECONDS:.2f} of {SECONDS} s (of the processor: {processor:.1f} s)")
    print(f"  peak memory: {most:.2f} GB, {most / GIGABYTES:.2f} of {GIGABYTES} GB")


if __name__ == "__main__":
    main()
