"""The files of published figures that a report is set beside: the project's own, and those of the
configuration.

Standard library only: the workflow's rules import it.
"""

import os
from pathlib import Path

from . import ConfigError


def published_files(config: dict, own: Path) -> list[str]:
    """The project's files in the folder `own`, then those of the key `published`; paths from the
    working directory.

    Raises ConfigError for one that is not there. What else may be wrong with a file is seen when it
    is read for the tables.
    """
    given = config["published"]
    for place, path in enumerate(given):
        key = f"config key published[{place}]"
        if not Path(path).is_file():
            raise ConfigError(f"{key}: there is no file {path!r}; give a path from {Path.cwd()}")
    return [*sorted(map(os.path.relpath, own.glob("*.csv"))), *given]
