"""Results as one file: make it, check it, list what it holds, and unpack a machine's cells out of it.

    python scripts/archive.py make results --out mine.zip
    python scripts/archive.py check theirs.zip
    python scripts/archive.py list theirs.zip
    python scripts/archive.py unpack theirs.zip --label theirs --machine nvidia-h100

`snakemake archive` makes one too, once all is measured. Reading runs nothing that an archive holds and writes nowhere
but into the folder that it is unpacked to; what is damaged, too large, or made to do harm is refused in one line.
"""

import argparse
import json
import signal
import sys
from collections import Counter
from pathlib import Path

from stepscope.archive import DEFAULT, ArchiveError, Limits, manifest_of, opened, unpack_label
from stepscope.archive_making import make, total_bytes


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = flags.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make", help="pack a results folder")
    making.add_argument("results", type=Path, nargs="?", default=Path("results"), help="the folder (default: results)")
    making.add_argument("--out", type=Path, required=True, metavar="FILE", help="the archive, a ZIP file")
    making.add_argument("--traces", action="store_true", help="with the traces and snapshots, which are large")
    making.add_argument("--configuration", type=Path, metavar="FILE", help="JSON file that goes with it")
    for name, text in (("check", "read all of it"), ("list", "print the files"), ("unpack", "take cells out of it")):
        command = commands.add_parser(name, help=text)
        command.add_argument("archive", type=Path, metavar="FILE")
        add_limits(command)
        if name == "unpack":
            command.add_argument(
                "--label", required=True, help="name of the machine here: the cells come to RESULTS/LABEL"
            )
            command.add_argument("--machine", metavar="NAME", help="its label in the archive, if there are several")
            command.add_argument("--results", type=Path, default=Path("results"), help="default: results")
    given = flags.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a list that is cut by `head` ends quietly
    try:
        {"make": made, "check": checked, "list": listed, "unpack": unpacked}[given.command](given)
    except ArchiveError as error:
        sys.exit(f"error: {error}")


def add_limits(flags: argparse.ArgumentParser) -> None:
    """--most-files, --most-gigabytes and --most-ratio."""
    flags.add_argument("--most-files", type=int, default=DEFAULT.files, metavar="N", help=f"default: {DEFAULT.files}")
    flags.add_argument(
        "--most-gigabytes",
        type=float,
        default=DEFAULT.gigabytes,
        metavar="GB",
        help=f"unpacked; default: {DEFAULT.gigabytes:g}",
    )
    flags.add_argument(
        "--most-ratio",
        type=float,
        default=DEFAULT.ratio,
        metavar="TIMES",
        help=f"bytes unpacked over bytes packed; default: {DEFAULT.ratio:g}",
    )


def limits(given: argparse.Namespace) -> Limits:
    """The limits that the flags give."""
    return Limits(given.most_files, given.most_gigabytes, given.most_ratio)


def made(given: argparse.Namespace) -> None:
    """Write the archive, and say how large it is."""
    configuration = None
    if given.configuration:
        try:
            configuration = json.loads(given.configuration.read_bytes())
        except (OSError, ValueError) as error:
            raise ArchiveError(f"{given.configuration}: no JSON file ({error})") from None
    describe(given.out, make(given.out, given.results, configuration, given.traces))


def checked(given: argparse.Namespace) -> None:
    """Read all of an archive."""
    with opened(given.archive, limits(given)):
        describe(given.archive, manifest_of(given.archive, limits(given)))


def describe(path: Path, manifest: dict) -> None:
    """One line for the archive, and one for each machine."""
    files, size = manifest["files"], path.stat().st_size
    print(f"{path}: {len(files)} files, {total_bytes(files) / 1e6:.1f} MB, packed {size / 1e6:.1f} MB: whole")
    records = [Path(each["path"]) for each in files if each["path"].endswith("/record.json")]
    for label, cells in sorted(Counter(record.parts[1] for record in records).items()):
        print(f"  {label}: {cells} cells")


def listed(given: argparse.Namespace) -> None:
    """Size, digest and name of each file, by the manifest."""
    for each in manifest_of(given.archive, limits(given))["files"]:
        print(f"{each['bytes']:>12} {each['sha256'][:16]:<16} {each['path']}")


def unpacked(given: argparse.Namespace) -> None:
    """A machine's cells as RESULTS/LABEL."""
    target = given.results / given.label
    new = unpack_label(given.archive, given.results, given.label, given.machine, limits(given))
    print(f"{target}: {'unpacked' if new else 'was there already'}")
    print(f"config.yaml takes it as it is: hardware: {{{given.label}: {{measure: false}}}}")


if __name__ == "__main__":
    main()
