"""What filled the memory, when and made by which line: the tables of a PyTorch memory snapshot, without a browser.

Works on what torch.cuda.memory._dump_snapshot writes, of any program; torch need not be installed, and nothing in the
file is run. Prints a summary and writes a CSV a table. A known.json beside the snapshot, as StepScope's memory study
writes it, gives phases, parts of the model and categories; without it they come from annotations and stacks.
"""

import argparse
import sys
from pathlib import Path

from stepscope import files
from stepscope.snapshot import SnapshotError, analysis, summary


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("snapshot", type=Path, metavar="SNAPSHOT", help="snapshot.pickle or .pickle.gz")
    flags.add_argument("--known", type=Path, metavar="FILE", help="side file (default: known.json beside the snapshot)")
    flags.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the tables")
    given = flags.parse_args()
    try:
        tables = analysis.analyse_file(given.snapshot, given.known)
    except SnapshotError as error:
        sys.exit(f"error: {error}")
    with files.or_one_line(given.out):
        analysis.write(tables, given.out)
    sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show every name
    print(summary.text(tables), end="")


if __name__ == "__main__":
    main()
