"""Flags that the programs for anybody's files share."""

import argparse
from pathlib import Path


def add_limits(flags: argparse.ArgumentParser) -> None:
    """--most-seconds and --most-gigabytes."""
    flags.add_argument(
        "--most-seconds",
        type=positive,
        metavar="SECONDS",
        help=(
            "processor time that reading may take (default: 10 s, and 0.3 s for each MB of the"
            " file)"
        ),
    )
    flags.add_argument(
        "--most-gigabytes",
        type=positive,
        metavar="GB",
        help="memory that reading may take (default: 2 GB, and 16 times the file's size)",
    )


def add_out(flags: argparse.ArgumentParser) -> None:
    """--out and --html."""
    flags.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for the tables and the summary",
    )
    flags.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help=(
            "also write one page with warnings, a picture and the tables, which needs no network "
            "(needs the report's environment)"
        ),
    )


def positive(text: str) -> float:
    """A number above 0. Raises argparse's error for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return value
