"""The files of published figures that a report is set beside: the project's own, and those of the
configuration.

Standard library only: the workflow's rules import it.
"""

import csv
import os
from pathlib import Path

from stepscope.config import ConfigError


def published_files(config: dict, own: Path) -> list[str]:
    """The project's files in the folder `own`, then those of the key `published`; paths from the
    working directory.

    Raises ConfigError for one that is not there, or has an impossible number. What else may be
    wrong with a file is seen when it is read for the tables.
    """
    given = config["published"]
    for place, path in enumerate(given):
        key = f"config key published[{place}]"
        if not Path(path).is_file():
            raise ConfigError(f"{key}: there is no file {path!r}; give a path from {Path.cwd()}")
        try:
            values = _values(Path(path))
        except (OSError, csv.Error) as error:
            raise ConfigError(f"{key}: {path}: no CSV file: {error}; correct it") from None
        if wrong := next(filter(_is_impossible, values), None):
            raise ConfigError(
                f"{key}: {path}: value {wrong} cannot have been measured; correct it, or remove its"
                " row"
            )
    return [*sorted(map(os.path.relpath, own.glob("*.csv"))), *given]


def _values(path: Path) -> list[str]:
    """The texts of the column `value`."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        return [row.get("value") or "" for row in csv.DictReader(lines)]


def _is_impossible(text: str) -> bool:
    try:
        return not 0 <= float(text) < 1e18  # operations a second of the fastest computers
    except ValueError:  # empty, where nothing could be measured
        return False
