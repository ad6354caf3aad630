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
from stepscope.machine import gpus
from stepscope.machine.memory import available_memory
from stepscope.measure import gpu_alone, ladder, memory, models, steps
from stepscope.measure.clock import Clock
from stepscope.measure.found import Found, Outcome
from stepscope.measure.samples import Samples, take_turns
from stepscope.measure.telemetry import Telemetry
from stepscope.measure.workload import unsupported
from stepscope.model.chosen import load
from stepscope.model.shape import ModelShape
from stepscope.parallel import collectives, footprint
from stepscope.parallel.cell import ParallelMeasurement, combined
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
class Examined:
    """What a rank found of each variant by itself. memory: rows by variant and point of a step, in
    bytes."""

    found: Found
    recordings: dict[str, Recording] = field(default_factory=dict)
    memory: list[dict] = field(default_factory=list)


def measure(cell: ParallelMeasurement) -> tuple[list[Found], dict]:
    """(what each process found, the study's own part of the summary: checks and tables)."""
    if reason := cell.missing():
        return cell.refuse(reason), {}
    spec = cell.spec
    failed = dict[str, VariantError]()
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
    last = combined([one.found for one in examined]) if examined else Found()
    found = [*found, last] if examined else [last]
    if examined and spec["device"] == "cuda":
        try:
            found.append(combined(together(replayed, CAPTURE_SECONDS)))
        except (LateError, SystemExit) as given_up:  # what cannot be had may not fail the cell
            last.status(ALONE, Outcome("unsupported", str(given_up)), mode="host-free")
    for name, why in failed.items():
        last.status(name, Outcome(why.status, why.reason), mode="step")
    tables = {
        "collectives": collectives.largest(sent, "seconds"),
        "ranks": rank_rows(examined),
        "memory": collectives.largest([one.memory for one in examined], "held"),
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
    options = ladder.spec_of(spec, {"precision": spec["precision"]} | variant)
    if reason := unsupported(options):
        raise models.Unsupported(reason)
    work = STRATEGIES[options["strategy"]](options, place)
    work.use()
    return work


def warm_up(work: Replica) -> None:
    """The steps before those that are looked at."""
    for _ in range(max(1, work.spec["warmup"])):
        whole_step(work)


def whole_step(work: Replica) -> None:
    """One step, not timed."""
    steps.free(work)()
    work.drop_graph()


def forget(device: str) -> None:
    """Give back what a variant that is no longer referred to has held. NCCL keeps what it sent
    last until the next collective: a bucket as large as all gradients, of torch's DDP."""
    gc.collect()
    if device == "cuda":
        dist.all_reduce(torch.zeros(1, device=device))
    memory.release(device)


def timed(process: int, spec: dict, place: Place, telemetry: Telemetry) -> Found:
    """One process of a rank."""
    return _Process(process, spec, place, telemetry).measure()


class _Process(steps.Process):
    """All variants in turns where they fit the memory together, else one after another, in another
    order in the next process."""

    def __init__(self, process: int, spec: dict, place: Place, telemetry: Telemetry):
        super().__init__(spec, telemetry, process)
        self._place = place
        self._together = fit_together(spec)
        self._variants = ladder.ordered(spec["variants"], process)
        self._works: dict[str, Replica] = {}

    def measure(self) -> Found:
        for variants in ladder.groups(self._variants, self._together):
            self._group(variants)
            self._works.clear()
            forget(self._device)
        for variant in self._variants:
            self.found.status(variant["name"], mode="step")
        return self.found

    def _group(self, variants: list[dict]) -> None:
        for variant in variants:
            name = variant["name"]
            with attempt(name):
                self._works[name] = built(self._spec, variant, self._place)
            for _ in range(max(1, self._spec["warmup"])):
                self._run(name, is_warmup=True)
        turns: dict[str, Callable] = {name: partial(self._run, name) for name in self._works}
        agreed = self._place.agreed
        take_turns(turns, self._budget, clock=lambda: agreed(time.perf_counter()))
        if ALONE in self._works:  # what the prediction begins with; the same number on all ranks
            for _ in range(PHASED):
                self._run(ALONE, kind="phased")

    def _run(self, name: str, number: int = 0, kind: str = "free", is_warmup: bool = False) -> None:
        own = self._works[name]
        for work in self._works.values():
            if work is not own:  # the gradients of all need not be there at once
                work.clear_gradients()
        turn = number if self._together else 0
        step = steps.timed(own, "step", kind, self._clock)
        with attempt(name):
            own.use()
            self._samples.run(name, step, is_warmup, mode="step", kind=kind, round=turn or None)


def fit_together(spec: dict) -> bool:
    """Whether all variants fit a device's memory at once, as rungs of a ladder do; a fifth is left
    for buckets."""
    variants = [{"precision": spec["precision"]} | one for one in spec["variants"]]
    return ladder.fit_together(spec | {"variants": variants}, int(0.8 * free_memory(spec)))


def free_memory(spec: dict) -> float:
    """Bytes that a rank has for itself. Ranks on a CPU share the host's."""
    if spec["device"] == "cuda":
        return gpus.visible_gpus()[0].memory_mib * 2**20
    return available_memory() / spec["devices"]


def examine(spec: dict, place: Place, telemetry: Telemetry) -> Examined:
    """Each variant by itself: what it computes, its memory, its energy, and steps under a
    profiler, which slows down all that comes after it, so that nothing here is timed."""
    examined = Examined(Found(spec["processes"]))
    for variant in spec["variants"]:
        name = variant["name"]
        with attempt(name):
            _examine(spec, variant, place, telemetry, examined)
        forget(place.device)
        examined.found.status(name, mode="step")
    return examined


def _examine(
    spec: dict, variant: dict, place: Place, telemetry: Telemetry, examined: Examined
) -> None:
    name = variant["name"]
    found = examined.found
    is_gpu = place.device == "cuda"
    before = memory.held(place.device)
    work = built(spec, variant, place)
    held = {"init": _held(before)} if is_gpu else {}
    found.checks[name] = computed(work)
    warm_up(work)
    if is_gpu:
        held |= points(work, partial(_held, before))
        memory.reset_peaks(place.device)
        whole_step(work)
        found.sizes(name, memory.peaks(place.device, before), mode="step")
        _energy(work, name, place, telemetry, found)
    count = ModelShape.of(spec).parameters
    for point, size in held.items():
        formula = footprint.held(variant["strategy"], count, place.devices, point)
        row = {"variant": name, "point": point, "held": size, "formula": formula}
        examined.memory.append(row)
    run = partial(whole_step, work)
    examined.recordings[name] = recorded(run, PROFILED, place.device, place.agreed)


def _held(before: dict[str, int]) -> int:
    gc.collect()
    torch.cuda.synchronize()
    name = "peak_allocated"
    return memory.held("cuda")[name] - before[name]


def points(work: Replica, held: Callable[[], int]) -> dict[str, int]:
    """Bytes that are held before the optimizer of a step, and after it."""
    found = {}
    work.clear_gradients()
    for name, phase in work.phases("step").items():
        if name == "optimizer":
            work.drop_graph()
            found["before optimizer"] = held()
        phase()
    found["after"] = held()
    return found


def computed(work: Replica) -> dict:
    """What a strategy computes, as the ladder's checks have it: gradients of the whole batch, and
    the loss that it has once they have updated the weights."""
    squares = 0.0
    sample = []
    work.clear_gradients()
    work.whole()
    entries = math.ceil(steps.SAMPLED / len(work.parameters))  # of each
    for gradient in work.gradients():
        squares += float(gradient.norm()) ** 2
        every = math.ceil(gradient.numel() / entries)
        sample += gradient.flatten()[::every].float().tolist()
    work.phases("step")["optimizer"]()
    work.clear_gradients()
    loss = work.whole()
    work.drop_graph()
    work.clear_gradients()
    return {"loss": loss, "gradient_norm": math.sqrt(squares), "gradient_sample": sample}


def _energy(work: Replica, name: str, place: Place, telemetry: Telemetry, found: Found) -> None:
    """Joules a step. All ranks run as many steps as the first one wants: so many that the series is
    long enough for the counter after one round."""
    clock = Clock(place.device)
    each = statistics.median(clock.time(partial(whole_step, work)) for _ in range(3))
    count = math.ceil(place.agreed(ENERGY_SECONDS / each))

    def series() -> None:
        for _ in range(count):
            whole_step(work)

    own = Found(found.process)
    gpu_alone.energy(series, name, own, telemetry)
    for value in own.values:
        found.value(name, "energy", "J", value["value"] / count, mode="step")


def replayed(spec: dict, place: Place, telemetry: Telemetry) -> Found:
    """Host-free steps: collectives and all replayed from a CUDA graph, where a strategy allows."""
    samples = Samples(telemetry, spec["processes"])
    found = Found(spec["processes"], samples.rows)
    for variant in spec["variants"]:
        if STRATEGIES[variant["strategy"]].is_capturable:
            work = built(spec, variant, place)
            warm_up(work)
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
    rows = []
    references = [_typical(one.recordings[ALONE].steps) for one in examined]
    for name in examined[0].recordings:
        recordings = [one.recordings[name] for one in examined]
        of_ranks = zip(*(one.steps for one in recordings), strict=True)
        parts = [apart.take_apart(list(step), references) for step in of_ranks]
        for rank, recording in enumerate(recordings):
            own = [step[rank] for step in parts]
            means = pd.DataFrame(map(asdict, own)).mean()
            clock = statistics.fmean(recording.clock)
            total = statistics.fmean(one.total for one in own)
            residual = clock - total - recording.outside / len(own)
            row = {"variant": name, "rank": rank, "clock": clock, **means.to_dict()}
            rows.append(row | {"residual": residual})
    return rows


def _typical(recorded_steps: list[apart.Step]) -> apart.Step:
    """The step whose busy time is the median."""
    return sorted(recorded_steps, key=apart.busy_time)[len(recorded_steps) // 2]
