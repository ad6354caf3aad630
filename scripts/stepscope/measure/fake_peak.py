"""The peak of memory of a step of one's own before it is run: every operator runs in shapes alone,
which takes neither memory nor a GPU, while torch's memory tracker adds up what is alive.

Operators are the CPU's. What they save is what a GPU's save, but for scratch memory, for rows of
statistics that a kernel rounds up, and for PyTorch's log-softmax under autocast, which reads 16
bits on a GPU and is given a copy in fp32 here.
"""

import json
import re
from argparse import Namespace
from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch._subclasses import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker

from stepscope.formulas import fits
from stepscope.measure import steps
from stepscope.measure.workload import Workload
from stepscope.model.own.loading import imported, named_errors
from stepscope.model.own.reference import ModelError, Unsupported, parse

# A model of one's own has its own loss, and a compiler wants real tensors.
OPTIONS = ("precision", "attention", "optimizer", "checkpoint")
USED = ("context", "batch", *OPTIONS)
DOING = "it does not run in shapes alone, on a CPU and without values, as .item() wants"
STEPS = 2  # the first one makes the optimizer's state
TOTAL = "Total"
TRACKED = (torch.nn.Module, torch.optim.Optimizer)  # our own AdamW is neither


class Found(NamedTuple):
    """A peak, bytes. terms: those of each `category`. modules: of each what is alive at most while
    it runs (`peak`), and what is left after its forward pass that was not there before
    (`keeps`)."""

    bytes: int
    terms: list[dict[str, Any]]
    modules: list[dict[str, Any]]


def found(given: Namespace) -> Found:
    """The peak of a model or a step of one's own. given: `step`, or `model` with `keys`, context,
    batch and options.

    Raises ValueError, in one line, for what the model or the step cannot be or have.
    """
    fits.check_own(given, () if given.step else USED)
    if given.step and not re.fullmatch(r".+\.py:[^\W\d]\w*", given.step):
        raise ValueError(f"--step {given.step!r}: write FILE.py:FUNCTION")
    try:
        with named_errors(parse(given.step or given.model), DOING):
            if given.step:
                return of_step(given.step)
            spec = {name: getattr(given, name) for name in ("model", *USED)}
            keys = json.dumps(given.keys)
            return of_spec(spec | {"device": "cpu", "seed": 0, "model_keys": keys})
    except (ModelError, Unsupported) as error:
        raise ValueError(str(error)) from None


def of_spec(spec: dict[str, Any]) -> Found:
    """That of whole steps of a cell's spec, whose device is "cpu"."""
    with FakeTensorMode(allow_non_fake_inputs=True):
        work = Workload(spec)
        return _tracked(steps.free(work), work.model.module, *work.optimizers)


def of_step(reference: str) -> Found:
    """The same of FILE:FUNCTION, which returns a step: a function of nothing that runs forward,
    backward and the optimizer. Raises ModelError where there is no such function."""
    given = parse(reference)
    make = getattr(imported(given), given.function, None)
    if make is None:
        raise ModelError(f"step {reference!r}: there is no such function; say FILE.py:FUNCTION")
    with FakeTensorMode(allow_non_fake_inputs=True):
        tracker = MemTracker()
        with tracker:  # what the function makes belongs to the peak
            step = make()
        if not callable(step):
            raise ModelError(f"step {reference!r}: it returns no function, but {step!r}")
        return _tracked(step, tracker=tracker)


def _tracked(step: Callable[[], object], *made: Any, tracker: MemTracker | None = None) -> Found:
    """made: modules and optimizers that are there before the tracker is."""
    tracker = tracker or MemTracker()
    tracker.track_external(*[each for each in made if isinstance(each, TRACKED)])
    for _ in range(STEPS):
        tracker.reset_mod_stats()
        with tracker:
            step()
    snapshot = _fullest(tracker.get_tracker_snapshot("peak"))
    sizes = {str(getattr(kind, "value", kind)): size for kind, size in snapshot.items() if size}
    size = sizes.pop(TOTAL)
    names = fits.TERMS["tracked"]
    terms = [{"category": names[kind], "bytes": each} for kind, each in sizes.items()]
    modules = [_of_module(each) for each in tracker.memory_tracking.values()]
    return Found(size, terms, sorted(modules, key=lambda each: -each["peak"]))


def _fullest(snapshot: dict[torch.device, dict[str, int]]) -> dict[str, int]:
    """That of the device with most."""
    return max(snapshot.values(), key=itemgetter(TOTAL))


def _of_module(stats: Any) -> dict[str, Any]:
    """What the tracker saw of a module in the last step."""
    alive = {
        state.name: _fullest(snapshots[-1])[TOTAL] for state, snapshots in stats.snapshots.items()
    }
    peak = max(size for name, size in alive.items() if name.startswith("PEAK"))
    return {"module": stats.mod_fqn, "peak": peak, "keeps": alive["POST_FW"] - alive["PRE_FW"]}
