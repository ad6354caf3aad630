"""From Nsight Systems' own file to SQLite, by its own exporter. Standard library only:
profile_step.py uses it too."""

import shutil
import subprocess
from pathlib import Path

from . import TraceError


def export(report: Path, path: Path) -> None:
    """Write the SQLite export of a .nsys-rep. Raises TraceError with one line where that fails."""
    program = shutil.which("nsys")
    if program is None:
        raise TraceError(
            f"{report}: reading it needs nsys (Nsight Systems) on the PATH; or export it where nsys"
            " is, with `nsys export --type sqlite`, and give the .sqlite"
        )
    command = [
        program,
        "export",
        "--type",
        "sqlite",
        "--include-json",  # Python's backtraces
        "true",
        "--force-overwrite",
        "true",
        "--output",
        str(path),
        str(report),
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode or not path.is_file():
        said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise TraceError(
            f"{report}: nsys export failed: {said[-1] if said else f'exit code {done.returncode}'}"
        )
