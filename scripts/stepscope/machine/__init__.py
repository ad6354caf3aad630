"""The machine at hand and the machines of a run: identity, GPUs, cores, locks, labels, Slurm.
Standard library only."""

import subprocess
from pathlib import Path


def told(path: Path) -> str:
    """What a file of the kernel or of a driver says; "" where it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def answered(*command: str) -> str | None:
    """What a program prints; None if it fails, is not there, or takes longer than a minute."""
    try:
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout if ended.returncode == 0 else None
