"""What a cell costs as a Slurm job beside the cell itself: alone, as a task of an array, as a member of a group.

python benchmarks/slurm_overhead.py [--cells 8]

Runs a project of trivial cells on one node of a throw-away Slurm (tests/slurm/lab.py; needs root) in each way, and
without Slurm; prints the seconds from the end of one cell to the end of the next, which are overhead alone, and their
ratio to StepScope's smallest real cell. Then the time that Snakemake needs to read StepScope's Snakefile against the
trivial one, because every Slurm job reads it twice.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/slurm"))

from lab import Lab, cannot_run  # noqa: E402 - found through the line above

SNAKEFILE = """\
rule all:
    input: [f"{{way}}/{{i}}" for i in range({cells}) for way in [config["way"]]]
    localrule: True
rule cell:
    output: "{{way}}/{{i}}"
    threads: 1
    resources: gpu=1, slurm_partition="h100", mem_mb=1000, runtime=5
    shell: "date +%s.%N >{{output}}"
"""
SMALLEST = ["--size", "nano", "--context", "16", "--precision", "fp32", "--batch", "1"]
SMALLEST += ["--warmup", "1", "--steps", "2", "--device", "cpu"]
SLURM = ["--executor", "slurm", "--jobs", "100", "--slurm-status-command", "squeue"]
SLURM += ["--slurm-init-seconds-before-status-checks", "1"]
# Members of a group run one after the other if they share a GPU of the group, here `gpu=1`.
GROUPS = ["--groups", "cell=cells", "--group-components", "cells={cells}"]
GROUPS += ["--resources", "gpu=1", "--set-resource-scopes", "gpu=local"]
WAYS = {
    "local": ["--cores", "1"],
    "job": SLURM,
    "array": [*SLURM, "--slurm-array-jobs", "cell"],
    "group": [*SLURM, *GROUPS],
}


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--cells", type=int, default=8, help="number of cells (8)")
    given = flags.parse_args()
    if reason := cannot_run():
        sys.exit(f"error: {reason}")
    with tempfile.TemporaryDirectory() as scratch, Lab() as lab:
        folder = Path(scratch)
        (folder / "Snakefile").write_text(SNAKEFILE.format(cells=given.cells))
        real = min(seconds([sys.executable, str(ROOT / "scripts/time_step.py"), *SMALLEST]) for _ in range(3))
        print(f"a real cell of the smallest kind, without Slurm: {real:.2f} s", flush=True)
        for way, words in WAYS.items():
            words = [word.format(cells=given.cells) for word in words]
            seconds(lab.command(snakemake(*words, "--config", f"way={way}"), folder))
            overhead = between(folder / way)
            print(f"{way:>6}: {overhead:5.2f} s of overhead a cell, {overhead / real:.2f} × a real cell", flush=True)
        reading = {
            "StepScope": [seconds(snakemake("report", "-n", "--quiet", "all"), ROOT) for _ in range(3)],
            "trivial": [seconds(snakemake("-n", "--config", "way=new", "--quiet", "all"), folder) for _ in range(3)],
        }
        own, trivial = (min(times) for times in reading.values())
        print(f"reading the Snakefile: StepScope {own:.2f} s, trivial {trivial:.2f} s, ratio {own / trivial:.2f}")


def snakemake(*words: str) -> list[str]:
    """A command line of this environment's Snakemake."""
    return [sys.executable, "-m", "snakemake", *words]


def seconds(command: list[str], folder: Path | None = None) -> float:
    """Wall seconds of a command that has to succeed."""
    start = time.perf_counter()
    ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode != 0:
        sys.exit(f"error: this failed: {' '.join(command)}\n{ended.stdout}")
    return time.perf_counter() - start


def between(folder: Path) -> float:
    """Mean seconds from the end of a cell to the end of the next."""
    ends = sorted(float(file.read_text()) for file in folder.iterdir())
    return (ends[-1] - ends[0]) / (len(ends) - 1)


if __name__ == "__main__":
    main()
