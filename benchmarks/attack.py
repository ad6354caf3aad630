"""Hostile files in the place of good ones: each has to be refused in one line, or to do no harm.

python benchmarks/attack.py [--kinds records samples …] [--count N] [--seed 0] [--folder DIR]

Each input is a good file that is spoilt, by a draw that the seed repeats. The program that it is
meant for gets it in a process of its own, within 30 s (what starts Snakemake or torch: 60 or 90)
and 4 GiB. The kinds, each a module of benchmarks/attacks:

  records, samples   of cells of report/example/llama: the tables are made of them
  configurations     planned as the workflow does, and by Snakemake itself with --configfile
  published          figures that others published: looked at by the workflow, put in the tables
  traces, snapshots  of torch.profiler, Nsight Systems, the memory recorder: analysed by hand
  models             of one's own: measured as a cell is

Prints a table, a row a kind, and what came out otherwise than it should:

  tried      inputs
  refused    what is wrong is said, in one line for each thing
  warned     used, with a line that says what cannot be
  harmless   used, and no number of the tables is impossible
  wrong      used without a word, and a number of the tables is impossible
  traceback (or lines that say too much), hang, memory, outside (files that were written elsewhere),
  orphan (processes that are left): defects

Exit code 1 if there is one of the last six. Takes some ten minutes on two cores.
"""

import argparse
import contextlib
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "benchmarks")]

# Loaded once, for all inputs: each is tried in a fork of this process.
from attacks import cells, configurations, models, published, recordings, trying  # noqa: E402
from stepscope.machine import process  # noqa: E402

VERDICTS = ("refused", "warned", "harmless")
DEFECTS = ("wrong", "traceback", "hang", "memory", "outside", "orphan")
# Kind → what makes, in a folder of good files, a function that makes an attempt.
KINDS: dict[str, Callable[[Path], Callable]] = {
    "records": partial(cells.spoiling, cells.RECORDS),
    "samples": partial(cells.spoiling, cells.SAMPLES),
    "configurations": configurations.configurations,
    "published": published.published,
    "traces": recordings.traces,
    "snapshots": recordings.snapshots,
    "models": models.models,
}
COUNTS = {"configurations": 260, "traces": 200, "snapshots": 200, "models": 40}
COUNT = 120  # of another kind


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    flags.add_argument("--count", type=int, help="inputs of each kind (some 1,000 in all)")
    flags.add_argument("--seed", type=int, default=0)
    flags.add_argument("--folder", type=Path, help="where to work (a temporary folder)")
    given = flags.parse_args()
    found = {}
    with contextlib.ExitStack() as stack:
        place = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for kind in given.kinds:
            count = given.count or COUNTS.get(kind, COUNT)
            found[kind] = attacked(kind, count, given.seed, place.resolve())
            print(table({kind: found[kind]}).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(found))
    outcomes = [(kind, *outcome) for kind in found for outcome in found[kind]]
    defects = [outcome for outcome in outcomes if outcome[1] in DEFECTS]
    for kind, verdict, how, said in defects:
        print(f"{kind}: {verdict}: {how}: {said}")
    sys.exit(bool(defects))


def table(found: dict[str, list[tuple[str, str, str]]]) -> str:
    """Inputs of each kind, and how many of them came out how, as Markdown."""
    columns = (*VERDICTS, *DEFECTS)
    lines = [f"| kind | tried | {' | '.join(columns)} |", "|---" * (2 + len(columns)) + "|"]
    for kind, outcomes in found.items():
        counts = Counter(verdict for verdict, _, _ in outcomes)
        numbers = [len(outcomes), *(counts[verdict] for verdict in columns)]
        lines.append(f"| {kind} | {' | '.join(map(str, numbers))} |")
    return "\n".join(lines)


def attacked(kind: str, count: int, seed: int, place: Path) -> list[tuple[str, str, str]]:
    """(verdict, what was spoilt, what was said) of each input of a kind."""
    process.adopt_orphans()  # so that they are seen
    good, work = place / "good", place / "work"
    shutil.rmtree(good, ignore_errors=True)
    make = KINDS[kind](good)
    found = []
    for number in range(count):
        draw = random.Random(f"{seed} {kind} {number}")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        attempt = make(work, draw)
        verdict, said = trying.tried(attempt, work)
        found.append((verdict, attempt.how, said))
        if verdict in DEFECTS:
            print(f"{kind} {number}: {verdict}: {attempt.how}: {said}", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
