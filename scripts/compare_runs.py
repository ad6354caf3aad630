"""Two results folders beside each other: what has become more or less, and what changed between
them.

BASELINE and RESULTS are folders `results/`, folders that hold one, or zip files of one; where there
are no tables they are made of the cells. Judged is what repeats on any host: times without the
host, launches, and bytes. Times by the clock are listed without a verdict: compare two variants in
turns instead (scripts/ab.py).

Exit code: 0, nothing is worse; 1, something is; 2, there is nothing to compare.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import argparse
import sys
import tempfile
from pathlib import Path

from stepscope.files import or_one_line
from stepscope.recordings.text import plain, show
from stepscope.report import compare

TEMPLATES = Path(__file__).resolve().parents[1] / "report"
BAD_INPUT = 2


def main() -> None:
    given = arguments()
    typed = f"python scripts/compare_runs.py {given.baseline} {given.results} --out {given.out}"
    with tempfile.TemporaryDirectory() as scratch, or_one_line(given.out):
        sides = (given.baseline, given.results, dict(given.paired))
        try:
            found = compare.compared(*sides, Path(scratch))
        except compare.CompareError as error:
            # An earlier comparison's files would pass for this one's.
            for name in compare.FILES if given.out else ():
                (given.out / name).unlink(missing_ok=True)
            print(f"error: {plain(error, 1000)}", file=sys.stderr)
            sys.exit(BAD_INPUT)
        if given.out:
            show(compare.write(found, TEMPLATES, given.out, given.command or typed))
        else:
            show(compare.summary(found))
    sys.exit(bool(found.series["worse"]))


def arguments() -> argparse.Namespace:
    """The flags; `paired` are pairs of labels."""
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument(
        "baseline", type=Path, metavar="BASELINE", help="what to compare with: a folder"
    )
    flags.add_argument(
        "results",
        type=Path,
        nargs="?",
        default=Path("results"),
        metavar="RESULTS",
        help="default: %(default)s",
    )
    flags.add_argument(
        "--out", type=Path, metavar="DIR", help="write index.html, compare.md and compare.csv there"
    )
    flags.add_argument(
        "--paired",
        type=labels,
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="a machine's label in the baseline and in the results, where they differ; repeat it",
    )
    flags.add_argument("--command", help="what a person types to get this, for the page")
    return flags.parse_args()


def labels(text: str) -> tuple[str, str]:
    """`OLD=NEW` as two labels."""
    old, _, new = text.partition("=")
    if not (old and new):
        raise argparse.ArgumentTypeError(f"{text!r} is not OLD=NEW, two labels of machines")
    return old, new


if __name__ == "__main__":
    main()
