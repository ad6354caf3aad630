"""Put a study's cells together: results/…/record.json and samples.csv become STUDY.csv and STUDY_samples.csv.

Refuses, by name, a cell that is damaged or that was measured by another spec, other code or on another type of
machine, and prints the command that measures just those again, with the configuration that the run was given.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path

from stepscope import files
from stepscope.config import run
from stepscope.tables import cells
from stepscope.tables.control import between_cells


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--plan", type=Path, required=True, help="the plan that the workflow wrote")
    flags.add_argument("--study", required=True, help="name of the study")
    flags.add_argument("--results", type=Path, default=Path("results"), help="folder of the cells")
    flags.add_argument("--out", type=Path, required=True, help="folder of the tables")
    flags.add_argument("--partial", action="store_true", help="give cells without a usable result a row that says so")
    flags.add_argument(
        "--control",
        type=Path,
        metavar="TABLE",
        help="timing.csv, whose cells that were measured twice widen the intervals of this study's",
    )
    given = flags.parse_args()
    try:
        plan = cells.read_plan(given.plan)
        found = cells.read_cells(plan, given.study, given.results, given.partial)
    except ValueError as error:
        sys.exit(f"error: {error}")
    except cells.Refusal as refusal:
        for name, problem in refusal.problems.items():
            print(f"error: results/{name}: {problem}", file=sys.stderr)
        sys.exit(cells.remedy(refusal.problems, plan["machines"], os.environ.get(run.CONFIGURATION, "")))
    tables = importlib.import_module(f"stepscope.tables.{given.study}")
    with files.or_one_line(given.out):
        if given.control:
            tables.write(found, given.out, between_cells(given.control))
        else:
            tables.write(found, given.out)


if __name__ == "__main__":
    main()
