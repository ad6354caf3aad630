"""What filled the memory, when and made by which line: the tables of a PyTorch memory snapshot, without a browser.

Works on what torch.cuda.memory._dump_snapshot writes, of any program; torch need not be installed, and nothing in the
file is run. Prints a summary, and writes it as summary.txt, a CSV a table and, where matplotlib is there, memory.svg
and .png: what is active over time. A known.json beside the snapshot, as StepScope's memory study writes it, gives
phases, parts of the model and categories; without it they come from annotations and stacks.
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
        most, named = limits.limits_for(there, given.most_seconds, given.most_gigabytes), str(given.snapshot)
        tables = limits.within(most, named, lambda: analysis.analyse_any(given.snapshot, given.known), (SnapshotError,))
        text = summary.text(tables)
        write_tables(tables, given.out)
        files.write_whole({given.out / "summary.txt": [text]})
        if given.html or importlib.util.find_spec("matplotlib"):
            pictures, page = limits.within(most, named, lambda: drawn(tables, given), ())
            if pictures:
                files.write_whole({given.out / f"memory.{suffix}": pictures[suffix] for suffix in ("svg", "png")})
            if given.html:
                files.write_whole({given.html: [page]})
    except (SnapshotError, limits.LimitError) as error:
        sys.exit(f"error: {plain(error, 1000)}")
    except OSError as error:
        sys.exit(plain(f"error: {files.complaint(error, given.out)}", 1000))
    show(text)


def drawn(tables: dict[str, pd.DataFrame], given: argparse.Namespace) -> tuple[dict[str, bytes] | None, str]:
    """(the memory over time by suffix, `svg` and `png` among them, the page as HTML if it is wanted)."""
    from stepscope.report.anybody import pictures  # needs what the report needs, and seconds to load

    page = ""
    if given.html:
        from stepscope.report.anybody import page as pages

        page = pages.of_snapshot(tables, given.snapshot.name, TEMPLATES)
    return pictures.memory_over_time(tables), page


if __name__ == "__main__":
    main()
