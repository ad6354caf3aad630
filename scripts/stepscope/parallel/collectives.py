"""Collectives by themselves: what they reach on these devices is the ceiling of any step's."""

import math
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from stepscope.measure.clock import Clock
from stepscope.measure.telemetry import Telemetry
from stepscope.parallel.place import Place
from stepscope.parallel.strategies import all_gather, reduce_scatter

MIB = 2**20
SIZES = {  # bytes of the whole tensor: the first shows the latency
    "cuda": [4096, *(MIB * 4**power for power in range(6))],
    "cpu": [4096, MIB // 4, MIB, 4 * MIB],
}
ROUNDS = 5
IN_A_ROW = 4
PRODUCT = {"cuda": 8192, "cpu": 256}  # rows and columns of a product that runs beside
OUTLASTING = 4  # times as long as the all-reduce beside them are the products


def measured(place: Place, telemetry: Telemetry) -> list[dict]:
    """A row for each collective and size, each step of which every rank takes: seconds of one of a
    few in a row, the median of a few such rounds."""
    clock = Clock(place.device)
    rows = []
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
    calls["copy"] = partial(torch.empty_like(whole).copy_, whole)  # what buckets cost
    row = {"collective": "copy", "bytes": 4 * count}
    rows.append(row | {"seconds": _seconds(calls["copy"], clock, place)})
    rows[-4] |= beside_products(whole, rows[-4]["seconds"], clock, place)
    return rows


def beside_products(whole: Tensor, alone: float, clock: Clock, place: Place) -> dict[str, float]:
    """An all-reduce of a tensor, which takes `alone` seconds by itself, while products run:
    beside: its seconds. lost: the share of that time which the products lose."""
    size = PRODUCT[place.device]
    dtype = torch.bfloat16 if place.device == "cuda" else torch.float32
    a, b, out = (torch.zeros(size, size, device=place.device, dtype=dtype) for _ in range(3))
    once = _seconds(partial(torch.mm, a, b, out=out), clock, place)
    count = math.ceil(OUTLASTING * alone / once)

    def products() -> None:
        for _ in range(count):
            torch.mm(a, b, out=out)

    def both() -> None:
        sending.begin()
        products()

    found = []
    for _ in range(ROUNDS):
        plain = clock.time(products)
        place.agreed(0.0)
        sending = Sending(whole)
        longer = clock.time(both) - plain
        found.append((sending.seconds(), longer))
    took = statistics.median(seconds for seconds, _ in found)
    longer = statistics.median(more for _, more in found)
    return {"beside": took, "lost": min(0.9, max(0.0, longer / took))}


class Sending:
    """An all-reduce that is timed while other work goes on."""

    def __init__(self, whole: Tensor):
        self._whole = whole
        self._events: list[torch.cuda.Event] = []
        self._times: list[float] = []

    def begin(self) -> None:
        if not self._whole.is_cuda:
            self._times.append(time.perf_counter())
            future = dist.all_reduce(self._whole, async_op=True).get_future()
            self._ended = future.then(lambda _: self._times.append(time.perf_counter()))
            return
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        with torch.cuda.stream(torch.cuda.Stream()):
            self._events[0].record()
            dist.all_reduce(self._whole)
            self._events[1].record()

    def seconds(self) -> float:
        """Once it has ended."""
        if self._events:
            return self._events[0].elapsed_time(self._events[1]) / 1000
        self._ended.wait()
        return self._times[1] - self._times[0]


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
