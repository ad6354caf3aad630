"""What filled the memory, when and made by which line: the tables of a PyTorch memory snapshot,
without a browser.

Works on what torch.cuda.memory._dump_snapshot writes, of any program; torch need not be installed,
and nothing in the file is run. Prints a summary, and writes it as summary.md, a CSV a table and,
where matplotlib is there, memory.svg: what is active over time. A known.json beside the snapshot,
as StepScope's memory study writes it, gives phases, parts of the model and categories; without it
they come from annotations and stacks. Of two snapshots the first one is compared with the second:
what grew at the peak, by category and by line of code.
"""

import argparse
import importlib.util
from pathlib import Path

from stepscope.recordings import program
from stepscope.recordings.flags import add_limits, add_out
from stepscope.recordings.program import SIDES, TEMPLATES, Contents, Tables
from stepscope.snapshot import SnapshotError, analysis, comparison, summary


def main() -> None:
    given = arguments()
    program.run(
        given,
        given.snapshots,
        given.snapshots,
        lambda: analysed(given),
        lambda tables: drawn(tables, given),
        SnapshotError,
    )


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


def analysed(given: argparse.Namespace) -> tuple[dict[str, Tables], str]:
    """(folder below --out → its tables, the summary)."""
    found = [analysis.analyse_file(path, given.known) for path in given.snapshots]
    named = [path.name for path in given.snapshots]
    if len(found) == 1:
        return {"": found[0]}, summary.markdown(found[0], f"Snapshot {named[0]}")
    both = {"compared": comparison.compared(*found)}
    title = f"{named[0]} (before) and {named[1]} (after)"
    return {"": both, **dict(zip(SIDES, found, strict=True))}, summary.markdown(both, title)


def drawn(tables: Tables, given: argparse.Namespace) -> Contents:
    """The memory over time as SVG where the library is there, and the page as HTML if it is
    wanted."""
    if not given.html and (len(given.snapshots) > 1 or not importlib.util.find_spec("matplotlib")):
        return {}
    from stepscope.report import recordings  # needs what the report needs, and seconds to load

    title = " and ".join(path.name for path in given.snapshots)
    picture = recordings.memory_picture(tables, title)
    made: Contents = {given.out / "memory.svg": picture} if picture else {}
    if given.html:
        made[given.html] = [recordings.of_snapshot(tables, title, TEMPLATES)]
    return made


if __name__ == "__main__":
    main()
