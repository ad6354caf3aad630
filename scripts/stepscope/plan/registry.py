"""The cells of all studies, each with what makes it stale; and the plan, which tells `aggregate` what to expect."""

import functools
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

from stepscope.machine import identity, labels
from stepscope.machine.labels import Hardware
from stepscope.plan.code_digest import Sources, chosen_modules
from stepscope.plan.config import ConfigError
from stepscope.plan.grid import Cell, command_of

SCHEMA_VERSION = 2


class Registry:
    """Filled by each study's rules; asked by the rules for a cell's params.

    `environment` is the conda environment file that measuring jobs run in, None for this interpreter's environment;
    `results` is the folder of the cells; `sources` is what digests of code are taken of.
    """

    def __init__(
        self,
        config: dict,
        machines: list[Hardware],
        environment: Path | None = None,
        results: Path = Path("results"),
        sources: Sources | None = None,
    ):
        self.config, self.results = config, results
        self._sources = sources or Sources()
        self.machines = {one.label: one for one in machines}
        self.studies: dict[str, list[Cell]] = {}
        self.rules: set[str] = set()
        self._cells: dict[str, Cell] = {}
        self._identities: dict[tuple[str, str], dict | None] = {}
        self._packages = pinned_versions(environment.read_text()) if environment else None

    def add(
        self,
        study: str,
        rule: str,
        expand: Callable,
        tools: Callable[[str], tuple[str, ...]] | None = None,
        parts: tuple[str, ...] = (),
    ) -> None:
        """Register a study: `expand(config, device, hardware, threads)` gives its cells, `rule` measures one of them.

        `tools(device)` are the programs that it uses. Of a machine that nothing is measured on, those cells count whose
        record is there, with these other `parts` of its folder. Raises ConfigError for a grid that is wrong.
        """
        if "plan" in self.__dict__:
            raise RuntimeError(f"study {study} is added after the plan was made; ask for plan_path later")
        self.studies[study] = []
        self.rules.add(rule)
        for one in self.machines.values():
            cells = expand(self.config, one.device, one.label, one.threads)
            if not one.measured:
                cells = [cell for cell in cells if self._is_there(cell, ("record.json", *parts))]
            self.studies[study] += cells
            self._cells |= {cell.name: cell for cell in cells}
            used = tools(one.device) if tools else ()
            at_hand = identity.identity(one.device, used, self._packages) if one.here else None
            self._identities[study, one.label] = at_hand

    def _is_there(self, cell: Cell, parts: tuple[str, ...]) -> bool:
        return all((self.results / cell.name / part).exists() for part in parts)

    def cell(self, folder: str) -> Cell:
        """The cell whose folder is `results/NAME`. Raises ConfigError for one that no grid holds."""
        name = folder.removeprefix("results/")
        if name not in self._cells:
            raise ConfigError(f"{name} is in no grid of the configuration; add it there to measure it")
        return self._cells[name]

    def hardware(self, cell: Cell) -> Hardware:
        """The machine that the cell belongs to."""
        return self.machines[_label(cell)]

    def code(self, cell: Cell) -> str:
        """Digest of the code that the cell runs."""
        return self._sources.measured_digest(cell.program, tuple(chosen_modules(cell.chosen)))

    def machine_json(self, cell: Cell) -> str:
        """Identity of the machine at hand and its software as sorted JSON; `null` for a cell of another machine."""
        return json.dumps(self._identities[cell.study, _label(cell)], sort_keys=True)

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

    def without_results(self) -> list[str]:
        """Labels that nothing is measured on and that no cell is there of."""
        found = {_label(cell) for cell in self._cells.values()}
        return [label for label, one in self.machines.items() if not one.measured and label not in found]

    def without_cells(self) -> list[str]:
        """Studies that have no cell at all, because nothing is measured and no result of them is there."""
        return [study for study, cells in self.studies.items() if not cells]

    def seen(self) -> dict[str, dict[str, dict | None]]:
        """Label → study → identity by the newest records, for the machines whose cells are measured by jobs."""
        return {
            label: labels.newest({study: list(records.values()) for study, records in studies.items()})
            for label, studies in self._records_of_jobs.items()
        }

    def outdated(self) -> dict[str, str]:
        """Cell → in what its machine differs from the newest of its label, where cells are measured by jobs."""
        seen = self.seen()
        differences = {
            name: labels.from_newest(record["machine"], seen[label][study])
            for label, studies in self._records_of_jobs.items()
            for study, records in studies.items()
            for name, record in records.items()
        }
        return {name: difference for name, difference in differences.items() if difference}

    @functools.cached_property
    def _records_of_jobs(self) -> dict[str, dict[str, dict[str, dict]]]:
        """Label → study → cell → its record."""
        return {
            label: {
                study: labels.read_records(
                    self.results, [cell.name for cell in cells if _label(cell) == label], one.expect
                )
                for study, cells in self.studies.items()
            }
            for label, one in self.machines.items()
            if one.by_jobs
        }

    @functools.cached_property
    def plan(self) -> str:
        """JSON: the machines; and for each study what identifies them, their noise marks, and its cells.

        Of a cell: name, size, spec, code, command. An identity is null where the records have to say it.
        """
        return json.dumps(
            {
                "schema_version": SCHEMA_VERSION,
                "preset": self.config["preset"],
                "machines": {
                    label: {"device": one.device, "how": _how(one), "expect": one.expect}
                    for label, one in self.machines.items()
                },
                "studies": {
                    study: {
                        "machine": {label: self._identities[study, label] for label in self.machines},
                        "noisy": {
                            label: self.config[study].get("noisy", {}).get(one.device)
                            for label, one in self.machines.items()
                        },
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
        entry = {
            "cell": cell.name,
            "size": cell.size,
            "spec": cell.spec,
            "code": self.code(cell),
            "command": command_of(cell.program, cell.spec),
        }
        if not self.hardware(cell).measured:  # a copy that is replaced may be older than the tables made of it
            record = (self.results / cell.name / "record.json").read_bytes()
            entry["record"] = hashlib.sha256(record).hexdigest()[:16]
        return entry


def _label(cell: Cell) -> str:
    return cell.name.partition("/")[0]


def _how(one: Hardware) -> str:
    """`here`, `jobs` (of a cluster) or `there` (measured before: its results are used as they are)."""
    return "here" if one.here else "jobs" if one.measured else "there"


def pinned_versions(environment: str) -> dict[str, str]:
    """Package → version for the `name=1.2`, `name==1.2` lines of a conda environment file; Python as 3.12."""
    found = dict(re.findall(r"^\s*-\s*([A-Za-z0-9_.-]+?)={1,2}([0-9][\w.+]*)\s*(?:#.*)?$", environment, re.MULTILINE))
    if "python" in found:
        found["python"] = ".".join(found["python"].split(".")[:2])
    return found
