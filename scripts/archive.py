"""Pack the results of a machine into one zip file: records, samples and analyses of its cells,
tables and pages.

To set them beside your own, unzip it as results/NAME and give NAME `measure: false` under the
config key `hardware`.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import argparse
from pathlib import Path

from stepscope.archive import pack
from stepscope.files import or_one_line


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("results", type=Path, help="the results folder")
    flags.add_argument("label", help="the machine's label, a folder in it")
    flags.add_argument("--out", type=Path, required=True, metavar="FILE", help="the zip file")
    given = flags.parse_args()
    with or_one_line(given.out):
        print(f"{pack(given.results, given.out, given.label)} files in {given.out}")


if __name__ == "__main__":
    main()
