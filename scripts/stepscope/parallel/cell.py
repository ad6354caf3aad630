"""The frame of a cell that several devices measure together: all of them are ours, and each process
of the cell is a rank on each."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from stepscope.machine import gpus, identity, locks
from stepscope.measure.cell import Measurement
from stepscope.measure.found import Found, Outcome
from stepscope.measure.telemetry import Telemetry
from stepscope.parallel import ranks
from stepscope.parallel.place import Place

Work = Callable[[Place, Telemetry], object]  # of a rank


class ParallelMeasurement(Measurement):
    """As Measurement; together() does the work of in_processes() on all devices of the spec."""

    def __enter__(self) -> "ParallelMeasurement":
        super().__enter__()
        self._uuids = [gpu.uuid for gpu in gpus.visible_gpus()[: self.spec["devices"]]]
        if self._device == "cuda":
            for uuid in self._uuids[1:]:
                self._open.enter_context(locks.hold(uuid))
        return self

    def missing(self) -> str | None:
        """Why this machine has not the devices, in one line; None if it has. Of a processor each
        rank needs a core."""
        wanted = self.spec["devices"]
        there = len(self._uuids) if self._device == "cuda" else identity.usable_cores()
        kind = "GPUs" if self._device == "cuda" else "processor cores"
        return f"{wanted} {kind} are asked for, {there} can be used" if there < wanted else None

    def refuse(self, reason: str) -> list[Found]:
        """What is found where nothing can run."""
        self._prepare()
        found = Found()
        for variant in self.spec["variants"]:
            found.status(variant["name"], Outcome("unsupported", reason), mode="step")
        return [found]

    def together(self, work: Work, seconds: float | None = None) -> list:
        """What `work` returns on each rank, by rank. Raises what ranks.together() raises; running
        out of memory on a GPU that others had filled ends the program."""
        with tempfile.TemporaryDirectory(prefix="ranks.") as folder:
            run = partial(self._rank, work, Path(folder) / "ranks")
            try:
                answers = ranks.together(self.spec["devices"], run, seconds)
            except ranks.VariantError as error:
                self.check_memory(error.status)
                raise
        self._seen += [seen for _, seen in answers]
        return [found for found, _ in answers]

    def _rank(self, work: Work, file: Path, rank: int) -> tuple[object, dict]:
        """What one rank returns, and what it saw of its device."""
        import torch

        devices = self.spec["devices"]
        ranks.keep_to_own_cores(rank, devices)
        if self._device == "cuda":
            self._gpu = self._uuids[rank]
        self._prepare()
        torch.set_num_threads(max(1, self.spec["threads"] // devices))
        if self._device == "cuda":
            torch.cuda.set_device(rank)
        found = work(Place.join(rank, devices, self._device, file), self.telemetry)
        return found, self._sight()


def combined(found: list[Found]) -> Found:
    """What all ranks found as one: a step takes as long as on the rank that takes longest, its
    memory is the largest, its energy that of all devices."""
    rows = []
    for first, *others in zip(*(one.rows for one in found), strict=True):
        slowest = max(row["seconds"] for row in (first, *others))
        rows.append(first | {"seconds": slowest})
    values: dict[tuple, dict] = {}
    for value in (value for one in found for value in one.values):
        place = tuple(value[key] for key in value if key != "value")
        known = values.setdefault(place, value | {"value": 0})
        join = sum if value["unit"] == "J" else max
        known["value"] = join((known["value"], value["value"]))
    return replace(found[0], rows=rows, values=list(values.values()))
