"""Accept an edit of the code as one that changes no measured number, so that cells measured before it stay valid.

Each stale record keeps the digest of the code that measured it; the digest of today's code is added beside it, with the
date and your reason, and the report shows both. Only a cell that differs in nothing else is accepted: not one of
another spec, machine or version. Use it for a refactoring; an edit that may change a number has to be measured.

    python scripts/accept.py --reason "the loop moved to another module" --dry-run
    python scripts/accept.py --reason "the loop moved to another module" timing ladder/small
    python scripts/accept.py --reason "…" -- --config preset=smoke
"""

import argparse
import datetime
import os
import subprocess
import sys
from pathlib import Path

from stepscope.tables.acceptance import Edited, accept, edited_cells
from stepscope.tables.cells import read_plan

RESULTS = Path("results")
PROJECT = Path(__file__).resolve().parents[1]
AT_ONCE = 500  # records that one command line names


def main() -> None:
    given, flags = parse(sys.argv[1:])
    snakemake("plan", flags)
    plan = read_plan(next(RESULTS.glob("plan/*.json")))
    edited, refused = edited_cells(plan, RESULTS)
    edited = [cell for cell in edited if is_meant(cell.name, given.cells)]
    for name, reason in refused.items():
        if is_meant(name, given.cells):
            print(f"not accepted: results/{name}: {reason}", file=sys.stderr)
    if not edited:
        sys.exit("no cell to accept: none that is there differs from today's code alone")
    for cell in edited:
        print(f"results/{cell.name}: measured by {cell.measured}, today {cell.now}")
    if given.dry_run:
        print(f"{len(edited)} cells would be accepted")
        return
    accept_all(edited, given.reason, flags)
    print(f"{len(edited)} cells accepted: {given.reason}")


def parse(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The flags, and after `--` those that Snakemake is to be given."""
    cut = words.index("--") if "--" in words else len(words)
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument(
        "cells", nargs="*", metavar="CELL", help="part of a cell's path below results/; without any: all"
    )
    flags.add_argument("--reason", required=True, help="why the edit changes no number; the report shows it")
    flags.add_argument("--dry-run", action="store_true", help="only print which cells would be accepted")
    given = flags.parse_args(words[:cut])
    if not given.reason.strip():
        flags.error("--reason is empty; say why the edit changes no number")
    return given, words[cut + 1 :]


def is_meant(name: str, wanted: list[str]) -> bool:
    """Whether a cell's name holds one of the paths that were given, at the borders of its parts."""
    return not wanted or any(f"/{part.strip('/')}/" in f"/{name}/" for part in wanted)


def accept_all(edited: list[Edited], reason: str, flags: list[str]) -> None:
    """Write the records, then let Snakemake note that they are of today's code."""
    today = datetime.date.today().isoformat()
    for cell in edited:
        try:
            accept(cell, RESULTS, today, reason)
        except OSError as error:
            sys.exit(f"error: cannot write results/{cell.name}/record.json: {error.strerror}")
    records = [f"results/{cell.name}/record.json" for cell in edited]
    for start in range(0, len(records), AT_ONCE):
        snakemake("--touch", [*flags, "--", *records[start : start + AT_ONCE]])


def snakemake(what: str, words: list[str]) -> None:
    """Run Snakemake in this folder; what it prints is shown only if it fails, which ends this program."""
    command = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(PROJECT / "Snakefile"),
        "--cores",
        "1",
        what,
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode:
        sys.exit(f"error: snakemake {what} failed:\n{done.stderr.strip() or done.stdout.strip()}")


if __name__ == "__main__":
    main()
