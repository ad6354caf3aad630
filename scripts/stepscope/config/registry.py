"""The cells of all studies, each with what makes it stale; and the plan, which tells `aggregate`
what to expect."""

import functools
import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from stepscope.machine import identity
from stepscope.machine.labels import Hardware

from . import Complaints, ConfigError, own_models
from .code_digest import SCRIPTS, Sources, modules_of, packages_of
from .grid import Cell, Study, command_of

MOST_CELLS = 2000  # of all studies and machines: Snakemake takes a minute to plan as many


class Registry:
    """The cells of the studies on the machines of a configuration; asked by the rules for a cell's
    params.

    Of a machine that nothing is measured on, those cells count that are there: record and, where
    the study has one, analysis. `environment` is the conda environment file that measuring jobs run
    in, None for this interpreter's environment; `results` is the folder of the cells, `scripts`
    that of the programs. Raises ConfigError for a grid that is wrong.
    """

    def __init__(
        self,
        config: dict,
        machines: list[Hardware],
        studies: Sequence[Study],
        environment: Path | None = None,
        results: Path = Path("results"),
        scripts: Path = SCRIPTS,
    ):
        self.config = config
        self.results = results
        self.sources = Sources(scripts)
        self.machines = {one.label: one for one in machines}
        self._tools = {study.name: study.tools for study in studies}
        self._versions = pinned_versions(environment.read_text()) if environment else None
        self.studies: dict[str, list[Cell]] = {}
        self._cells: dict[str, Cell] = {}
        wrong = Complaints()
        for study in studies:
            cells: list[Cell] = []
            for one in machines:
                with wrong.noted():
                    cells += self._planned(study, one)
            self.studies[study.name] = cells
            self._cells |= {cell.name: cell for cell in cells}
            if len(self._cells) > MOST_CELLS:
                wrong.note(
                    f"config key {study.name}: up to it {len(self._cells):,} cells are planned; at"
                    f" most {MOST_CELLS:,} can be: make grids smaller, or several runs of them"
                )
        found = {cell.label for cell in self._cells.values()}
        for label in self.machines.keys() - found:
            if not self.machines[label].measured:
                wrong.note(
                    f"config key hardware.{label}: nothing is measured, but results/{label} holds"
                    " no cell of the grids; copy its results there, or measure them"
                )
        wrong.tell()
        for cell in filter(self._reads_own, self._cells.values()):
            with wrong.noted():
                own_models.require(str(cell.size), cell.spec)
        wrong.tell()

    def _planned(self, study: Study, one: Hardware) -> list[Cell]:
        cells = study.cells(self.config, one)
        if not one.measured:
            for part in ["record.json", "analysis"] if study.analysis else ["record.json"]:
                cells = [cell for cell in cells if (self.results / cell.name / part).exists()]
        return cells

    def cell(self, folder: str) -> Cell:
        """The cell whose folder is `results/NAME`. Raises ConfigError for one that no grid
        holds."""
        name = folder.removeprefix("results/")
        if name not in self._cells:
            raise ConfigError(
                f"{name} is in no grid of the configuration; add it there to measure it"
            )
        return self._cells[name]

    def _reads_own(self, cell: Cell) -> bool:
        """Whether it matters what the files of the cell's own model say: not where results are used
        as they are."""
        return bool(own_models.references(cell.spec)) and self.machines[cell.label].measured

    def code(self, cell: Cell) -> str:
        """Digest of the code that the cell runs, with the files of a model of one's own."""
        code = self.sources.digest(cell.program, modules_of(cell.spec), measured=True)
        return own_models.with_files(code, cell.spec) if self._reads_own(cell) else code

    def machine_json(self, cell: Cell) -> str:
        """Identity of the machine at hand and its software as sorted JSON; `null` for a cell of
        another machine."""
        found = None
        if self.machines[cell.label].here:
            device = cell.spec["device"]
            packages = packages_of(cell.spec) | own_models.packages_of(cell.spec)
            tools = self._tools[cell.study](device)
            found = identity.identity(device, tools, packages, self._versions)
        return json.dumps(found, sort_keys=True)

    def code_and_machine(self, cell: Cell) -> str:
        """What makes a cell stale besides its spec: the digest of its code, and the type of machine
        as sorted JSON."""
        return f"{self.code(cell)} {self.machine_json(cell)}"

    def names(self, study: str | None = None) -> list[str]:
        """The name of each cell of a study, or of all, in the grid's order."""
        return [cell.name for cell in (self.studies[study] if study else self._cells.values())]

    def missing(self) -> list[str]:
        """The cells that have no record."""
        return [name for name in self._cells if not (self.results / name / "record.json").is_file()]

    def idle_models(self) -> list[str]:
        """The names of one's own models that no cell runs; none where machines are not measured."""
        if not all(one.measured for one in self.machines.values()):
            return []
        sizes = {cell.size for cell in self._cells.values()}
        return [name for name in self.config.get("models", {}) if name not in sizes]

    @functools.cached_property
    def plan(self) -> str:
        """JSON: the machines, and the cells of each study, with name, spec, code and command."""
        machines = {
            label: {"how": "here" if one.measured else "there"}
            for label, one in self.machines.items()
        }
        studies = {
            study: {"cells": [self._entry(cell) for cell in cells]}
            for study, cells in self.studies.items()
        }
        return json.dumps({"machines": machines, "studies": studies}, sort_keys=True)

    def _entry(self, cell: Cell) -> dict:
        entry = {
            "cell": cell.name,
            "spec": cell.spec,
            "code": self.code(cell),
            "command": command_of(cell.program, cell.spec),
        }
        if not self.machines[cell.label].measured:
            # A copy that is put in its place may be older than the tables made of it, so that no
            # time stamp tells.
            record = (self.results / cell.name / "record.json").read_bytes()
            entry["record"] = hashlib.sha256(record).hexdigest()
        return entry


def pinned_versions(environment: str) -> dict[str, str]:
    """Package → version for the `name=1.2`, `name==1.2` lines of a conda environment file; Python
    as 3.12."""
    line = r"^\s*-\s*([A-Za-z0-9_.-]+?)={1,2}([0-9][\w.+]*)\s*(?:#.*)?$"
    found = dict(re.findall(line, environment, re.MULTILINE))
    if "python" in found:
        found["python"] = ".".join(found["python"].split(".")[:2])
    return found
