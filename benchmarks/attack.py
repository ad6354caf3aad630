"""Hostile files in the place of good ones: each has to be refused in one line, or to do no harm.

python benchmarks/attack.py [--kinds records samples …] [--count N] [--seed 0] [--folder DIR]
                            [--jobs N]

Each input is a good file that is spoilt, by a draw that the seed repeats. The program that it is
meant for gets it in a process of its own, within 30 s (what starts Snakemake or torch: 60 or 90)
and 4 GiB. The kinds, each of a module of benchmarks/attacks:

  models, steps      of one's own: measured as a cell is
  fits               flags and models of one's own: whether a step fits a card
  configurations     planned as the workflow does, and by Snakemake itself with --configfile
  records, samples   of cells of report/example/llama: the tables are made of them
  ranks              of several devices: records of report/example/devices, flags, traces
  published          figures that others published: looked at by the workflow, put in the tables
  traces, snapshots  of torch.profiler, Nsight Systems, the memory recorder: analysed by hand

Prints a table, a row a kind, and what came out otherwise than it should:

  tried      inputs
  refused    what is wrong is said, in one line for each thing
  warned     used, with a line that says what cannot be
  harmless   used, and no number of the tables is impossible
  wrong      used without a word, and a number of the tables is impossible
  traceback (or lines that say too much), hang, memory, outside (files that were written elsewhere),
  orphan (processes that are left): defects

Exit code 1 if there is one of the last six. Takes some five minutes on two cores that have nothing
else to do.
"""

import argparse
import contextlib
import itertools
import multiprocessing
import os
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

# Loaded once, for all inputs: each is tried in a fork of this process.
from attacks import (  # noqa: E402
    cells,
    configurations,
    fitting,
    models,
    published,
    ranks,
    recordings,
    steps,
    trying,
)
from stepscope.machine import process  # noqa: E402

VERDICTS = ("refused", "warned", "harmless")
DEFECTS = ("wrong", "traceback", "hang", "memory", "outside", "orphan")
# Kind → what makes, in a folder of good files, a function that makes an attempt.
KINDS: dict[str, Callable[[Path], Callable]] = {
    "models": models.models,  # first, for some wait half a minute
    "steps": steps.steps,
    "fits": fitting.fitting,
    "configurations": configurations.configurations,
    "records": partial(cells.spoiling, cells.RECORDS),
    "samples": partial(cells.spoiling, cells.SAMPLES),
    "ranks": ranks.ranks,
    "published": published.published,
    "traces": recordings.traces,
    "snapshots": recordings.snapshots,
}
COUNTS = {"configurations": 250, "traces": 160, "snapshots": 160, "models": 40, "steps": 60}
COUNT = 110  # of another kind
Outcome = tuple[str, str, str]  # verdict, what was spoilt, what was said


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    flags.add_argument("--count", type=int, help="inputs of each kind (some 1,200 in all)")
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--folder", type=Path, help="where to work (a temporary folder)")
    usable = len(os.sched_getaffinity(0))
    flags.add_argument("--jobs", type=int, default=usable, help="at a time (%(default)s)")
    given = flags.parse_args()
    began = time.monotonic()
    found = {}
    with contextlib.ExitStack() as stack:
        place = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        counts = {kind: given.count or COUNTS.get(kind, COUNT) for kind in given.kinds}
        forking = multiprocessing.get_context("fork")
        pool = stack.enter_context(ProcessPoolExecutor(given.jobs, forking, prepared))
        inputs = [(kind, number) for kind in counts for number in range(counts[kind])]
        outcomes = pool.map(partial(one, seed=given.seed, place=place.resolve()), inputs)
        for kind in counts:
            found[kind] = list(itertools.islice(outcomes, counts[kind]))
            print(table({kind: found[kind]}).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(found))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processors")
    told = [(kind, *outcome) for kind in found for outcome in found[kind]]
    defects = [outcome for outcome in told if outcome[1] in DEFECTS]
    for kind, verdict, how, said in defects:
        print(f"{kind}: {verdict}: {how}: {said}")
    sys.exit(bool(defects))


def table(found: dict[str, list[Outcome]]) -> str:
    """Inputs of each kind, and how many of them came out how, as Markdown."""
    columns = (*VERDICTS, *DEFECTS)
    if len(found) > 1:
        found = found | {"all": list(itertools.chain.from_iterable(found.values()))}
    lines = [f"| kind | tried | {' | '.join(columns)} |", "|---" * (2 + len(columns)) + "|"]
    for kind, outcomes in found.items():
        counts = Counter(verdict for verdict, _, _ in outcomes)
        numbers = [len(outcomes), *(counts[verdict] for verdict in columns)]
        lines.append(f"| {kind} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def attacked(kind: str, count: int, seed: int, place: Path) -> list[Outcome]:
    """What came of each input of a kind."""
    prepared()
    return [one((kind, number), seed, place) for number in range(count)]


def prepared() -> None:
    """Have this process see what processes are left behind."""
    process.adopt_orphans()
    made.cache_clear()


@cache
def made(kind: str, good: Path) -> Callable:
    """What makes an attempt of a kind, of good files that it puts into a folder."""
    shutil.rmtree(good, ignore_errors=True)
    return KINDS[kind](good)


def one(which: tuple[str, int], seed: int, place: Path) -> Outcome:
    """What came of an input: (its kind, its number)."""
    kind, number = which
    draw = random.Random(f"{seed} {kind} {number}")
    own = place / str(os.getpid())  # several are at work
    work = own / "work"
    make = made(kind, own / "good" / kind)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    attempt = make(work, draw)
    verdict, said = trying.tried(attempt, work)
    if verdict in DEFECTS:
        print(f"{kind} {number}: {verdict}: {attempt.how}: {said}", file=sys.stderr, flush=True)
    return verdict, attempt.how, said


if __name__ == "__main__":
    main()
