"""A cell of several devices: collectives, strategies in turns in several processes of each rank,
then each strategy by itself under a profiler, and replayed from a CUDA graph.

A variant for which a rank lacks the memory is left out, and the ranks start again: the others of
one that fails in a collective cannot go on.
"""

import contextlib
import gc
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import pandas as pd
import torch
import torch._dynamo
import torch.distributed as dist

from stepscope.measure import gpu_alone, ladder, memory, steps
from stepscope.measure.found import Found, Outcome
from stepscope.measure.samples import Budget, Samples, take_turns
from stepscope.model.shape import ModelShape
from stepscope.trace import apart
from stepscope.trace.kernel_categories import category_of

from .cell import ParallelMeasurement, combined, largest
from .collectives import measured, repeat
from .place import Place
from .ranks import VariantError
from .recorded import PROFILED, Recording, recorded
from .strategies import STRATEGIES, Replica

ALONE = "alone"  # the variant that all others are compared with
PHASED = 3  # steps
CAPTURE_SECONDS = 240.0  # after which capturing is given up: a rank may wait for one that cannot


@dataclass
class Examined(Found):
    """What a rank found of each variant by itself. memory: rows by variant and point of a step, in
    bytes."""

    recordings: dict[str, Recording] = field(default_factory=dict)
    memory: list[dict] = field(default_factory=list)


def measure(cell: ParallelMeasurement) -> tuple[list[Found], dict]:
    """(what each process found, the study's own part of the summary: checks and tables)."""
    spec = cell.spec
    sent = cell.together(measured)
    found = [
        combined(cell.together(partial(timed, process)))
        for process in range(1, spec["processes"] + 1)
    ]
    examined = cell.together(examine)
    last = combined(examined)
    found.append(last)
    if examined and spec["device"] == "cuda":
        try:
            found.append(combined(cell.together(replayed, CAPTURE_SECONDS)))
        except SystemExit as given_up:  # what cannot be had may not fail the cell
            last.status(ALONE, Outcome("unsupported", str(given_up)), mode="host-free")
    for name, why in cell.failed.items():
        last.status(name, why, mode="step")
    tables = step_tables(examined)
    tables["collectives"] = largest(sent, "seconds")
    tables["memory"] = largest([one.memory for one in examined], "held")
    return found, {"checks": last.checks, "tables": tables}


@contextlib.contextmanager
def attempt(name: str) -> Iterator[None]:
    """Within it what a variant cannot have is its result: it runs out of memory, has not an option,
    or its loss is no finite number."""
    with steps.caught() as outcome:
        yield
    if not outcome.is_ok:
        raise VariantError(name, outcome)


def whole_steps(work: Replica, count: int = 1) -> None:
    """So many steps, at least one, not timed."""
    step = steps.free(work)
    for _ in range(max(1, count)):
        step()
        work.drop_graph()


def forget(place: Place) -> None:
    """Give back what a variant that is no longer referred to has held. NCCL keeps what it sent
    last until the next collective: a bucket as large as all gradients, of torch's DDP."""
    gc.collect()
    dist.all_reduce(torch.zeros(1, device=place.device))
    memory.release(place.device)


def timed(process: int, spec: dict, place: Place) -> Found:
    """One process of a rank: all variants in turns where they fit the memory together, else one
    after another, in another order in the next process."""
    measuring = steps.Process(spec, place.telemetry, process)
    free = 0.8 * memory.capacity(place.device)  # a fifth is left for buckets
    if place.device == "cpu":  # which ranks share
        free /= place.devices
    fit = ladder.fit_together(spec, int(place.agreed(free)))
    works: dict[str, Replica] = {}

    def run(
        name: str, turn: int | None = None, kind: str = "free", is_warmup: bool = False
    ) -> None:
        own = works[name]
        for work in works.values():
            if work is not own:  # the gradients of all need not be there at once
                work.clear_gradients()
        with attempt(name):
            own.use()
            in_round = turn if fit else None
            measuring.sample(own, name, kind=kind, warmup=is_warmup, number=in_round)

    for group in ladder.groups(ladder.ordered(spec["variants"], process), fit):
        for variant in group:
            name = variant["name"]
            with attempt(name):
                works[name] = STRATEGIES[variant["strategy"]](spec | variant, place)
            repeat(max(1, spec["warmup"]), partial(run, name, is_warmup=True))

        turns = {name: partial(run, name) for name in works}
        take_turns(
            turns,
            Budget.of(spec),
            clock=lambda: place.agreed(time.perf_counter()),
        )
        if ALONE in works:  # what the prediction begins with; the same number on all ranks
            repeat(PHASED, partial(run, ALONE, kind="phased"))
        works.clear()
        forget(place)
    return measuring.found


def examine(spec: dict, place: Place) -> Examined:
    """Each variant by itself: what it computes, its memory, its energy, and steps under a
    profiler, which slows down all that comes after it, so that nothing here is timed."""
    found = Examined(spec["processes"])
    shape = ModelShape.of(spec)
    for variant in spec["variants"]:
        name = variant["name"]
        before = memory.held(place.device)
        with attempt(name):
            work = STRATEGIES[variant["strategy"]](spec | variant, place)
            held = {"init": holding(work, before)}

            found.checks[name] = computed(work)
            whole_steps(work, spec["warmup"])
            held |= points(work, partial(holding, work, before))
            if place.device == "cuda":
                memory.reset_peaks(place.device)
                whole_steps(work)
                found.sizes(name, memory.peaks(place.device, before), mode="step")
                # As many as the first rank wants: so many that the series is long enough for the
                # counter after one round; a second one on one rank alone would hang.
                each = place.clock.time(partial(whole_steps, work, PROFILED)) / PROFILED
                count = math.ceil(place.agreed(2 * gpu_alone.LEAST_SECONDS / each))
                gpu_alone.energy(
                    partial(whole_steps, work, count), name, found, place.telemetry, count
                )

            for point, sizes in held.items():
                formulas = work.formulas(shape.parameters, place.devices, point)
                for part, size in sizes.items():
                    row = {
                        "variant": name,
                        "point": point,
                        "part": part,
                        "held": size,
                        "formula": formulas[part],
                    }
                    found.memory.append(row)

            found.recordings[name] = recorded(partial(whole_steps, work), place)
            del work  # no variable may hold it when memory is given back
        forget(place)
        found.status(name, mode="step")
    return found


def holding(work: Replica, before: dict[str, int]) -> dict[str, int]:
    """Bytes that a rank holds now, by part; on a GPU also `all` that its tensors hold beyond what
    was there `before`."""
    found = work.parts()
    if work.spec["device"] == "cuda":
        gc.collect()
        torch.cuda.synchronize()
        found["all"] = torch.cuda.memory_allocated() - before["peak_allocated"]
    return found


def points(work: Replica, held: Callable[[], dict[str, int]]) -> dict[str, dict[str, int]]:
    """What is held before the optimizer of a step, and after it."""
    work.clear_gradients()
    forward, backward, optimizer = work.phases("step").values()
    forward()
    backward()
    work.drop_graph()
    before = held()
    optimizer()
    return {"before optimizer": before, "after": held()}


def computed(work: Replica) -> dict:
    """What a strategy computes, as the ladder's checks have it: gradients of the whole batch, and
    the loss that it has once they have updated the weights."""
    work.whole()
    gradients = [*work.gradients()]
    work.phases("step")["optimizer"]()
    work.clear_gradients()
    return steps.check_of(work.whole(), gradients)


def replayed(spec: dict, place: Place) -> Found:
    """Host-free steps: collectives and all replayed from a CUDA graph, where a strategy allows."""
    samples = Samples(place.telemetry, spec["processes"])
    for variant in spec["variants"]:
        strategy = STRATEGIES[variant["strategy"]]
        if strategy.is_capturable:
            work = strategy(spec | variant, place)
            whole_steps(work, spec["warmup"])
            # No time for more than the fewest replays, whose number is the same on all ranks.
            steps.tidy(work, place.device)  # room for what the capture needs
            gpu_alone.host_free(work, variant["name"], samples, seconds=0.0)
            del work
            forget(place)
    return samples.found


def step_tables(examined: list[Examined]) -> dict[str, list[dict]]:
    """Of each variant and rank, in seconds a step under the profiler.

    ranks: the means of the parts of its steps; `residual` is what they leave of its clock. slowed:
    by category of kernels, `beside`: what those that one device's step has too spend beside
    communication, and `slowed`: how much longer they take than there.
    """
    if not examined or ALONE not in examined[0].recordings:
        return {}
    # Of each rank one device's step, neither the quickest nor the slowest.
    references = [
        sorted(one.recordings[ALONE].steps, key=apart.busy_time)[PROFILED // 2] for one in examined
    ]
    rows = []
    kernels = []
    for name in examined[0].recordings:
        recordings = [one.recordings[name] for one in examined]
        for steps_of in zip(*(one.steps for one in recordings), strict=True):
            for rank, parts in enumerate(apart.take_apart(list(steps_of), references)):
                own, step = recordings[rank], steps_of[rank]
                row = {"variant": name, "rank": rank, "clock": own.clock} | parts
                row["residual"] = own.clock - (step.end - step.start) - own.outside
                rows.append(row)

                both = apart.matched(step, references[rank])
                kernels.append(both.assign(variant=name, rank=rank))

    means = pd.DataFrame(rows).groupby(["variant", "rank"], sort=False).mean()

    # By how much the same kernels take longer where something is sent beside them.
    beside = pd.concat(kernels).query("beside > 0")
    beside["slowed"] = beside["own"] - beside["before"]
    beside["category"] = beside["name"].map(category_of)
    by = ["variant", "rank", "category"]
    sums = beside.groupby(by, sort=False)[["beside", "slowed"]].sum() / PROFILED
    return {
        "ranks": means.reset_index().to_dict("records"),
        "slowed": sums.reset_index().to_dict("records"),
    }
