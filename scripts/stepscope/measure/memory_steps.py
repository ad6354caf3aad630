"""A few training steps with every allocation recorded, and what is known of the tensors behind
them."""

import contextlib
import functools
import gc
from collections.abc import Iterator
from functools import partial

from torch import Tensor

from stepscope.axes import option
from stepscope.measure import memory, models, steps
from stepscope.measure.found import Outcome
from stepscope.measure.memory_observed import Observed, Parts, address, described
from stepscope.measure.memory_recorders import add_segments, recorder
from stepscope.measure.samples import PhaseTimes
from stepscope.measure.steps import caught
from stepscope.measure.telemetry import Telemetry
from stepscope.measure.workload import Workload, is_compiled
from stepscope.model import ranges

NAME = "step"  # of the only variant
BEFORE = -1  # the mark of what was there when the recording began
COMPILED = "which part of compiled code allocates is not seen; its peaks are those of the ladder"


def gradients(work: Workload) -> models.NamedTensors:
    """(the parameter's name, its gradient), of those that have one now."""
    return [
        (name, tensor.grad)
        for name, tensor in work.model.named_parameters()
        if tensor.grad is not None
    ]


def optimizer_state(work: Workload) -> models.NamedTensors:
    """(the parameter's name, a tensor that the optimizer keeps for it)."""
    names = {parameter: name for name, parameter in work.model.named_parameters()}
    known = {address(tensor) for _, tensor in gradients(work)}
    held = _held([getattr(each, "__dict__", {}) for each in work.optimizers], "", names)
    return [
        (name, tensor)
        for name, tensor in held
        if tensor not in names and address(tensor) not in known
    ]


def _held(value: object, owner: str, names: dict[Tensor, str]) -> Iterator[tuple[str, Tensor]]:
    """(owner, tensor) of all tensors in nested dictionaries, lists and tuples; keys that are
    parameters are owners."""
    if isinstance(value, Tensor):
        yield owner, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            of_key = names.get(key, owner) if isinstance(key, Tensor) else owner
            yield from _held(inner, of_key, names)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _held(inner, owner, names)


def measure(spec: dict, telemetry: Telemetry) -> "Recording":
    """Warm up, then run the spec's steps with the recorder on, the device waited for around each
    phase.

    Running out of memory is an `oom` outcome with the recording so far; other errors pass through.
    """
    if "step" not in spec:
        models.preload(spec)
    run = Recording(spec, telemetry)
    mode = option(spec, "mode")
    memory.reset_peaks(spec["device"])
    with contextlib.ExitStack() as ending:
        ending.callback(ranges.turn_on, None)
        ending.callback(run.recorder.abandon)
        with caught(run.outcome):
            if "step" not in spec and is_compiled(spec):
                raise models.Unsupported(COMPILED)
            run.prepare()
            for _ in range(spec["warmup"]):
                run.one(warmup=True)
            run.begin_measured()
            for _ in range(spec["steps"]):
                run.one(warmup=False)
        run.found.sizes(NAME, memory.peaks(spec["device"]), mode=mode)
        run.found.status(NAME, run.outcome, mode=mode)
        if run.outcome.status != "unsupported":  # else nothing ran
            run.end()
    return run


class Recording(steps.Process):
    """The steps of one cell, with the marks that say what ran when, and what came of them.

    found: samples and status. snapshot: the recorder's. known: what is known of it. baselines:
    bytes at its landmarks. recorded: which steps.
    """

    def __init__(self, spec: dict, telemetry: Telemetry):
        super().__init__(spec, telemetry)
        self._mode = option(spec, "mode")
        self._steps = 0
        self.outcome = Outcome()
        self.snapshot: dict = {}
        self.known: dict = {}
        self.baselines: dict = {}
        self.recorded = "warm-up"
        self.recorder = recorder(self._device)
        self._observed: Observed | None = None
        self._begin()

    @functools.cached_property
    def _workload(self) -> Workload:
        """Made by prepare()."""
        return steps.made(self._spec, NAME, self.found)

    def _begin(self) -> None:
        """Start a recording, with no marks and no tensors seen in it."""
        self._marks: list[tuple[int, int, str, str]] = []  # (mark, step, phase, module)
        self._seen: list[tuple[int, dict]] = []  # (mark, tensor)
        self._part = "", ""  # the phase and the module that run
        self.recorder.start()

    def prepare(self) -> None:
        """Make the model, its batch and its optimizer."""
        blocks = self._workload.model.blocks
        self._parts = Parts(blocks, lambda module: self._tell(self._part[0], module))
        if self._workload.about:  # nobody knows when its gradients are made, and for how long
            for name, parameter in self._workload.model.named_parameters():
                if parameter.requires_grad:
                    note = partial(self._note_gradient, name)
                    parameter.register_post_accumulate_grad_hook(note)
        ranges.turn_on(self._parts.open)
        self._note_all(before=False)
        self.baselines["model"] = self.recorder.allocated()

    def one(self, warmup: bool) -> None:
        """Run a step, and keep its samples."""
        self._samples.run(NAME, self._step, warmup=warmup, mode=self._mode, kind="phased")
        self._steps += 1

    def begin_measured(self) -> None:
        """Forget the warm-up's recording, note what is in memory now, and look for a new peak."""
        self._workload.clear_gradients()
        memory.reset_peaks(self._device)
        self._begin()
        self._note_all(before=True)
        self.baselines["start"] = self.recorder.allocated()
        self.recorded = "measured steps"

    def _step(self) -> PhaseTimes:
        """One step, phase by phase; the first of all is looked at operator by operator too."""
        workload = self._workload
        is_first = self._steps == 0
        self._parts.forget()
        self._tell("", "")
        workload.clear_gradients()
        observing: contextlib.AbstractContextManager = contextlib.nullcontext()
        if is_first:
            parameters = workload.model.named_parameters()
            observing = self._observed = Observed(parameters, lambda: self._part)
        with observing:
            yield from workload.timed(self._mode, self._clock, self._in_phase)
        workload.drop_graph()
        if is_first:
            workload.clear_gradients()
            self.baselines["first_step"] = self.recorder.allocated()

    @contextlib.contextmanager
    def _in_phase(self, name: str) -> Iterator[None]:
        """Marks around a phase; where memory runs out they show where."""
        outer = self._part
        if name == "backward" and not self._workload.about:
            self._parts.watch_backward(self._workload.loss)
        self._tell(name, "")
        yield
        self._tell(*outer)
        if name == "backward":
            self._note("gradients", gradients(self._workload))

    def end(self) -> None:
        """Take the snapshot, and put down what is known of it."""
        if "_workload" in vars(self):
            if self.outcome.status == "oom":
                self._note("gradients", gradients(self._workload))
            known = {tensor["category"] for _, tensor in self._seen}
            if "optimizer state" not in known:  # made in the recording
                self._note("optimizer state", optimizer_state(self._workload))
        snapshot, places = self.recorder.stop()
        places.append([0, 0])  # BEFORE
        tensors = [tensor | {"at": places[mark]} for mark, tensor in self._seen]
        before = {one["address"]: one["bytes"] for one in tensors if one["at"] == [0, 0]}
        if not snapshot["segments"]:
            add_segments(snapshot, before.items())
        self.snapshot = snapshot
        self.known = {
            "schema_version": 1,
            "device": self._device,
            "mode": self._mode,
            "marks": [[*places[mark], *rest] for mark, *rest in self._marks],
            "tensors": tensors + _others(snapshot, set(before)),
            "made": self._observed.made if self._observed else [],
            "saved": self._observed.saved if self._observed else [],
        }

    def _tell(self, phase: str, module: str) -> None:
        """From here on this part runs."""
        now = (self._steps, phase, module)
        if not self._marks or now != self._marks[-1][1:]:
            self._marks.append((self.recorder.mark(), *now))
        self._part = phase, module

    def _note(self, category: str, tensors: models.NamedTensors, before: bool = False) -> None:
        """Remember where tensors are now, or were already when the recording began."""
        mark = BEFORE if before else self.recorder.mark()
        for name, tensor in tensors:
            entry = {"category": category, "name": name, "address": address(tensor)}
            self._seen.append((mark, entry | described(tensor)))

    def _note_gradient(self, name: str, parameter: Tensor) -> None:
        assert parameter.grad is not None, "it was just accumulated"
        self._note("gradients", [(name, parameter.grad)])

    def _note_all(self, before: bool) -> None:
        """Remember where everything is that lives longer than a step."""
        work = self._workload
        kinds = {
            "parameters": work.model.named_parameters(),
            "optimizer state": optimizer_state(work),
        }
        known = {address(tensor) for tensors in kinds.values() for _, tensor in tensors}
        others = _tensors_of_python(self._device, known)
        kinds["buffers"] = [("×".join(map(str, tensor.shape)), tensor) for tensor in others]
        for category, tensors in kinds.items():
            self._note(category, tensors, before)


def _tensors_of_python(device: str, known: set[int]) -> list[Tensor]:
    """Tensors that Python holds, without those at known addresses and without scalars: tables,
    masks, the batch."""
    found: dict[int, Tensor] = {}
    for thing in gc.get_objects():
        if type(thing) is Tensor and thing.device.type == device and thing.dim():
            with contextlib.suppress(NotImplementedError):  # a wrapper of torch.func has no storage
                found.setdefault(address(thing), thing)
    return [thing for place, thing in found.items() if place not in known]


def _others(snapshot: dict, known: set[int]) -> list[dict]:
    """Blocks that outlive the recording, began before it and belong to no tensor: buffers of CUDA's
    libraries."""
    made = set(known)
    for trace in snapshot["device_traces"]:
        made |= {entry["addr"] for entry in trace if entry["action"] == "alloc"}
    library = {"category": "workspace", "name": "library", "shape": [], "dtype": "", "at": [0, 0]}
    found = []
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "active_allocated" and block["address"] not in made:
                size = block.get("requested_size", block["size"])
                found.append(library | {"address": block["address"], "bytes": size})
    return found
