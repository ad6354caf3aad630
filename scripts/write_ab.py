"""Write the page of what measure_ab.py measured: ab.csv, ab.md and index.html; prints the table."""

import argparse
import csv
import io
import sys
from pathlib import Path

from stepscope.files import or_one_line, write_whole
from stepscope.report import turns
from stepscope.turns import TurnsError

TEMPLATES = Path(__file__).resolve().parents[1] / "report"


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("folder", type=Path, metavar="DIR", help="folder that measure_ab.py wrote")
    flags.add_argument("--margin", type=float, default=1.0, metavar="%", help="difference that counts (default: 1 %%)")
    given = flags.parse_args()
    if not 0 < given.margin < 100:
        flags.error(f"--margin {given.margin}: use a number of percent between 0 and 100")
    try:
        found = turns.read(given.folder, 1 + given.margin / 100)
    except TurnsError as error:
        sys.exit(f"error: {error}")
    text = io.StringIO()
    rows = turns.rows(found)
    table = csv.DictWriter(text, rows[0] if rows else [], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    with or_one_line(given.folder):
        write_whole(
            {
                given.folder / "ab.csv": text.getvalue().encode(),
                given.folder / "ab.md": turns.as_markdown(found).encode(),
                given.folder / "index.html": turns.as_html(found, TEMPLATES).encode(),
            }
        )
    print(turns.as_text(found))
    print(f"The page: {(given.folder / 'index.html').resolve()}")


if __name__ == "__main__":
    main()
