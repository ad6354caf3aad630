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
import subprocess
import sys
from pathlib import Path

from stepscope.files import or_one_line
from stepscope.tables.acceptance import Edited, accept, accepted_before, edited_cells
from stepscope.tables.cells import read_plan

RESULTS = Path("results")
PROJECT = Path(__file__).resolve().parents[1]
AT_ONCE = 500  # records that one command line names


def main() -> None:
    given, flags = parse(sys.argv[1:])
    snakemake("plan_file", flags)
    try:
        plan = read_plan(next(RESULTS.glob("plan/*.json")))
    except (StopIteration, ValueError) as error:
        sys.exit(f"error: no plan in {(RESULTS / 'plan').resolve()}: {error or 'leave out flags such as -n'}")
    edited, refused = edited_cells(plan, RESULTS)
    before = accepted_before(plan, RESULTS)
    for part in given.cells:
        if not any(is_meant(name, [part]) for name in planned(plan)):
            sys.exit(f"error: {part} is part of no cell's path; cells are like {next(iter(planned(plan)))}")
    edited = [cell for cell in edited if is_meant(cell.name, given.cells)]
    before = [name for name in before if is_meant(name, given.cells)]
    for name, reason in refused.items():
        if is_meant(name, given.cells):
            print(f"not accepted: results/{name}: {reason}", file=sys.stderr)
    for cell in edited:
        print(f"results/{cell.name}: measured by {cell.measured}, today {cell.now}")
    if given.dry_run:
        print(f"{len(edited)} cells would be accepted")
        return
    if not edited:
        tell_snakemake(before, flags)  # an earlier call may have been ended before it came to this
        sys.exit(f"no cell to accept: none differs from today's code alone; {len(before)} were accepted before")
    accept_all(edited, given.reason)
    tell_snakemake([cell.name for cell in edited] + before, flags)
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
    given.reason = " ".join(given.reason.split())
    if not given.reason:
        flags.error("--reason is empty; say why the edit changes no number")
    if not given.reason.isprintable():
        flags.error("--reason is not plain text in UTF-8")
    given.cells = [part.strip("/").removeprefix("results/") for part in given.cells]
    if any(word.partition("=")[0] in ("--directory", "-d") for word in words[cut + 1 :]):
        flags.error("run this program in the folder that holds results/, instead of giving --directory")
    return given, words[cut + 1 :]


def planned(plan: dict) -> list[str]:
    """Names of all cells."""
    return [entry["cell"] for part in plan["studies"].values() for entry in part["cells"]]


def is_meant(name: str, wanted: list[str]) -> bool:
    """Whether a cell's name holds one of the paths that were given, at the borders of its parts."""
    return not wanted or any(f"/{part}/" in f"/{name}/" for part in wanted)


def accept_all(edited: list[Edited], reason: str) -> None:
    """Write the records."""
    today = datetime.date.today().isoformat()
    for cell in edited:
        with or_one_line(RESULTS / cell.name):
            accept(cell, RESULTS, today, reason)


def tell_snakemake(names: list[str], flags: list[str]) -> None:
    """Let Snakemake note that these cells are of today's code."""
    records = [f"results/{name}/record.json" for name in names]
    for start in range(0, len(records), AT_ONCE):
        snakemake("--touch", [*flags, "--", *records[start : start + AT_ONCE]])


def snakemake(what: str, words: list[str]) -> None:
    """Run Snakemake in this folder; what it prints is shown only if it fails, which ends this program."""
    program = [sys.executable, "-m", "snakemake", "--snakefile", str(PROJECT / "Snakefile"), "--cores", "1"]
    done = subprocess.run([*program, what, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        sys.exit(
            f"error: snakemake {what} failed: {said[-1] if said else 'it said nothing'}; once it works, run this again"
        )


if __name__ == "__main__":
    main()
