"""Put published figures together: checked CSV files become published.csv, which the report sets beside its own."""

import argparse
import sys
from pathlib import Path

from stepscope.tables.published import PublishedError, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="a file of published figures")
    parser.add_argument("--out", required=True, type=Path, help="folder of the tables")
    given = parser.parse_args()
    try:
        write(given.files, given.out)
    except PublishedError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
