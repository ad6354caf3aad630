"""Machines whose results come from an archive: unpacked when the run is planned, used as copied ones are.

Standard library only: the workflow's rules import it.
"""

from pathlib import Path

from stepscope.archive import ArchiveError, unpack_label
from stepscope.plan.config import ConfigError


def unpack(hardware: dict[str, dict], results: Path = Path("results")) -> None:
    """Unpack what the entries of the key `hardware` name as their archive to results/LABEL, unless it is there.

    Raises ConfigError, in one line, for an archive that is refused, a label that is taken, and keys that do not go
    together.
    """
    for label, entry in hardware.items():
        if "archive" not in entry:
            if "machine" in entry:
                raise ConfigError(
                    f"config key hardware.{label}.machine: it is a machine of an archive; give archive too"
                )
            continue
        if entry.get("measure"):
            raise ConfigError(
                f"config key hardware.{label}: results of an archive are used as they are; remove measure or archive"
            )
        try:
            unpack_label(Path(entry["archive"]), results, label, entry.get("machine"))
        except ArchiveError as error:
            raise ConfigError(f"config key hardware.{label}.archive: {error}") from None
