"""The frame of a cell that several devices measure together: all of them are ours, and each process
of the cell is a rank on each."""

import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from stepscope.machine import gpus, identity, locks
from stepscope.measure.cell import Measurement
from stepscope.measure.found import Found
from stepscope.measure.telemetry import Telemetry
from stepscope.parallel import ranks
from stepscope.parallel.place import Place

Work = Callable[[Place, Telemetry], object]  # of a rank


class ParallelMeasurement(Measurement):
    """As Measurement; together() does the work of in_processes() on all devices of the spec."""

    def __enter__(self) -> "ParallelMeasurement":
        super().__enter__()
        visible = gpus.visible_gpus() if self._device == "cuda" else []
        self._uuids = [gpu.uuid for gpu in visible[: self.spec["devices"]]]
        for uuid in self._uuids[1:]:
            self._open.enter_context(locks.hold(uuid))
        return self

    def missing(self) -> str | None:
        """Why this machine has not the devices, in one line; None if it has. Of a processor each
        rank needs a core."""
        there, kind = len(self._uuids), "GPUs"
        if self._device == "cpu":
            there, kind = identity.usable_cores(), "processor cores"
        wanted = self.spec["devices"]
        if there >= wanted:
            return None
        self._prepare()  # no rank will
        return f"{wanted} {kind} are asked for, {there} can be used"

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
        self._gpu = self._uuids[rank] if self._uuids else None
        self._prepare()
        torch.set_num_threads(max(1, self.spec["threads"] // devices))
        if self._device == "cuda":
            torch.cuda.set_device(rank)
        found = work(Place.join(rank, devices, self._device, file), self.telemetry)
        return found, self._sight()


def largest(of_ranks: list[list[dict]], key: str) -> list[dict]:
    """The rows of all ranks as one: each is that of the rank which has most under a key."""
    return [max(same, key=lambda row: row[key]) for same in zip(*of_ranks, strict=True)]


def combined(found: Sequence[Found]) -> Found:
    """What all ranks found as one: a step takes as long as on the rank that takes longest, its
    memory is the largest, its energy that of all devices."""
    values: dict[tuple, dict] = {}
    for value in itertools.chain.from_iterable(one.values for one in found):
        place = tuple(value[key] for key in value if key != "value")
        known = values.setdefault(place, value | {"value": 0})
        join = sum if value["unit"] == "J" else max
        known["value"] = join((known["value"], value["value"]))
    rows = largest([one.rows for one in found], "seconds")
    return replace(found[0], rows=rows, values=list(values.values()))
