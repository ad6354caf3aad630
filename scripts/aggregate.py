"""Make all tables from what the cells' records, samples and analyses hold: results/tables/*.csv
(docs/tables.md).

A cell that is not measured has a row in `cells` that says so. One whose files are damaged, or of
another spec than the plan's, is refused by name, with the command that measures it again; in the
tables it counts as missing.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path

from stepscope import files
from stepscope.recordings.text import show
from stepscope.report import tables_page
from stepscope.results import cells, derived, published, writing


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = flags.add_mutually_exclusive_group(required=True)
    what.add_argument("--plan", type=Path, help="the plan that the workflow wrote")
    flags.add_argument(
        "--plan-sha256", metavar="DIGEST", help="what the plan must be; another one is refused"
    )
    what.add_argument(
        "--describe",
        action="store_true",
        help="print the page that says what every column is, and end",
    )
    flags.add_argument(
        "--results", type=Path, default=Path("results"), help="folder of the cells (%(default)s)"
    )
    flags.add_argument(
        "--out",
        type=Path,
        default=Path("results/tables"),
        help="folder of the tables (%(default)s)",
    )
    ours = Path(__file__).resolve().parents[1] / "report/published"
    flags.add_argument(
        "--published",
        type=Path,
        nargs="*",
        default=sorted(ours.glob("*.csv")),
        metavar="FILE",
        help="published figures (those in report/published)",
    )
    given = flags.parse_args()
    if given.describe:
        show(tables_page.page())
        return
    try:
        if (
            given.plan_sha256
            and given.plan_sha256 != hashlib.sha256(given.plan.read_bytes()).hexdigest()
        ):
            sys.exit(
                f"error: {given.plan} is not what is planned now: the configuration, or a file of"
                " your own model or step, has changed since; delete it and run again"
            )
        found, samples, refused = cells.read(given.plan, given.results)
        refused |= derived.impossible(found, samples)
        found, samples = cells.without(found, samples, refused)
        tables, warnings = writing.tables(found, samples, given.published)
        _say(refused, given.plan)
        for study in cells.untaken(found, tables):
            sys.exit(
                f"error: study {study}: no table takes its cells, so no page would show them; set"
                " samples_are_series in its row of config/studies.py, or have results/writing.py"
                " make a table of its records"
            )
    except (cells.PlanError, published.PublishedError) as error:
        sys.exit(f"error: {error}")
    print(*(f"WARNING: {warning}" for warning in warnings), sep="\n", end="\n" * bool(warnings))
    with files.or_one_line(given.out):
        writing.write(given.out, tables)
    states = [cell.status()[0] for cell in found]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    print(f"{len(found)} cells ({counts}): {len(tables)} tables in {given.out}")


def _say(problems: dict[str, str], plan: Path) -> None:
    """Say which cells cannot be used, why, and how each is measured again."""
    how = {label: one["how"] for label, one in json.loads(plan.read_text())["machines"].items()}
    measured = [name for name in problems if how.get(name.split("/")[0]) != "there"]
    for name, why in problems.items():
        print(f"WARNING: not used: results/{name}: {why}", file=sys.stderr)
    if len(measured) < len(problems):
        print(
            "Nothing is measured for measure: false; take the grids that those results have, or"
            " copy them anew",
            file=sys.stderr,
        )
    if measured:
        command = os.environ.get("STEPSCOPE_COMMAND", "snakemake --cores 1 report")
        again = " ".join(f"results/{name}/record.json" for name in measured)
        print(f"To measure exactly these again: {command} --forcerun {again}", file=sys.stderr)


if __name__ == "__main__":
    main()
