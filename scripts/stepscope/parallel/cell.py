"""The frame of a cell that several devices measure together: all of them are ours, and each process
of the cell is a rank on each."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from stepscope.machine import gpus, identity, locks
from stepscope.measure.cell import Measurement
from stepscope.measure.found import Found, Outcome

from . import ranks
from .place import Place

Work = Callable[[dict, Place], object]  # of a rank, on the variants of a spec


class ParallelMeasurement(Measurement):
    """As Measurement; together() does the work of in_processes() on all devices of the spec.

    failed: by variant what it cannot have. Those are all where the machine has not the devices; of
    a processor each rank needs a core.
    """

    def __enter__(self) -> "ParallelMeasurement":
        super().__enter__()
        wanted = self.spec["devices"]
        self.failed: dict[str, Outcome] = {}
        there: list[str | None] = [None] * identity.usable_cores()
        kind = "processor cores"
        if self._device == "cuda":
            there = [gpu.uuid for gpu in gpus.visible_gpus()]
            kind = "GPUs"
        self._uuids = there[:wanted]
        for uuid in filter(None, self._uuids[1:]):
            self._open.enter_context(locks.hold(uuid))
        if len(there) < wanted:
            self._prepare()  # no rank will
            reason = f"{wanted} {kind} are asked for, {len(there)} can be used"
            for variant in self.spec["variants"]:
                self.failed[variant["name"]] = Outcome("unsupported", reason)
        return self

    def together(self, work: Work, seconds: float | None = None) -> list:
        """What `work` returns on each rank, by rank, for the variants that have not failed; again
        without the one that fails now. [] where none is left.

        After `seconds` it ends the program, as does running out of memory on a GPU that others had
        filled.
        """
        while left := [one for one in self.spec["variants"] if one["name"] not in self.failed]:
            with tempfile.TemporaryDirectory(prefix="ranks.") as folder:
                spec = self.spec | {"variants": left}
                run = partial(self._rank, work, spec, Path(folder) / "ranks")
                try:
                    answers = ranks.together(spec["devices"], run, seconds)
                except ranks.VariantError as error:
                    self.failed[error.variant] = error.outcome
                    self.check_memory(error.outcome.status)
                    continue
            found, seen = zip(*answers, strict=True)
            self._seen += seen
            return [*found]
        return []

    def _rank(self, work: Work, spec: dict, file: Path, rank: int) -> tuple[object, dict]:
        """What one rank returns, and what it saw of its device."""
        import torch

        devices = spec["devices"]
        ranks.keep_to_own_cores(rank, devices)
        self._gpu = self._uuids[rank]
        self._prepare()
        torch.set_num_threads(max(1, spec["threads"] // devices))
        if self._device == "cuda":
            torch.cuda.set_device(rank)
        found = work(spec, Place(rank, devices, self._device, file, self.telemetry))
        return found, self._sight()


def largest(of_ranks: list[list[dict]], key: str) -> list[dict]:
    """The rows of all ranks as one: each is that of the rank which has most under a key."""
    return [max(same, key=lambda row: row[key]) for same in zip(*of_ranks, strict=True)]


def combined(found: Sequence[Found]) -> Found:
    """What all ranks found as one, if there are any: a step takes as long as on the rank that takes
    longest, its memory is the largest, its energy that of all devices."""
    values: dict[tuple, dict] = {}
    for one in found:
        for value in one.values:
            place = tuple(value[key] for key in value if key != "value")
            join = sum if value["unit"] == "J" else max
            known = values.get(place, {"value": 0.0})["value"]
            values[place] = value | {"value": join((known, value["value"]))}
    rows = largest([one.rows for one in found], "seconds")
    first = next(iter(found), Found())
    return replace(first, rows=rows, values=list(values.values()))
