"""The rounds: in each one process of every side, in an order that turns round from one to the next (A B, B A, …)."""

import contextlib
import csv
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from stepscope.machine import gpus, locks
from stepscope.turns import TurnsError
from stepscope.turns.cells import Turn
from stepscope.turns.sides import Side

SERIES = ("mode", "kind", "phase", "length")  # columns that tell a program's series apart, where it has them
COLUMNS = ("cell", *SERIES, "round", "position", "side", "seconds", "steps", "sm_clock_mhz")


def order(sides: Sequence[Side], number: int) -> list[Side]:
    """Who comes when in a round, from 1: as they are, and the other way round in every second one."""
    return list(sides) if number % 2 else list(reversed(sides))


def measure(
    sides: Sequence[Side],
    turns: Sequence[Turn],
    rounds: int,
    out: Path,
    minutes: float,
    say: Callable[[str], None],
    tell: Callable[[str], None] = lambda _: None,
) -> tuple[list[dict], dict[str, dict]]:
    """Measure all rounds under one hold of the device.

    Returns rows with COLUMNS, one for each process and series (seconds: the median of its measured steps); and for each
    side what its first record says of machine and software, and the digest of each cell's code. Each process's own
    files come to `out/processes/ROUND/SIDE/CELL`. say: is given a line a process; tell: a line a round, with the time
    left. Raises TurnsError where a process fails.
    """
    device = turns[0].device
    gpu = next(iter(gpus.visible_gpus()), None) if device == "cuda" else None
    name = gpu.uuid if gpu else "cpu"
    rows: list[dict] = []
    machines: dict[str, dict] = {}
    with locks.hold(name):
        began = time.monotonic()
        for number in range(1, rounds + 1):
            for place, turn in enumerate(turns, 1):
                for position, side in enumerate(order(sides, number), 1):
                    say(f"round {number} of {rounds}: {side.name}, {turn.name}")
                    folder = out / "processes" / f"{number:02}" / side.name / f"{place:03}"
                    _one_process(side, turn, folder, name, minutes)
                    record = json.loads((folder / "record.json").read_bytes())
                    seen = machines.setdefault(side.name, _seen(record) | {"code": {}})
                    seen["code"][turn.name] = record["code"]
                    common = {"cell": turn.name, "round": number, "position": position, "side": side.name}
                    rows += [common | series for series in medians(folder / "samples.csv")]
            with contextlib.suppress(OSError):  # who reads may be gone; the rounds are not
                tell(progress(number, rounds, time.monotonic() - began))
    return rows, machines


def progress(done: int, rounds: int, seconds: float) -> str:
    """`2 of 8 rounds, about 6 min left`, where the first ones took so many seconds."""
    left = f", about {seconds / done * (rounds - done):.0f} s left" if done < rounds else ""
    return f"{done} of {rounds} rounds{left}"


def _one_process(side: Side, turn: Turn, folder: Path, device: str, minutes: float) -> None:
    """Run a measuring program once. Whatever lock its version takes, it is not this program's: that one is held."""
    folder.mkdir(parents=True)
    program = side.folder / "scripts" / f"{turn.program}.py"
    if not program.is_file():
        raise TurnsError(f"{side.name} ({side.given}) has no scripts/{turn.program}.py; choose a later commit")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")} | {
        locks.HELD: device,
        "STEPSCOPE_LOCKS": str(side.folder / "locks"),
        "GIT_CEILING_DIRECTORIES": str(side.folder.parent),  # a copy of a commit is in no repository
    }
    command = [side.python, str(program), *turn.words, "--time-limit", str(minutes), "--out", str(folder.resolve())]
    log = folder / "measure.log"
    try:
        with log.open("wb") as said:
            done = subprocess.run(
                command, env=environment, cwd=side.folder, stdout=said, stderr=subprocess.STDOUT, check=False
            )
    except OSError as error:
        raise TurnsError(f"cannot run {side.python}: {error.strerror}") from None
    if done.returncode or not (folder / "record.json").is_file():
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
        last = lines[-1][:200] if lines else f"it ended with code {done.returncode}"
        raise TurnsError(f"{side.name} ({side.given}) cannot measure {turn.name}: {last}; its log is {log}")


def _seen(record: dict) -> dict:
    hardware, versions = record["provenance"]["hardware"], record["provenance"]["versions"]
    return {
        "device": hardware.get("gpu") or hardware.get("cpu"),
        "driver": hardware.get("driver"),
        **{name: versions.get(name) for name in ("python", "torch", "cuda", "triton")},
    }


def medians(samples: Path) -> Iterator[dict]:
    """Of each series in a process's samples: its columns, the median of its measured steps in seconds, how many these
    were, and the median clock of the SMs in MHz (None where it is not known)."""
    series: dict[tuple[str, ...], list[dict]] = {}
    with samples.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["warmup"] != "True":
                series.setdefault(tuple(row.get(name, "") for name in SERIES), []).append(row)
    for names, found in series.items():
        clocks = [float(row["sm_clock_mhz"]) for row in found if row.get("sm_clock_mhz")]
        yield dict(zip(SERIES, names, strict=True)) | {
            "seconds": statistics.median(float(row["seconds"]) for row in found),
            "steps": len(found),
            "sm_clock_mhz": statistics.median(clocks) if clocks else None,
        }
