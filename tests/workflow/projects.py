"""Helpers for the tests of the workflow: copies of the project with a tiny grid, run by the real
snakemake."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml
from common import ROOT

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
PARTS = ("Snakefile", "rules", "scripts", "envs", "profiles", "report", "requirements.txt")
POINT = {"size": ["alpha"], "context": [8], "precision": ["fp32"]}
RUNNING = {"processes": {"cpu": 1}, "steps": {"cpu": {"min": 2, "max": 2, "seconds": 1}}}
TINY = {
    "device": "cpu",
    "threads": 1,
    "model": {"vocab_size": 16, "batch": 1, "seed": 0},
    "sizes": {
        "alpha": {"d_model": 32, "d_ff": 16, "num_layers": 1, "num_heads": 2},
        "beta": {"d_model": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2},
    },
    "timing": RUNNING
    | {
        "grid": {
            "cpu": [
                POINT | {"size": ["alpha", "beta"]},
                POINT | {"context": [16], "attention": ["sdpa"]},
            ]
        }
    },
    "ladder": RUNNING
    | {
        "places": {"cpu": [{"size": "alpha", "context": 8}]},
        "rungs": {"cpu": [{"precision": "fp32"}, {"attention": "sdpa"}, {"optimizer": "fused"}]},
    },
    "attention": RUNNING
    | {
        "grid": {
            "cpu": [
                {
                    "implementation": ["naive", "sdpa-flash"],
                    "d_head": [8],
                    "precision": ["fp32"],
                    "batch": [1],
                    "lengths": [4, 8],
                }
            ]
        }
    },
    "ceilings": {
        "processes": {"cpu": 1},
        "cpu": {
            "precision": ["fp32"],
            "matmul_order": 32,
            "copy_mebibytes": 1,
            "steps": 2,
            "seconds": 0.1,
        },
    },
    "profile": {"warmup": {"cpu": 1}, "steps": {"cpu": 2}, "grid": {"cpu": [POINT]}},
    "memory": {"grid": {"cpu": [POINT]}},
    "precision": {"probes": ["accumulation"]},
}
SECONDS_TO_RUN = 600
BANNER = re.compile(r"Using workflow specific profile|Config file .* is extended|\s*$")


@dataclass(frozen=True)
class Run:
    """A run that has ended: its exit code, and what it printed on both streams."""

    code: int
    text: str

    @property
    def complaint(self):
        """What it says is wrong, where that is all that it says: one line."""
        lines = [line for line in self.text.splitlines() if not BANNER.match(line)]
        assert self.code != 0 and len(lines) == 1, self.text
        return lines[0]

    @property
    def counts(self):
        """Rule → how many of its jobs a dry run plans."""
        rows = re.findall(r"^(\w+) +(\d+)$", self.text, re.MULTILINE)
        return {rule: int(count) for rule, count in rows}


class Project:
    """A copy of the project."""

    def __init__(self, folder, locks):
        self.folder = folder
        own = {"STEPSCOPE_LOCKS": str(locks), "CUDA_VISIBLE_DEVICES": ""}
        self._environment = os.environ | own
        for name in ("PYTHONPATH", "OUT"):
            self._environment.pop(name, None)

    def run(self, *words, program=SNAKEMAKE, cwd=None):
        """Run snakemake, or another program, to its end."""
        command = [str(program), *map(str, words)]
        said = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS_TO_RUN,
        )
        return Run(said.returncode, said.stdout)

    def edit(self, file, old, new):
        """Replace what stands once in a file."""
        text = (self.folder / file).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        (self.folder / file).write_text(text.replace(old, new))

    def tree(self):
        """Every file outside Snakemake's own folder → its time and size."""
        paths = (
            path
            for path in self.folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        )
        states = {str(path.relative_to(self.folder)): path.stat() for path in paths}
        return {
            path: (state.st_mtime_ns, state.st_size)
            for path, state in states.items()
            if not path.startswith(".snakemake/")
        }


def copy_of_code(folder):
    """The project with the tiny grid, without any result."""
    folder.mkdir()
    leave = shutil.ignore_patterns("__pycache__", "example")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=leave)
        else:
            shutil.copy2(source, folder / part)
    (folder / "config.yaml").write_text(yaml.safe_dump(TINY, sort_keys=False))
