"""Collectives by themselves: what they reach on these devices is the ceiling of any step's."""

import statistics
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist

from stepscope.measure.clock import Clock
from stepscope.measure.telemetry import Telemetry
from stepscope.parallel.place import Place
from stepscope.parallel.strategies import all_gather, reduce_scatter

MIB = 2**20
SIZES = {  # bytes of the whole tensor: the first shows the latency
    "cuda": [4096, *(MIB * 4**power for power in range(6))],
    "cpu": [4096, MIB // 4, MIB, 4 * MIB],
}
ROUNDS, IN_A_ROW = 5, 4


def measured(place: Place, telemetry: Telemetry) -> list[dict]:
    """A row for each collective and size, each step of which every rank takes: seconds of one of a
    few in a row, the median of a few such rounds."""
    clock, rows = Clock(place.device), []
    for size in SIZES[place.device]:
        count = size // 4 // place.devices * place.devices
        whole = torch.zeros(count, device=place.device)
        part = torch.zeros(count // place.devices, device=place.device)
        calls = {
            "all_reduce": partial(dist.all_reduce, whole),
            "all_gather": partial(all_gather, whole, part),
            "reduce_scatter": partial(reduce_scatter, part, whole),
        }
        for name, call in calls.items():
            seconds = _seconds(call, clock, place)
            rows.append({"collective": name, "bytes": 4 * count, "seconds": seconds})
    return rows


def _seconds(call: Callable[[], object], clock: Clock, place: Place) -> float:
    def in_a_row() -> None:
        for _ in range(IN_A_ROW):
            call()

    in_a_row()
    found = []
    for _ in range(ROUNDS):
        place.agreed(0.0)  # all begin at about the same time
        found.append(clock.time(in_a_row) / IN_A_ROW)
    return statistics.median(found)


def largest(ranks: list[list[dict]], key: str) -> list[dict]:
    """The rows of all ranks as one: each is that of the rank which has most under a key."""
    return [max(same, key=lambda row: row[key]) for same in zip(*ranks, strict=True)]
