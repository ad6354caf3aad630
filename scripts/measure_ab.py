"""Measure two versions of the code, or two environments, in turns on one device: which is faster, and by how much.

    python scripts/measure_ab.py main worktree timing/small/ctx128/fp32 --plan results/plan/….json --out ab/
    python scripts/measure_ab.py 127d0a2 worktree "time_step.py --size nano --context 64 --precision fp32" --out ab/
    python scripts/measure_ab.py worktree worktree CELL --b-python other/bin/python --out ab/

In each round one fresh process of either side measures each cell, in the order A B, B A, A B …, while this program
holds the GPU (or the CPU) for itself. So both sides see the same host, the same clocks and the same heat, and what a
round's two processes share cancels in their ratio: that shows 1 % where two runs at different times show 5 %. A commit
is copied to a folder of its own; `worktree` are the files as they are when this program starts. The same on both
sides is an A/A control, which should give `same`.

Writes processes.csv (a row a process and series), sides.json, and by write_ab.py ab.csv, ab.md and index.html.
"""

import argparse
import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TextIO

from stepscope.files import or_one_line, write_whole
from stepscope.measure.process import die_with_parent
from stepscope.turns import TurnsError, cells, sides
from stepscope.turns.measuring import COLUMNS, measure

PROJECT = Path(__file__).resolve().parents[1]
LEAST_ROUNDS = 4


def main() -> None:
    die_with_parent()
    given = parse()
    try:
        with or_one_line(given.out):
            run(given)
    except TurnsError as error:
        sys.exit(f"error: {error}")
    if not given.only_measure:
        words = [sys.executable, str(PROJECT / "scripts/write_ab.py"), str(given.out), "--margin", str(given.margin)]
        sys.exit(subprocess.run(words, check=False).returncode)


def parse() -> argparse.Namespace:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("a", metavar="A", help=f"a commit, or {sides.WORKTREE}")
    flags.add_argument("b", metavar="B", help="what is compared with it")
    flags.add_argument(
        "cells",
        nargs="*",
        metavar="CELL",
        help="part of a cell's path (none: all of the plan), or a measuring program's command",
    )
    flags.add_argument("--plan", type=Path, metavar="FILE", help="the plan that holds the cells: results/plan/….json")
    flags.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder of what is measured")
    flags.add_argument("--rounds", type=int, default=8, metavar="N", help="processes of each side; even (default: 8)")
    flags.add_argument("--control", action="store_true", help="measure A once more in each round, as a control")
    flags.add_argument("--margin", type=float, default=1.0, metavar="%", help="difference that counts (default: 1 %%)")
    flags.add_argument(
        "--a-python", default=sys.executable, metavar="PATH", help="interpreter of A (default: this one)"
    )
    flags.add_argument(
        "--b-python", default=sys.executable, metavar="PATH", help="interpreter of B (default: this one)"
    )
    flags.add_argument("--time-limit", type=float, default=15, metavar="MINUTES", help="of a process (default: 15)")
    flags.add_argument("--only-measure", action="store_true", help="leave the page to write_ab.py")
    flags.add_argument(
        "--progress-to",
        type=open_file,
        default=sys.stdout,
        metavar="N",
        help="number of an open file that gets a line a round, with the time left (default: standard output)",
    )
    given = flags.parse_args()
    if given.rounds < LEAST_ROUNDS or given.rounds % 2:
        flags.error(
            f"--rounds {given.rounds}: use an even number from {LEAST_ROUNDS}, so that each side goes first as often"
        )
    return given


def open_file(number: str) -> TextIO:
    """The file that this process was started with under a number."""
    try:
        return open(int(number), "w", buffering=1, closefd=False)
    except (OSError, ValueError):
        raise argparse.ArgumentTypeError(f"{number}: no file is open under this number") from None


def run(given: argparse.Namespace) -> None:
    """Measure, and write what was measured. Raises TurnsError."""
    plan = cells.read_plan(given.plan) if given.plan else None
    turns = cells.chosen(given.cells, plan)
    wanted = {"a": (given.a, given.a_python), "b": (given.b, given.b_python)}
    if given.control:
        wanted["c"] = wanted["a"]
    commits = {name: sides.commit_of(PROJECT, commit) for name, (commit, _) in wanted.items()}
    pythons = {name: sides.checked_python(python) for name, (_, python) in wanted.items()}
    given.out.mkdir(parents=True, exist_ok=True)
    copies = (given.out / ".checkouts").resolve()
    for left in (given.out / "processes", copies):  # by a run before
        shutil.rmtree(left, ignore_errors=True)
    both = [sides.Side(name, wanted[name][0], commits[name], pythons[name], copies / name) for name in wanted]
    try:
        for side in both:
            sides.checked_out(PROJECT, side.commit, side.folder)
        say, tell = partial(print, flush=True), partial(print, file=given.progress_to, flush=True)
        rows, seen = measure(both, turns, given.rounds, given.out, given.time_limit, say, tell)
    finally:
        shutil.rmtree(copies, ignore_errors=True)
    described = {
        side.name: {"given": side.given, "commit": side.commit, "interpreter": side.python} | seen[side.name]
        for side in both
    }
    about = {"sides": described, "rounds": given.rounds, "cells": [turn.name for turn in turns]}
    lines = [",".join(COLUMNS), *(",".join(map(field, (row[name] for name in COLUMNS))) for row in rows)]
    write_whole(
        {
            given.out / "processes.csv": [f"{line}\n" for line in lines],
            given.out / "sides.json": [json.dumps(about, indent=1, sort_keys=True) + "\n"],
        }
    )


def field(value: object) -> str:
    """A value of a CSV file; None is an empty field."""
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text


if __name__ == "__main__":
    main()
