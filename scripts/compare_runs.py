"""Two results folders beside each other: what has become faster or slower, and what changed between them.

BASELINE and RESULTS are folders `results/`, or folders that hold one. Cells are matched by name and judged as
everywhere in the report: between processes, beyond what unchanged cells of either run differ by, with false discoveries
controlled. Nothing of a folder is run.

Exit code: 0, nothing is slower; 1, something is slower, or runs out of memory now; 2, there is nothing to compare;
3, with --strict, something is unclear or cannot be compared.
"""

import argparse
import sys
from pathlib import Path

from stepscope import files
from stepscope.recordings.text import plain, show
from stepscope.report.runs import page, words
from stepscope.report.runs.changes import changes
from stepscope.report.runs.judging import Compared, common_cells, compared
from stepscope.report.runs.reading import Results, ResultsError, read

TEMPLATES = Path(__file__).resolve().parents[1] / "report"
BAD_INPUT = 2


def main() -> None:
    given = arguments()
    try:
        before, after = (results_in(path) for path in (given.baseline, given.results))
        found = compared(before, after, dict(given.paired))
        sentences = written(found, given)
    except ResultsError as error:
        for name in page.FILES if given.out else ():  # an earlier comparison's would pass for this one's
            (given.out / name).unlink(missing_ok=True)
        print(f"error: {plain(error, 1000)}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except OSError as error:
        print(plain(f"error: {files.complaint(error, given.out)}", 1000), file=sys.stderr)
        sys.exit(BAD_INPUT)
    show("\n".join(sentences))
    sys.exit(found.exit_code(given.strict))


def arguments() -> argparse.Namespace:
    """The flags; `paired` are pairs of labels."""
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("baseline", type=Path, metavar="BASELINE", help="what to compare with: a folder")
    flags.add_argument(
        "results", type=Path, nargs="?", default=Path("results"), metavar="RESULTS", help="default: %(default)s"
    )
    flags.add_argument("--out", type=Path, metavar="DIR", help="write index.html, compare.md and compare.csv there")
    flags.add_argument("--strict", action="store_true", help="exit code 3 where something is unclear")
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


def results_in(path: Path) -> Results:
    """What a folder holds."""
    return read(path / "results" if (path / "results").is_dir() else path, str(path))


def written(found: Compared, given: argparse.Namespace) -> list[str]:
    """Write the pages, if a folder is given for them; returns the summary."""
    if given.out is None:
        common = common_cells(found.before, found.after, found.machines)
        return words.summary(found, changes(found.before, found.after, common))
    command = given.command or f"python scripts/compare_runs.py {given.baseline} {given.results} --out {given.out}"
    return page.write(found, given.out, TEMPLATES, command)


if __name__ == "__main__":
    main()
