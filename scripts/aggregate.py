"""Put the cells together: results/…/record.json and samples.csv become the tables of every study.

Refuses, by name, a cell that is damaged or that was measured by another spec or on another type of machine, and prints
the command that measures just those again.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path

from stepscope import files
from stepscope.config.studies import STUDIES
from stepscope.tables import cells, models, published
from stepscope.tables.control import between_cells


def main() -> None:
    given = arguments()
    try:
        plan = cells.read_plan(given.plan)
        found = {study.name: cells.read_cells(plan, study.name, given.results, given.partial) for study in STUDIES}
        with files.or_one_line(given.out):
            write(found, plan, given)
    except (ValueError, published.PublishedError) as error:
        sys.exit(f"error: {error}")
    except cells.Refusal as refusal:
        for name, problem in refusal.problems.items():
            print(f"error: results/{name}: {problem}", file=sys.stderr)
        command = os.environ.get("STEPSCOPE_COMMAND", "snakemake --cores 1 report")
        sys.exit(cells.remedy(refusal.problems, plan["machines"], command))


def arguments() -> argparse.Namespace:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--plan", type=Path, required=True, help="the plan that the workflow wrote")
    flags.add_argument("--results", type=Path, default=Path("results"), help="folder of the cells")
    flags.add_argument("--published", type=Path, nargs="*", default=[], metavar="FILE", help="published figures")
    flags.add_argument("--partial", action="store_true", help="give cells without a usable result a row that says so")
    flags.add_argument("--out", type=Path, required=True, help="folder of the tables")
    return flags.parse_args()


def write(found: dict[str, list], plan: dict, given: argparse.Namespace) -> None:
    """Write the tables. Those of the timing study come first: its control widens the intervals of others."""
    for study in STUDIES:
        tables = importlib.import_module(f"stepscope.tables.{study.name}")
        control = [between_cells(given.out / "timing.csv")] if study.uses_control else []
        tables.write(found[study.name], given.out, *control)
    own = models.own_cells(plan)["studies"]
    names = {entry["cell"] for part in own.values() for entry in part["cells"]}
    models.write([cell for each in found.values() for cell in each if cell.name in names], given.out)
    published.write(given.published, given.out)


if __name__ == "__main__":
    main()
