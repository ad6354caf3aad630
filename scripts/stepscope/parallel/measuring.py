"""A cell of several devices: collectives, strategies in turns in several processes of each rank,
then each strategy by itself under a profiler, and replayed from a CUDA graph.

A variant for which a rank lacks the memory is left out, and the ranks start again: the others of
one that fails in a collective cannot go on.
"""

import contextlib
import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial

import pandas as pd
import torch
import torch.distributed as dist

from stepscope.axes import option
from stepscope.measure import gpu_alone, ladder, memory, models, steps
from stepscope.measure.clock import Clock
from stepscope.measure.found import Found, Outcome
from stepscope.measure.samples import Budget, Samples, take_turns
from stepscope.measure.telemetry import Telemetry
from stepscope.measure.workload import unsupported
from stepscope.model.chosen import load
from stepscope.model.shape import ModelShape
from stepscope.parallel import collectives
from stepscope.parallel.cell import ParallelMeasurement, combined, largest
from stepscope.parallel.collectives import repeat
from stepscope.parallel.place import Place
from stepscope.parallel.ranks import LateError, VariantError
from stepscope.parallel.recorded import Recording, recorded
from stepscope.parallel.strategies import STRATEGIES, Replica
from stepscope.trace import apart

ALONE = "alone"  # the variant that all others are compared with
PHASED, PROFILED = 3, 3  # steps
CAPTURE_SECONDS = 240.0  # after which capturing is given up: a rank may wait for one that cannot
ENERGY_SECONDS = 2 * gpu_alone.LEAST_SECONDS  # a second series on one rank alone would hang


@dataclass
class Examined(Found):
    """What a rank found of each variant by itself. memory: rows by variant and point of a step, in
    bytes."""

    recordings: dict[str, Recording] = field(default_factory=dict)
    memory: list[dict] = field(default_factory=list)


def measure(cell: ParallelMeasurement) -> tuple[list[Found], dict]:
    """(what each process found, the study's own part of the summary: checks and tables)."""
    spec = cell.spec
    failed = dict[str, VariantError]()
    last = Found()
    if reason := cell.missing():
        for variant in spec["variants"]:
            last.status(variant["name"], Outcome("unsupported", reason), mode="step")
        return [last], {}
    if spec["device"] == "cpu":  # imports torch's compiler, once for all ranks
        load("optimizer", option(spec, "optimizer")).make([torch.zeros(1)])

    def together(work: Callable, seconds: float | None = None) -> list:
        """Of the variants that have not failed; again without the one that fails now."""
        while left := [one for one in spec["variants"] if one["name"] not in failed]:
            try:
                return cell.together(partial(work, spec | {"variants": left}), seconds)
            except VariantError as error:
                print(f"{error.variant}: {error.status}: {error.reason}", flush=True)
                failed[error.variant] = error
        return []

    sent = cell.together(collectives.measured)
    found = []
    for process in range(1, spec["processes"] + 1):
        print(f"process {process} of {spec['processes']}, on {spec['devices']} devices", flush=True)
        if of_ranks := together(partial(timed, process)):
            found.append(combined(of_ranks))
    examined: list[Examined] = together(examine)
    if examined:
        last = combined(examined)
    found.append(last)
    if examined and spec["device"] == "cuda":
        try:
            found.append(combined(together(replayed, CAPTURE_SECONDS)))
        except (LateError, SystemExit) as given_up:  # what cannot be had may not fail the cell
            last.status(ALONE, Outcome("unsupported", str(given_up)), mode="host-free")
    for name, why in failed.items():
        last.status(name, Outcome(why.status, why.reason), mode="step")
    tables = {
        "collectives": largest(sent, "seconds"),
        "ranks": rank_rows(examined),
        "memory": largest([one.memory for one in examined], "held"),
    }
    return found, {"checks": last.checks, "tables": tables}


@contextlib.contextmanager
def attempt(name: str) -> Iterator[None]:
    """Within it what a variant cannot have is its result: it runs out of memory, has not an option,
    or its loss is no finite number."""
    outcome = Outcome()
    with steps.caught(outcome):
        yield
    if not outcome.is_ok:
        raise VariantError(name, outcome.status, outcome.reason)


def built(spec: dict, variant: dict, place: Place) -> Replica:
    """A variant's replica on a rank, ready for its first step."""
    options = spec | variant
    if reason := unsupported(options):
        raise models.Unsupported(reason)
    return STRATEGIES[options["strategy"]](options, place)


def whole_step(work: Replica) -> None:
    """One step, not timed."""
    steps.free(work)()
    work.drop_graph()


def forget(device: str) -> None:
    """Give back what a variant that is no longer referred to has held. NCCL keeps what it sent
    last until the next collective: a bucket as large as all gradients, of torch's DDP."""
    gc.collect()
    dist.all_reduce(torch.zeros(1, device=device))
    memory.release(device)


def timed(process: int, spec: dict, place: Place, telemetry: Telemetry) -> Found:
    """One process of a rank: all variants in turns where they fit the memory together, else one
    after another, in another order in the next process."""
    samples = Samples(telemetry, process)
    clock = Clock(place.device)
    fit = fit_together(spec, place)
    works: dict[str, Replica] = {}

    def run(name: str, turn: int = 0, kind: str = "free", is_warmup: bool = False) -> None:
        own = works[name]
        for work in works.values():
            if work is not own:  # the gradients of all need not be there at once
                work.clear_gradients()
        step = steps.timed(own, "step", kind, clock)
        counted = turn if fit and turn else None
        with attempt(name):
            own.use()
            samples.run(name, step, is_warmup, mode="step", kind=kind, round=counted)

    for variants in ladder.groups(ladder.ordered(spec["variants"], process), fit):
        for variant in variants:
            name = variant["name"]
            with attempt(name):
                works[name] = built(spec, variant, place)
            repeat(max(1, spec["warmup"]), partial(run, name, is_warmup=True))
        turns = {name: partial(run, name) for name in works}
        take_turns(turns, Budget.of(spec), clock=lambda: place.agreed(time.perf_counter()))
        if ALONE in works:  # what the prediction begins with; the same number on all ranks
            repeat(PHASED, partial(run, ALONE, kind="phased"))
        works.clear()
        forget(place.device)
    return Found(process, samples.rows)


def fit_together(spec: dict, place: Place) -> bool:
    """Whether all variants fit a device's memory at once, as rungs of a ladder do; a fifth is left
    for buckets. Ranks on a CPU share the host's."""
    variants = [{"precision": spec["precision"]} | one for one in spec["variants"]]
    shared = 1 if place.device == "cuda" else place.devices
    free = place.agreed(0.8 * memory.capacity(place.device) / shared)
    return ladder.fit_together(spec | {"variants": variants}, int(free))


def examine(spec: dict, place: Place, telemetry: Telemetry) -> Examined:
    """Each variant by itself: what it computes, its memory, its energy, and steps under a
    profiler, which slows down all that comes after it, so that nothing here is timed."""
    found = Examined(spec["processes"])
    count = ModelShape.of(spec).parameters
    for variant in spec["variants"]:
        name = variant["name"]
        before = memory.held(place.device)
        with attempt(name):
            work = built(spec, variant, place)
            held = {}
            if place.device == "cuda":
                held["init"] = allocated()
            found.checks[name] = computed(work)
            repeat(max(1, spec["warmup"]), partial(whole_step, work))
            if place.device == "cuda":
                held |= points(work, allocated)
                memory.reset_peaks(place.device)
                whole_step(work)
                found.sizes(name, memory.peaks(place.device, before), mode="step")
                _energy(work, name, place, telemetry, found)
            for point, size in held.items():
                formula = work.held(count, place.devices, point)
                own = size - before["peak_allocated"]
                row = {"variant": name, "point": point, "held": own, "formula": formula}
                found.memory.append(row)
            found.recordings[name] = recorded(partial(whole_step, work), PROFILED, place)
            del work  # no variable may hold it when memory is given back
        forget(place.device)
        found.status(name, mode="step")
    return found


def allocated() -> int:
    """Bytes that tensors of this process hold on the GPU now."""
    gc.collect()
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated()


def points(work: Replica, held: Callable[[], int]) -> dict[str, int]:
    """Bytes that are held before the optimizer of a step, and after it."""
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
    squares = 0.0
    sample = []
    work.whole()
    entries = math.ceil(steps.SAMPLED / len(work.parameters))  # of each
    for gradient in work.gradients():
        squares += float(gradient.norm()) ** 2
        every = math.ceil(gradient.numel() / entries)
        sample += gradient.flatten()[::every].float().tolist()
    work.phases("step")["optimizer"]()
    work.clear_gradients()
    loss = work.whole()
    return {"loss": loss, "gradient_norm": math.sqrt(squares), "gradient_sample": sample}


def _energy(work: Replica, name: str, place: Place, telemetry: Telemetry, found: Found) -> None:
    """Joules a step. All ranks run as many steps as the first one wants: so many that the series is
    long enough for the counter after one round."""
    run = partial(whole_step, work)
    clock = Clock(place.device)
    each = statistics.median(clock.time(run) for _ in range(3))
    count = math.ceil(place.agreed(ENERGY_SECONDS / each))
    own = Found()
    gpu_alone.energy(partial(repeat, count, run), name, own, telemetry)
    for value in own.values:
        found.value(name, "energy", "J", value["value"] / count, mode="step")


def replayed(spec: dict, place: Place, telemetry: Telemetry) -> Found:
    """Host-free steps: collectives and all replayed from a CUDA graph, where a strategy allows."""
    samples = Samples(telemetry, spec["processes"])
    found = Found(spec["processes"], samples.rows)
    for variant in spec["variants"]:
        if STRATEGIES[variant["strategy"]].is_capturable:
            work = built(spec, variant, place)
            repeat(max(1, spec["warmup"]), partial(whole_step, work))
            # No time for more than the fewest replays, whose number is the same on all ranks.
            gpu_alone.host_free(work, variant["name"], samples, found, seconds=0.0)
            del work
            forget(place.device)
    return found


def rank_rows(examined: list[Examined]) -> list[dict]:
    """A row for each variant and rank: the means of the parts of its steps under the profiler, in
    seconds; `residual` is what they leave of its clock."""
    if not examined or ALONE not in examined[0].recordings:
        return []
    references = []
    for one in examined:
        ordered = sorted(one.recordings[ALONE].steps, key=apart.busy_time)
        references.append(ordered[PROFILED // 2])
    rows = []
    for name in examined[0].recordings:
        recordings = [one.recordings[name] for one in examined]
        of_ranks = zip(*(one.steps for one in recordings), strict=True)
        parts = [apart.take_apart(list(step), references) for step in of_ranks]
        for rank, recording in enumerate(recordings):
            means = pd.DataFrame(asdict(step[rank]) for step in parts).mean()
            total = means[[*apart.ADDING_UP]].sum()
            residual = recording.clock - total - recording.outside
            row = {"variant": name, "rank": rank, "clock": recording.clock, **means.to_dict()}
            rows.append(row | {"residual": float(residual)})
    return rows
