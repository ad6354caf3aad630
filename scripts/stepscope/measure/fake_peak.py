"""The peak of memory of a step of one's own before it is run: every operator runs in shapes alone,
which takes neither memory nor a GPU, while torch's memory tracker adds up what is alive.

Operators are the CPU's. What they save is what a GPU's save, but for scratch memory, for rows of
statistics that a kernel rounds up, and for PyTorch's log-softmax under autocast, which reads 16
bits on a GPU and is given a copy in fp32 here.
"""

import contextlib
import json
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch._subclasses import FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils._pytree import tree_leaves
from torch.utils.hooks import RemovableHandle

from stepscope.formulas import fits
from stepscope.model.own import stepping
from stepscope.model.own.loading import named_errors
from stepscope.model.own.reference import ModelError, Unsupported, parse

from . import memory, steps
from .workload import Workload

# A model of one's own has its own loss, and a compiler wants real tensors.
OPTIONS = ("precision", "attention", "optimizer", "checkpoint")
PLACE = ("context", "batch")
USED = (*PLACE, *OPTIONS)
TRACKED = (torch.nn.Module, torch.optim.Optimizer)  # what the tracker knows
DOING = "it does not run in shapes alone, on a CPU and without values, as .item() wants"
TOTAL = "Total"


class Tracker(MemTracker):
    """torch's, that also takes frozen parameters, and several forward passes in a step: of a module
    it knows the latest."""

    def _track_module_params_and_buffers(self, module: torch.nn.Module, *given: Any, **named: Any):
        no_hooks = RemovableHandle(OrderedDict()), RemovableHandle(OrderedDict())
        for parameter in module.parameters():
            if not parameter.requires_grad:  # its gradient can have no hook
                self._param_to_grad_hook_handles.setdefault(parameter, no_hooks)
        return super()._track_module_params_and_buffers(module, *given, **named)

    def _pre_fw_hook(self, module: torch.nn.Module, inputs: Any) -> None:
        around = self._mod_tracker.parents - {self._mod_tracker.get_known_fqn(module)}
        if around == {"Global"} and not self._mod_tracker.is_bw:
            for part in module.modules():
                self.memory_tracking.pop(part, None)
        super()._pre_fw_hook(module, inputs)


class Found(NamedTuple):
    """A peak, bytes. terms: those of each `category`. modules: of each what is alive at most while
    it runs (`peak`), and what is left after its forward pass that was not there before
    (`keeps`)."""

    bytes: int
    terms: list[dict[str, Any]]
    modules: list[dict[str, Any]]


def found(given: Namespace, words: Iterable[str] = ()) -> Found:
    """The peak of a model or a step of one's own. given: `step` or `model`, its `keys`, context,
    batch, and of a model options. words: what was typed.

    Raises ValueError, in one line, for what the model or the step cannot be or have.
    """
    fits.check_own(given, PLACE if given.step else USED, words)
    try:
        kind = "step" if given.step else "model"
        with named_errors(parse(given.step or given.model, kind), DOING):
            if given.step:
                return of_step(given)
            spec = {name: getattr(given, name) for name in ("model", *USED)}
            keys = json.dumps(given.keys)
            return of_spec(spec | {"device": "cpu", "seed": 0, "model_keys": keys})
    except (ModelError, Unsupported) as error:
        raise ValueError(str(error)) from None
    except (MemoryError, RuntimeError) as error:  # out of memory, the one that is not named above
        raise ValueError(f"{given.step or given.model}: {memory.reason(error)}") from None


@contextlib.contextmanager
def _shapes_alone() -> Iterator[None]:
    """Within it tensors have shapes and no values, and a module can still be given another type or
    device: torch swaps its tensors for that, which those of shapes alone do not allow."""

    def overwritten(kept: torch.Tensor, other: torch.Tensor) -> None:
        kept.data = other.data

    is_fake = FakeTensorMode(allow_non_fake_inputs=True)
    with is_fake, mock.patch.object(torch.utils, "swap_tensors", overwritten):
        yield


def of_spec(spec: dict[str, Any]) -> Found:
    """That of whole steps of a cell's spec, whose device is "cpu"."""
    with _shapes_alone():
        work = Workload(spec)
        tracker = Tracker()
        tracker.track_external(work.model.module)
        return _tracked(steps.free(work), tracker, lambda: tracker.track_external(_kept(work)))


def _kept(work: Workload) -> torch.optim.Optimizer:
    """What a cell's optimizers keep, as torch's own would: the tracker knows no others."""
    parameters = list(work.model.module.parameters())
    held = tree_leaves([vars(each) for each in work.optimizers])
    found = torch.optim.SGD(parameters)
    kept = [each for each in held if not isinstance(each, torch.nn.Parameter)]
    found.state[parameters[0]] = dict(enumerate(kept))
    return found


def of_step(given: Namespace) -> Found:
    """The same of a step of one's own, built of its keys, the context and the batch on a CPU."""
    place = {"context": given.context, "batch": given.batch, "device": "cpu", "seed": 0}
    with _shapes_alone():
        tracker = Tracker()
        with tracker:  # what the function makes belongs to the peak
            step = stepping.build(given.step, given.keys, place)
        known = [stepping.parameters(step), *step.optimizers]
        tracker.track_external(*(each for each in known if isinstance(each, TRACKED)))
        return _tracked(step.run, tracker)


def _tracked(
    step: Callable[[], object], tracker: Tracker, after: Callable[[], object] = int
) -> Found:
    """The peak of two steps, of which the first makes the optimizer's state. after: what is called
    after each."""
    for _ in range(2):
        tracker.reset_mod_stats()
        with tracker:
            step()
        after()
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
