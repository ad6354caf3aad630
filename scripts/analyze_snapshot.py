"""What filled the memory, when and made by which line: the tables of a PyTorch memory snapshot,
without a browser.

Works on what torch.cuda.memory._dump_snapshot writes, of any program; torch need not be installed,
and nothing in the file is run. Prints a summary, and writes it as summary.txt, a CSV a table and,
where matplotlib is there, memory.svg: what is active over time. A known.json beside the snapshot,
as StepScope's memory study writes it, gives phases, parts of the model and categories; without it
they come from annotations and stacks. Of two snapshots the first one is compared with the second:
what grew at the peak, by category and by line of code.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

import pandas as pd
from stepscope import files
from stepscope.recordings import limits
from stepscope.recordings.flags import add_limits, add_out
from stepscope.recordings.tables import write_tables
from stepscope.recordings.text import plain, show
from stepscope.snapshot import SnapshotError, analysis, comparison, summary

TEMPLATES = Path(__file__).resolve().parents[1] / "report"
SIDES = ("before", "after")


def main() -> None:
    given = arguments()
    try:
        found = [tables_of(path, given) for path in given.snapshots]
        if len(found) == 1:
            made, text = {"": found[0]}, summary.text(found[0])
        else:
            both = comparison.compared(*found)
            made, text = (
                {"": {"compared": both}, **dict(zip(SIDES, found, strict=True))},
                summary.compared(both),
            )
        for folder, tables in made.items():
            write_tables(tables, given.out / folder)
        files.write_whole({given.out / "summary.txt": [text]})
        if given.html or (len(found) == 1 and importlib.util.find_spec("matplotlib")):
            most = most_of(given.snapshots[0], given)
            picture, page = limits.within(
                most, str(given.snapshots[0]), lambda: drawn(made[""], given), ()
            )
            if picture:
                files.write_whole({given.out / "memory.svg": picture})
            if given.html:
                files.write_whole({given.html: [page]})
    except (SnapshotError, limits.LimitError) as error:
        sys.exit(f"error: {plain(error, 1000)}")
    except OSError as error:
        sys.exit(plain(f"error: {files.complaint(error, given.out)}", 1000))
    show(text)


def arguments() -> argparse.Namespace:
    """The flags."""
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument(
        "snapshots",
        type=Path,
        nargs="+",
        metavar="SNAPSHOT",
        help="snapshot.pickle or .pickle.gz; one or two",
    )
    flags.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        help="side file (default: known.json beside the snapshot)",
    )
    add_out(flags)
    add_limits(flags)
    given = flags.parse_args()
    if len(given.snapshots) > 2:
        flags.error(f"{len(given.snapshots)} snapshots are given; give one, or two to compare")
    if len(given.snapshots) > 1 and given.known:
        flags.error("--known is for one snapshot; omit it to compare two")
    return given


def most_of(path: Path, given: argparse.Namespace) -> limits.Limits:
    """The limits for reading a file; a missing one is told by what reads it."""
    return limits.limits_for(
        [path] if path.is_file() else [], given.most_seconds, given.most_gigabytes
    )


def tables_of(path: Path, given: argparse.Namespace) -> dict[str, pd.DataFrame]:
    """The tables of one snapshot, made within the limits."""
    most = most_of(path, given)
    return limits.within(
        most, str(path), lambda: analysis.analyse_file(path, given.known), (SnapshotError,)
    )


def drawn(tables: dict[str, pd.DataFrame], given: argparse.Namespace) -> tuple[bytes | None, str]:
    """(the memory over time as SVG, the page as HTML if it is wanted)."""
    from stepscope.report import recordings  # needs what the report needs, and seconds to load

    title = " and ".join(path.name for path in given.snapshots)
    page = recordings.of_snapshot(tables, title, TEMPLATES) if given.html else ""
    return recordings.memory_picture(tables, title), page


if __name__ == "__main__":
    main()
