"""Ends runs of a tiny grid by signals at random moments, again and again, and counts what is lost.

    python benchmarks/random_kills.py [--kills 120] [--seed 0] [--folder DIR [--minutes N]]

SIGINT, SIGTERM, SIGHUP and SIGKILL each go to all processes of a run, to Snakemake alone, to one of
the others alone, and to one of them after the program that reads what the run prints has ended, at
any moment of a run from its start to its pages; every second one soon after a record has appeared,
when a cell is finished and Snakemake may not have noted it. Then the run is left to itself until it
ends, and the next one starts. Once the report is there it starts anew.

Counted are, and should all be 0:

- finished cells that were measured again, or are gone: those of which a whole record was there at
  the signal, anywhere below results/
- half results: records in a cell's folder whose samples are not those that were written
- orphans: processes that run 5 s after their run has ended
- hangs: runs that have not ended after 300 s

- manual steps: runs that fail without a signal, as where a lock is left; all starts anew then

What hangs or is left behind is counted, and only then ended. Prints a row for each signal and
target. Exit code 1 if anything was counted.

With a folder it goes on where --minutes ended it: what came of each run is in its runs.jsonl, and
what the next one does depends on the seed and on the runs before it alone.
Runs on the CPU, for some 20 seconds a signal.
"""

import argparse
import contextlib
import hashlib
import itertools
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
POINT = {"size": ["mite"], "context": [8], "precision": ["fp32"]}
SERIES = {"processes": {"cpu": 1}, "steps": {"cpu": {"min": 2, "max": 2, "seconds": 1}}}
GRID = {
    "device": "cpu",
    "threads": 1,
    "model": {"vocab_size": 16, "batch": 1},
    "sizes": {"mite": {"d_model": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2}},
    "limits": [],
    "timing": SERIES | {"grid": {"cpu": [POINT | {"context": [8, 16]}]}},
    "ladder": {"places": {"cpu": []}, "asides": {"cpu": []}},
    "attention": {"grid": {"cpu": []}},
    "parallel": {"grid": {"cpu": []}},
    "learning": {
        "processes": {"cpu": 1},
        "steps": {"cpu": 4},
        "variants": [{"precision": "fp32"}, {"precision": "bf16"}],
        "grid": {"cpu": [POINT]},
    },
    "profile": {"warmup": {"cpu": 1}, "steps": {"cpu": 1}, "grid": {"cpu": [POINT]}},
    "memory": {"grid": {"cpu": [POINT]}},
    "ceilings": {
        "processes": {"cpu": 1},
        "cpu": {
            "precision": ["fp32"],
            "matmul_order": 32,
            "copy_mebibytes": 1,
            "steps": 2,
            "seconds": 0.1,
        },
    },
    "precision": {"probes": ["accumulation"]},
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
HANDLERS = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
ALL, SNAKEMAKE, OTHER = "all", "Snakemake", "one other"
UNREAD = "one other, unread"
TARGETS = (ALL, SNAKEMAKE, OTHER, UNREAD)
COUNTED = ("measured again or gone", "half results", "orphans", "hangs", "manual steps")
LOOK = 0.02  # seconds between two looks at what there is
AFTER_RECORD = 0.6  # seconds at most from a record's appearance to the signal
GRACE = 5  # seconds after a run's end until what still runs is an orphan
PATIENCE = 300  # seconds until a run hangs: several times what one takes on a busy machine


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--kills", type=int, default=120, help="how many signals (120)")
    flags.add_argument("--seed", type=int, default=0, help="of moments and order (0)")
    flags.add_argument("--folder", type=Path, help="work there, and go on (a temporary folder)")
    flags.add_argument("--minutes", type=float, default=math.inf, help="to end after (none)")
    given = flags.parse_args()
    for number, handler in HANDLERS.items():  # a run inherits what nohup, or an `&`, ignores
        signal.signal(number, handler)
    until = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as scratch:
        campaign = Campaign((given.folder or Path(scratch)).resolve(), given.seed)
        while campaign.kills < given.kills and time.monotonic() < until:
            campaign.go_on()
        campaign.note(whole_run(campaign.project, whole_cells(campaign.project)))
    print(campaign.table())
    sys.exit(1 if campaign.counts.total() else 0)


class Campaign:
    """Runs of a folder, each with what came of it: a line of runs.jsonl."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed, self.project, self.log = seed, folder / "project", folder / "runs.jsonl"
        self.runs: list[dict] = []
        if self.log.exists():
            self.runs = [json.loads(line) for line in self.log.read_text().splitlines()]
        else:
            copy_of_project(self.project)
            began = time.monotonic()
            self.note(whole_run(self.project, {}), seconds=time.monotonic() - began)

    @property
    def kills(self) -> int:
        return sum(run["was_signalled"] for run in self.runs)

    @property
    def counts(self) -> Counter[str]:
        """What was counted in all runs."""
        counts: Counter[str] = Counter()
        for run in self.runs:
            counts.update(run["counts"])
        return counts

    def go_on(self) -> None:
        """Another run, with the signal that has its turn."""
        ways = list(itertools.product(SIGNALS, TARGETS))
        turn, place = divmod(self.kills, len(ways))
        random.Random(f"{self.seed} turn {turn}").shuffle(ways)
        if is_reported(self.project):
            start_anew(self.project)
        chance = random.Random(f"{self.seed} run {len(self.runs)}")
        moment = chance.choice([None, chance.uniform(0, self.runs[0]["seconds"])])
        there = whole_cells(self.project)
        self.note(ended_run(self.project, there, ways[place], chance, moment), way=ways[place])

    def note(self, ended: "Ended", way: tuple = (None, ""), seconds: float = 0.0) -> None:
        """Write down, and print, what became of a run."""
        number, target = way if ended.was_signalled else (None, "")
        told = {name: count for name, count in ended.counts.items() if count}
        run = {
            "signal": number.name if number else "",
            "target": target,
            "was_signalled": ended.was_signalled,
            "seconds": seconds,
            "counts": told,
        }
        self.runs.append(run)
        with open(self.log, "a") as log:
            log.write(json.dumps(run) + "\n")
        finished = f"{len(ended.finished)} finished"
        print(f"{self.kills:>4}  {ended.said:<46} {finished}; {told or ''}", flush=True)

    def table(self) -> str:
        """Signals by name and target, and what was counted after them, as Markdown."""
        lines = [f"| signal | to | sent | {' | '.join(COUNTED)} |", "|---" * 8 + "|"]
        rows = [(number.name, target) for number in SIGNALS for target in TARGETS]
        for name, target in [*rows, ("none", "")]:
            sent, counts = 0, Counter[str]()
            for run in self.runs:
                if (run["signal"] or "none", run["target"]) == (name, target):
                    sent += 1
                    counts.update(run["counts"])
            lines.append(f"| {name} | {target} | {sent} | {_cells(counts)} |")
        lines.append(f"| all |  | {self.kills} | {_cells(self.counts)} |")
        return "\n".join(lines)


def _cells(counts: Counter[str]) -> str:
    return " | ".join(str(counts[name]) for name in COUNTED)


def copy_of_project(folder: Path) -> Path:
    """The project with the tiny grid, in a folder of its own, so that edits of this one change
    nothing."""
    leave = shutil.ignore_patterns("example", "__pycache__")
    for part in ("rules", "scripts", "envs", "profiles", "report"):
        shutil.copytree(ROOT / part, folder / part, ignore=leave)
    for file in ("Snakefile", "config.yaml", "requirements.txt"):
        shutil.copy2(ROOT / file, folder / file)
    (folder / "tiny.yaml").write_text(json.dumps(GRID))
    return folder


@dataclass
class Ended:
    """What became of a run: cell → when its measurement began, of those that are finished."""

    said: str
    finished: dict[str, str]
    was_signalled: bool = False
    counts: Counter[str] = field(default_factory=Counter)


def whole_run(project: Path, finished: dict[str, str]) -> Ended:
    """A run that no signal ends."""
    run, _ = start(project)
    return settled(project, run, finished, Ended("to its end", {}))


def ended_run(
    project: Path,
    finished: dict[str, str],
    way: tuple,
    chance: random.Random,
    moment: float | None = None,
) -> Ended:
    """A run that is sent a signal, unless it ends before.

    moment: seconds after its start; without it, soon after the next record has appeared.
    """
    run, reader = start(project)
    began, seen = time.monotonic(), set(whole_cells(project))
    while run.poll() is None and (moment is None or time.monotonic() < began + moment):
        if moment is None and set(whole_cells(project)) - seen:
            moment = time.monotonic() - began + chance.uniform(0, AFTER_RECORD)
        time.sleep(LOOK)
    if run.poll() is not None:
        return settled(project, run, finished, Ended("came to its end", {}))
    number, target = way
    at_signal = whole_cells(project)
    if target == UNREAD:
        reader.kill()
        reader.wait()
    send(run, number, target, chance)
    said = f"{number.name} to {target} after {time.monotonic() - began:.1f} s"
    return settled(project, run, finished | at_signal, Ended(said, {}, was_signalled=True))


def send(run: subprocess.Popen, number: int, target: str, chance: random.Random) -> None:
    """Send a signal to a run, or to a part of it."""
    processes = processes_of(run.pid)
    others = [process for process in processes if process != run.pid]
    if target == SNAKEMAKE or not others:
        processes = [run.pid]
    elif target in (OTHER, UNREAD):
        processes = [chance.choice(others)]
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)


def settled(project: Path, run: subprocess.Popen, finished: dict[str, str], ended: Ended) -> Ended:
    """Wait for the run's own end, and count what is left, lost or half; `finished` are the cells
    that it must not measure again."""
    try:
        run.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        ended.counts["hangs"] += 1
    if run.poll() and not ended.was_signalled:
        print(f"a run failed by itself:\n{(project / 'run.log').read_text()[-2000:]}")
        ended.counts["manual steps"] += 1
    until = time.monotonic() + GRACE
    while processes_of(run.pid) and time.monotonic() < until:
        time.sleep(LOOK)
    left = processes_of(run.pid)
    ended.counts["orphans"] += len([process for process in left if process != run.pid])
    for process in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    run.wait()
    if ended.counts["manual steps"]:
        start_anew(project)
        return ended
    ended.finished = whole_cells(project)
    changed = [cell for cell, when in finished.items() if ended.finished.get(cell) != when]
    ended.counts["measured again or gone"] += len(changed)
    ended.counts["half results"] += len(half_results(project))
    return ended


def start(project: Path) -> tuple[subprocess.Popen, subprocess.Popen]:
    """Snakemake, making the report, with its processes in a session of their own; what reads what
    it prints."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "tiny.yaml"]
    locks = {"STEPSCOPE_LOCKS": str(project / "locks"), "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.Popen(
        command,
        cwd=project,
        env=os.environ | locks,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert run.stdout is not None, "it is a pipe"
    with open(project / "run.log", "wb") as log, run.stdout:
        return run, subprocess.Popen(["cat"], stdin=run.stdout, stdout=log)


def start_anew(project: Path) -> None:
    """Remove all that runs have made."""
    for folder in ("results", ".snakemake"):
        shutil.rmtree(project / folder, ignore_errors=True)


def is_reported(project: Path) -> bool:
    """Whether the report is there, so that a run would have nothing to do."""
    return (project / "results/report/index.html").exists()


def processes_of(session: int) -> list[int]:
    """The processes of a session that run, without those that have ended and wait for their
    parent."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        state, its_session = fields[0], int(fields[3])
        if its_session == session and state not in "ZX":
            found.append(int(folder.name))
    return found


def whole_cells(project: Path) -> dict[str, str]:
    """Cell → when its measurement began, of those with a whole record: in its folder, or kept for
    the next run."""
    found = {}
    for place in ("results/.measured", "results"):
        for path in records(project / place):
            if when := began_at(path):
                found[str(path.parent.relative_to(project / place))] = when
    return found


def half_results(project: Path) -> list[Path]:
    """Records in the cells' folders that are not whole."""
    return [path for path in records(project / "results") if not began_at(path)]


def records(folder: Path) -> Iterator[Path]:
    """The records in a folder, but not in hidden ones: what is in these is not finished."""
    for place, inner, names in os.walk(folder):  # which minds no folder that disappears
        inner[:] = [name for name in inner if not name.startswith(".")]
        if "record.json" in names:
            yield Path(place, "record.json")


def began_at(record: Path) -> str | None:
    """When a cell's measurement began; None where its record or samples are not whole."""
    try:
        content = json.loads(record.read_bytes())
        digest = hashlib.sha256(record.with_name("samples.csv").read_bytes()).hexdigest()
        return content["provenance"]["started"] if content["samples_sha256"] == digest else None
    except (OSError, ValueError, KeyError):
        return None


if __name__ == "__main__":
    main()
