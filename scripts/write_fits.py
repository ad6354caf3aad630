"""Writes the page fits.html: whether a training step fits a card, for any model, card and setup."""

from stepscope.machine.process import die_with_starter

die_with_starter()

import argparse
from pathlib import Path

from stepscope.files import or_one_line, write_whole
from stepscope.report.fits import document


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--templates", type=Path, required=True, help="the folder report/")
    flags.add_argument("--out", type=Path, required=True, metavar="FILE", help="the page")
    given = flags.parse_args()
    with or_one_line(given.out):
        write_whole({given.out: [document(given.templates)]})


if __name__ == "__main__":
    main()
