"""Machines whose results come from an archive: unpacked when the run is planned, used as copied ones are.

Standard library only: the workflow's rules import it.
"""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stepscope.archive import ArchiveError, unpack_label
from stepscope.config.config import ConfigError


def unpack(hardware: dict[str, dict], results: Path = Path("results")) -> Path:
    """Unpack what the entries of the key `hardware` name as their archive to results/LABEL, unless it is there.

    Returns `results`. Raises ConfigError, in one line, for an archive that is refused, a label that is taken, and keys
    that do not go together.
    """
    for _ in _unpacked(hardware, results):
        pass
    return results


def looked_at(hardware: dict[str, dict], results: Path = Path("results")) -> Path:
    """A folder that looks as `results` would after unpack(), for who only looks; `results` itself without archives.

    It goes away with this process, and `results` stays as it is. Raises ConfigError as unpack() does.
    """
    archived = {label for label, entry in hardware.items() if "archive" in entry}
    if not archived:
        return unpack(hardware, results)
    try:
        view = Path(tempfile.mkdtemp(prefix="stepscope-plan-"))
        atexit.register(shutil.rmtree, view, ignore_errors=True)
        for there in results.iterdir() if results.is_dir() else ():
            if there.name not in archived:
                (view / there.name).symlink_to(there.resolve())
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"no room to look at archives in {tempfile.gettempdir()}: {error}; set TMPDIR") from None
    for label, is_new in _unpacked(hardware, results, view):
        if not is_new:
            (view / label).symlink_to((results / label).resolve())
    return view


def _unpacked(hardware: dict[str, dict], results: Path, into: Path | None = None) -> Iterator[tuple[str, bool]]:
    """(label, whether it had to be unpacked) of each archive, once that is done."""
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
            yield label, unpack_label(Path(entry["archive"]), results, label, entry.get("machine"), into=into)
        except ArchiveError as error:
            raise ConfigError(f"config key hardware.{label}.archive: {error}") from None
