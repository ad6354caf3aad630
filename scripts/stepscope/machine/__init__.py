"""The machine at hand and the machines of a run: identity, GPUs, cores, locks, labels, Slurm.
Standard library only."""

from pathlib import Path


def told(path: Path) -> str:
    """What a file of the kernel or of a driver says; "" where it cannot be read."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
