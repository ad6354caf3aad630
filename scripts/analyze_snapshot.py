"""What filled the memory, when and made by which line: the tables of a PyTorch memory snapshot, without a browser.

Works on what torch.cuda.memory._dump_snapshot writes, of any program; torch need not be installed, and nothing in the
file is run. Prints a summary, and writes it
as summary.txt and a CSV a table. A known.json beside the snapshot, as StepScope's memory study
writes it, gives phases, parts of the model and categories; without it they come from annotations and stacks.
"""

import argparse
import sys
from pathlib import Path

from stepscope.recordings import files, limits
from stepscope.recordings.flags import add_limits, add_out
from stepscope.recordings.text import plain
from stepscope.snapshot import SnapshotError, analysis, summary


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


if __name__ == "__main__":
    main()
