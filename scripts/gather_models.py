"""Put together what the cells' records say of people's own models: models.csv, a row a model, machine and context."""

import argparse
import sys
from pathlib import Path

from stepscope import files
from stepscope.tables import cells, models


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--plan", type=Path, required=True, help="the plan that the workflow wrote")
    flags.add_argument("--results", type=Path, default=Path("results"), help="folder of the cells")
    flags.add_argument("--out", type=Path, required=True, help="folder of the tables")
    given = flags.parse_args()
    try:
        plan = models.own_cells(cells.read_plan(given.plan))
    except ValueError as error:
        sys.exit(f"error: {error}")
    found = [cell for study in plan["studies"] for cell in cells.read_cells(plan, study, given.results, partial=True)]
    with files.or_one_line(given.out):
        models.write(found, given.out)


if __name__ == "__main__":
    main()
