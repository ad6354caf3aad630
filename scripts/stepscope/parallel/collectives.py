"""Collectives by themselves: what they reach on these devices is the ceiling of any step's."""

import math
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from .place import Place
from .strategies import all_gather, reduce_scatter

MIB = 2**20
SIZES = {  # bytes of the whole tensor: the first shows the latency
    "cuda": [4096, *(MIB * 4**power for power in range(6))],
    "cpu": [4096, MIB // 4, MIB, 4 * MIB],
}
ROUNDS = 5
IN_A_ROW = 4
# Rows and columns of a product that runs beside, and its type.
PRODUCT = {"cuda": (8192, torch.bfloat16), "cpu": (256, torch.float32)}
OUTLASTING = 4  # times as long as the all-reduce beside them are the products


def measured(spec: dict, place: Place) -> list[dict]:
    """A row for each collective and size, each step of which every rank takes: seconds of one of a
    few in a row, the median of a few such rounds. Then one of a copy of the largest."""
    rows: list[dict] = []
    sizes = SIZES[place.device]
    for size in sizes:
        # Of fp32: a rank's part, and what all have together.
        part = torch.zeros(size // 4 // place.devices, device=place.device)
        whole = part.repeat(place.devices)
        calls = {
            "all_reduce": partial(dist.all_reduce, whole),
            "all_gather": partial(all_gather, whole, part),
            "reduce_scatter": partial(reduce_scatter, part, whole),
        }
        if size == sizes[-1]:
            calls["copy"] = partial(torch.empty_like(whole).copy_, whole)  # what buckets cost
        for name, call in calls.items():
            rows.append(
                {
                    "collective": name,
                    "bytes": whole.nbytes,
                    "seconds": _seconds(call, place),
                }
            )
    summed = rows[-len(calls)]  # the largest all-reduce
    summed |= beside_products(whole, summed["seconds"], place)
    return rows


def beside_products(whole: Tensor, alone: float, place: Place) -> dict[str, float]:
    """An all-reduce of a tensor, which takes `alone` seconds by itself, while products run:
    beside: its seconds. lost: the share of that time which the products lose."""
    clock = place.clock
    size, dtype = PRODUCT[place.device]
    a, b, out = torch.zeros(3, size, size, device=place.device, dtype=dtype)
    product = partial(torch.mm, a, b, out=out)
    once = _seconds(product, place)
    products = partial(repeat, math.ceil(OUTLASTING * alone / once), product)

    took = []
    longer = []
    for _ in range(ROUNDS):
        plain = clock.time(products)

        place.agreed()
        start = time.perf_counter()
        ended = sending(whole)
        products()
        clock.synchronize()
        longer.append(time.perf_counter() - start - plain)
        took.append(ended())
    beside = statistics.median(took)
    lost = statistics.median(longer) / beside
    return {"beside": beside, "lost": min(0.9, max(0.0, lost))}


def sending(whole: Tensor) -> Callable[[], float]:
    """Begin an all-reduce while other work goes on; gives what tells its seconds, once it has
    ended."""
    if not whole.is_cuda:
        began = time.perf_counter()
        future = dist.all_reduce(whole, async_op=True).get_future()
        ended = future.then(lambda _: time.perf_counter())
        return lambda: ended.wait() - began
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(torch.cuda.Stream()):
        start.record()
        dist.all_reduce(whole)
        end.record()
    return lambda: start.elapsed_time(end) / 1000


def repeat(count: int, call: Callable[[], object]) -> None:
    """Call it so many times."""
    for _ in range(count):
        call()


def _seconds(call: Callable[[], object], place: Place) -> float:
    in_a_row = partial(repeat, IN_A_ROW, call)
    in_a_row()
    found = []
    for _ in range(ROUNDS):
        place.agreed()  # all begin at about the same time
        found.append(place.clock.time(in_a_row) / IN_A_ROW)
    return statistics.median(found)
