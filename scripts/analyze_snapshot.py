"""What filled the memory, when and made by which line: the tables of a PyTorch memory snapshot, without a browser.

Works on what torch.cuda.memory._dump_snapshot writes, of any program; torch need not be installed, and nothing in the
file is run. Prints a summary, and writes it as summary.txt, a CSV a table and, where matplotlib is there, memory.svg
and .png: what is active over time. A known.json beside the snapshot, as StepScope's memory study writes it, gives
phases, parts of the model and categories; without it they come from annotations and stacks.
"""

import argparse
import sys
from pathlib import Path

from stepscope.recordings import files, limits
from stepscope.recordings.flags import add_limits, add_out
from stepscope.recordings.text import plain
from stepscope.snapshot import SnapshotError, analysis, summary

TEMPLATES = Path(__file__).resolve().parents[1] / "report"


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("snapshot", type=Path, metavar="SNAPSHOT", help="snapshot.pickle or .pickle.gz")
    flags.add_argument("--known", type=Path, metavar="FILE", help="side file (default: known.json beside the snapshot)")
    add_out(flags)
    add_limits(flags)
    given = flags.parse_args()
    try:
        there = [given.snapshot] if given.snapshot.is_file() else []
        most = limits.limits_for(there, given.most_seconds, given.most_gigabytes)
        tables = limits.within(
            most, str(given.snapshot), lambda: analysis.analyse_any(given.snapshot, given.known), (SnapshotError,)
        )
        text = summary.text(tables)
        files.write_tables(tables, given.out)
        files.write_text(text, given.out / "summary.txt")
        draw(tables, given)
    except (SnapshotError, limits.LimitError) as error:
        sys.exit(f"error: {plain(error, 1000)}")
    except OSError as error:
        sys.exit(
            plain(
                f"error: {error.filename or given.out}: cannot be written ({error.strerror}); give another --out", 1000
            )
        )
    sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show every name
    print(text, end="")


def draw(tables: dict, given: argparse.Namespace) -> None:
    """Write the picture, if there is what draws it, and the page, if it is wanted."""
    try:
        from stepscope.report.anybody import page, pictures
    except ModuleNotFoundError:
        if given.html:
            raise
        return
    pictures.memory_over_time(tables, given.out)
    if given.html:
        files.write_text(page.of_snapshot(tables, given.snapshot.name, TEMPLATES), given.html)


if __name__ == "__main__":
    main()
