"""The cells of all studies, each with what makes it stale; and the plan, which tells `aggregate` what to expect."""

import functools
import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from stepscope.config import own_models
from stepscope.config.code_digest import Sources, chosen_modules
from stepscope.config.config import ConfigError
from stepscope.config.grid import Cell, command_of
from stepscope.config.studies import Study
from stepscope.files import write_whole
from stepscope.machine import identity, labels
from stepscope.machine.labels import Hardware

SCHEMA_VERSION = 2


class Registry:
    """The cells of the studies on the machines of a configuration; asked by the rules for a cell's params.

    Of a machine that nothing is measured on, those cells count that are there: record and, where the study has one,
    analysis. `environment` is the conda environment file that measuring jobs run in, None for this interpreter's
    environment; `results` is the folder of the cells. `sources` is what digests of code
    are taken of. Raises ConfigError for a grid that is wrong.
    """

    def __init__(
        self,
        config: dict,
        machines: list[Hardware],
        studies: Sequence[Study],
        environment: Path | None = None,
        results: Path = Path("results"),
        sources: Sources | None = None,
    ):
        self.config, self.results = config, results
        self._sources = sources or Sources()
        self.machines = {one.label: one for one in machines}
        self.rules = {study.program for study in studies}
        self.studies: dict[str, list[Cell]] = {}
        self._identities: dict[tuple[str, str, tuple[str, ...]], str] = {}
        self._tools = {study.name: study.tools for study in studies}
        self._packages = pinned_versions(environment.read_text()) if environment else None
        for study in studies:
            self.studies[study.name] = [cell for one in machines for cell in self._planned(study, one)]
            for one in machines:
                self._identity_json(study.name, one.label)  # a machine that is not as configured ends it here
        self._cells = {cell.name: cell for cells in self.studies.values() for cell in cells}
        for size, model in {
            (cell.size, cell.spec["model"]) for cell in self._cells.values() if self._reads_model(cell)
        }:
            own_models.require(size, model)

    def _planned(self, study: Study, one: Hardware) -> list[Cell]:
        cells = study.cells(self.config, one.device, one.label, one.threads)
        if one.measured:
            return cells
        parts = ["record.json", "analysis"] if study.analysis else ["record.json"]
        return [cell for cell in cells if all((self.results / cell.name / part).exists() for part in parts)]

    def cell(self, folder: str) -> Cell:
        """The cell whose folder is `results/NAME`. Raises ConfigError for one that no grid holds."""
        name = folder.removeprefix("results/")
        if name not in self._cells:
            raise ConfigError(f"{name} is in no grid of the configuration; add it there to measure it")
        return self._cells[name]

    def hardware(self, cell: Cell) -> Hardware:
        """The machine that the cell belongs to."""
        return self.machines[cell.label]

    def code(self, cell: Cell) -> str:
        """Digest of the code that the cell runs, with the files of a model of one's own."""
        code = self._sources.measured_digest(cell.program, tuple(chosen_modules(cell.chosen)))
        return own_models.with_files(code, cell.spec["model"]) if self._reads_model(cell) else code

    def _reads_model(self, cell: Cell) -> bool:
        """Whether it matters what the files of the cell's own model say: not where results are used as they are."""
        return "model" in cell.spec and self.hardware(cell).measured

    def machine_json(self, cell: Cell) -> str:
        """Identity of the machine at hand and its software as sorted JSON; `null` for a cell of another machine."""
        return self._identity_json(cell.study, cell.label, self._packages_of(cell))

    def _identity_json(self, study: str, label: str, packages: tuple[str, ...] = ()) -> str:
        """The machine at hand with a study's tools, and the packages that a model of one's own imports."""
        place, one = (study, label, packages), self.machines[label]
        if place not in self._identities:
            tools = (*self._tools[study](one.device), *packages)
            found = identity.identity(one.device, tools, self._packages) if one.here else None
            self._identities[place] = json.dumps(found, sort_keys=True)
        return self._identities[place]

    def _packages_of(self, cell: Cell) -> tuple[str, ...]:
        return own_models.packages_of(cell.spec["model"]) if self._reads_model(cell) else ()

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

    def check_results(self) -> None:
        """Raise ConfigError for a machine that is only used, or a study, that has no cell at all."""
        found = {cell.label for cell in self._cells.values()}
        for label, one in self.machines.items():
            if not one.measured and label not in found:
                raise ConfigError(
                    f"config key hardware.{label}: measure: false, but results/{label} holds no cell of the grids; "
                    "copy its results there, or remove the entry"
                )
        for study, cells in self.studies.items():
            if not cells:
                raise ConfigError(
                    f"no machine under hardware has results of the study {study}, and none is to be measured; copy "
                    "those results too, or measure them"
                )

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
                    self.results, [cell.name for cell in cells if cell.label == label], one.expect
                )
                for study, cells in self.studies.items()
            }
            for label, one in self.machines.items()
            if one.by_jobs
        }

    @functools.cached_property
    def plan(self) -> str:
        """JSON: the machines; and for each study what identifies them, their noise marks, and its cells.

        Of a cell: name, size, spec, code, command, and the machine where its model asks more of it than the study does.
        An identity is null where the records have to say it.
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
                        "machine": {label: json.loads(self._identity_json(study, label)) for label in self.machines},
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
        return f"results/plan/{_short_hash(self.plan)}.json"

    @functools.cached_property
    def partial_plan_path(self) -> str:
        """Where the plan of a partial report is kept. Any change of a cell's files is a missing file, too."""
        parts = ("record.json", "samples.csv", "measure.log", "analysis")
        state = [_state(f"results/{name}/{part}") for name in self._cells for part in parts]
        return f"results/partial/plan/{_short_hash(self.plan + json.dumps(state))}.json"

    def write_plan(self, path: str) -> None:
        """Write the plan, and remove those before it, with their logs."""
        folder = Path(path).parent
        for old in [*folder.glob("*.json"), *folder.glob("*.log")]:
            old.unlink()
        write_whole({Path(path): [self.plan]})

    def _entry(self, cell: Cell) -> dict:
        entry = {
            "cell": cell.name,
            "size": cell.size,
            "spec": cell.spec,
            "code": self.code(cell),
            "command": command_of(cell.program, cell.spec),
        }
        if self._packages_of(cell):
            entry["machine"] = json.loads(self.machine_json(cell))
        if not self.hardware(cell).measured:  # a copy that is replaced may be older than the tables made of it
            record = (self.results / cell.name / "record.json").read_bytes()
            entry["record"] = hashlib.sha256(record).hexdigest()[:16]
        return entry


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _state(path: str) -> list[int] | None:
    """When a file was written, and its size; None if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_mtime_ns, found.st_size]


def _how(one: Hardware) -> str:
    """`here`, `jobs` (of a cluster) or `there` (measured before: its results are used as they are)."""
    return "here" if one.here else "jobs" if one.measured else "there"


def pinned_versions(environment: str) -> dict[str, str]:
    """Package → version for the `name=1.2`, `name==1.2` lines of a conda environment file; Python as 3.12."""
    found = dict(re.findall(r"^\s*-\s*([A-Za-z0-9_.-]+?)={1,2}([0-9][\w.+]*)\s*(?:#.*)?$", environment, re.MULTILINE))
    if "python" in found:
        found["python"] = ".".join(found["python"].split(".")[:2])
    return found
