"""The cells of all studies, each with what makes it stale; and the plan, which tells `aggregate` what to expect."""

import functools
import hashlib
import json
import re
from pathlib import Path

from stepscope.plan import machine
from stepscope.plan.code_digest import chosen_modules, code_digest
from stepscope.plan.config import ConfigError
from stepscope.plan.grid import Cell, command_of


class Registry:
    """Filled by each study's rules; asked by the rules for a cell's params.

    `environment` is the conda environment file that measuring jobs run in, None for this interpreter's environment.
    """

    def __init__(self, config: dict, device: str, hardware: str, threads: int, environment: Path | None = None):
        self.config, self.device, self.hardware, self.threads = config, device, hardware, threads
        self.studies: dict[str, list[Cell]] = {}
        self.rules: set[str] = set()
        self._cells: dict[str, Cell] = {}
        self._machine: dict[str, dict] = {}
        self._machine_json: dict[str, str] = {}
        self._packages = pinned_versions(environment.read_text()) if environment else None

    def add(self, study: str, rule: str, expand, tools: tuple[str, ...] = ()) -> None:
        """Register a study: `expand(config, device, hardware, threads)` gives its cells, `rule` measures one of them.

        `tools` are the programs that it uses. Raises ConfigError for a grid that is wrong.
        """
        if "plan" in self.__dict__:
            raise RuntimeError(f"study {study} is added after the plan was made; ask for plan_path later")
        cells = expand(self.config, self.device, self.hardware, self.threads)
        self.studies[study] = cells
        self.rules.add(rule)
        self._cells |= {cell.name: cell for cell in cells}
        self._machine[study] = machine.identity(self.device, tools, self._packages)
        self._machine_json[study] = json.dumps(self._machine[study], sort_keys=True)

    def cell(self, folder: str) -> Cell:
        """The cell whose folder is `results/NAME`. Raises ConfigError for one that no grid holds."""
        name = folder.removeprefix("results/")
        if name not in self._cells:
            raise ConfigError(f"{name} is in no grid of the configuration; add it there to measure it")
        return self._cells[name]

    def code(self, cell: Cell) -> str:
        """Digest of the code that the cell runs."""
        return _cached_digest(cell.program, tuple(chosen_modules(cell.chosen)))

    def machine_json(self, cell: Cell) -> str:
        """Identity of the machine and software that the cell runs on, as sorted JSON."""
        return self._machine_json[cell.study]

    @property
    def count(self) -> int:
        """Number of cells of all studies."""
        return len(self._cells)

    def records(self, study: str | None = None) -> list[str]:
        """The record of each cell of a study, or of all, in the grid's order."""
        cells = self.studies[study] if study else self._cells.values()
        return [f"results/{cell.name}/record.json" for cell in cells]

    def samples(self) -> list[str]:
        """The samples of each cell."""
        return [f"results/{name}/samples.csv" for name in self._cells]

    @functools.cached_property
    def plan(self) -> str:
        """JSON: for each cell its name, study, size, spec, code, command; and each study's machine and noise mark."""
        return json.dumps(
            {
                "schema_version": 1,
                "device": self.device,
                "hardware": self.hardware,
                "preset": self.config["preset"],
                "studies": {
                    study: {
                        "machine": self._machine[study],
                        "noisy": self.config[study].get("noisy", {}).get(self.device),
                        "cells": [self._entry(cell) for cell in cells],
                    }
                    for study, cells in self.studies.items()
                },
            },
            sort_keys=True,
        )

    @functools.cached_property
    def plan_path(self) -> str:
        """Where the plan is kept. The name holds its digest, so that a changed plan is a missing file."""
        return f"results/plan/{hashlib.sha256(self.plan.encode()).hexdigest()[:16]}.json"

    def write_plan(self, path: str) -> None:
        """Write the plan, and remove the plans before it."""
        folder = Path(path).parent
        for old in folder.glob("*.json"):
            old.unlink()
        beside = Path(f"{path}.part")
        beside.write_text(self.plan)
        beside.rename(path)

    def _entry(self, cell: Cell) -> dict:
        return {
            "cell": cell.name,
            "size": cell.size,
            "spec": cell.spec,
            "code": self.code(cell),
            "command": command_of(cell.program, cell.spec),
        }


@functools.cache
def _cached_digest(program: str, by_name: tuple[str, ...]) -> str:
    return code_digest(program, by_name)


def pinned_versions(environment: str) -> dict[str, str]:
    """Package → version for the `name=1.2`, `name==1.2` lines of a conda environment file; Python as 3.12."""
    found = dict(re.findall(r"^\s*-\s*([A-Za-z0-9_.-]+?)={1,2}([0-9][\w.+]*)\s*(?:#.*)?$", environment, re.MULTILINE))
    if "python" in found:
        found["python"] = ".".join(found["python"].split(".")[:2])
    return found
