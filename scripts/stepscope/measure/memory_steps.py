"""A few training steps with every allocation recorded, and what is known of the tensors behind
them."""

import contextlib
import functools
import gc
from collections.abc import Iterator
from functools import partial
from itertools import chain

from torch import Tensor
from torch.nn import Parameter
from torch.utils._pytree import tree_leaves_with_path

from stepscope.axes import option
from stepscope.model import ranges

from . import memory, models, steps
from .found import Outcome
from .memory_observed import Observed, Parts, address, described
from .memory_recorders import recorder
from .samples import PhaseTimes
from .steps import caught
from .telemetry import Telemetry
from .workload import Workload, is_compiled

NAME = "step"  # of the only variant
START = 0  # the first mark of a recording: what is seen there was in memory before
COMPILED = "which part of compiled code allocates is not seen; its peaks are those of the ladder"


def optimizer_state(work: Workload) -> models.NamedTensors:
    """(the parameter's name, a tensor that the optimizer keeps for it)."""
    names: dict[object, str] = {}
    gradients = set()
    for name, parameter in work.model.named_parameters():
        names[parameter] = name
        if parameter.grad is not None:
            gradients.add(address(parameter.grad))
    found = []
    held = [getattr(each, "__dict__", {}) for each in work.optimizers]
    for path, tensor in tree_leaves_with_path(held):
        if not isinstance(tensor, Tensor) or tensor in names or address(tensor) in gradients:
            continue
        owner = ""
        for step in path:  # the key of a dictionary may be a parameter
            owner = names.get(getattr(step, "key", None), owner)
        found.append((owner, tensor))
    return found


def measure(spec: dict, telemetry: Telemetry) -> "Recording":
    """Warm up, then run the spec's steps with the recorder on, the device waited for around each
    phase.

    Running out of memory is an `oom` outcome with the recording so far; other errors pass through.
    """
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
            run.begin("model")
            for _ in range(spec["warmup"]):
                run.one(warmup=True)
            run.begin("start")
            for _ in range(spec["steps"]):
                run.one(warmup=False)
        run.found.sizes(NAME, memory.peaks(spec["device"]), mode=mode)
        run.found.status(NAME, run.outcome, mode=mode)
        if run.baselines:  # else nothing was recorded
            run.end()
    return run


class Recording(steps.Process):
    """The steps of one cell, with the marks that say what ran when, and what came of them.

    found: samples and status. snapshot: the recorder's. known: what is known of it. baselines:
    bytes at its landmarks.
    """

    def __init__(self, spec: dict, telemetry: Telemetry):
        super().__init__(spec, telemetry)
        self._mode = option(spec, "mode")
        self._steps = 0
        self.outcome = Outcome()
        self.snapshot: dict = {}
        self.known: dict = {}
        self.baselines: dict = {}
        self.recorder = recorder(self._device)
        self._part = "", ""  # the phase and the module that run

    @functools.cached_property
    def _workload(self) -> Workload:
        """Made by prepare()."""
        return steps.made(self._spec, NAME, self.found)

    def prepare(self) -> None:
        """Make the model, its batch and its optimizer."""
        named = self._workload.model.named_parameters()
        self._observed = Observed(named, lambda: self._part)
        self._parts = Parts(
            self._workload.model.blocks, lambda module: self._tell(self._part[0], module)
        )
        for name, parameter in named:
            if parameter.requires_grad:
                note = partial(self._note_gradient, name)
                parameter.register_post_accumulate_grad_hook(note)
        ranges.turn_on(self._parts.open)

    def begin(self, baseline: str) -> None:
        """Start a recording, note what is in memory, and look for a new peak."""
        work = self._workload
        work.clear_gradients()
        memory.reset_peaks(self._device)
        self._marks: list[tuple[int, int, str, str]] = []  # (mark, step, phase, module)
        self._seen: list[tuple[int, dict]] = []  # (mark, tensor)
        self.recorder.start()
        self._tell("", "")
        kinds = {
            "parameters": work.model.named_parameters(),
            "optimizer state": optimizer_state(work),
        }
        known = {address(tensor) for _, tensor in chain(*kinds.values())}
        others = _tensors_of_python(self._device, known)
        kinds["buffers"] = [("×".join(map(str, tensor.shape)), tensor) for tensor in others]
        for category, tensors in kinds.items():
            self._note(category, tensors, START)
        self.baselines[baseline] = self.recorder.allocated()

    def one(self, warmup: bool) -> None:
        """Run a step, and keep its samples."""
        self._samples.run(NAME, self._step, warmup=warmup, mode=self._mode, kind="phased")
        self._steps += 1

    def _step(self) -> PhaseTimes:
        """One step, phase by phase; the first of all is looked at operator by operator too."""
        workload = self._workload
        is_first = self._steps == 0
        self._parts.forget()
        self._tell("", "")
        workload.clear_gradients()
        with contextlib.ExitStack() as observing:
            if is_first:
                observing.enter_context(self._observed.hooks)
                observing.enter_context(self._observed)
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

    def end(self) -> None:
        """Take the snapshot, and put down what is known of it."""
        if "optimizer state" not in {tensor["category"] for _, tensor in self._seen}:
            self._note("optimizer state", optimizer_state(self._workload))  # made in the recording
        before = [tensor for mark, tensor in self._seen if mark == START]
        self.snapshot, places = self.recorder.stop(before)
        tensors = [tensor | {"at": places[mark]} for mark, tensor in self._seen]
        self.known = {
            "schema_version": 1,
            "device": self._device,
            "mode": self._mode,
            "marks": [[*places[mark], *rest] for mark, *rest in self._marks],
            "tensors": tensors + _others(self.snapshot, before),
            "made": self._observed.made,
            "saved": self._observed.saved,
        }

    def _tell(self, phase: str, module: str) -> None:
        """From here on this part runs."""
        now = (self._steps, phase, module)
        if not self._marks or now != self._marks[-1][1:]:
            self._marks.append((self.recorder.mark(), *now))
        self._part = phase, module

    def _note(self, category: str, tensors: models.NamedTensors, mark: int | None = None) -> None:
        """Remember where tensors are at a mark, by default now."""
        if mark is None:
            mark = self.recorder.mark()
        for name, tensor in tensors:
            entry = {"category": category, "name": name, "address": address(tensor)}
            self._seen.append((mark, entry | described(tensor)))

    def _note_gradient(self, name: str, parameter: Tensor) -> None:
        """As soon as it is there: of a step of one's own nobody knows for how long."""
        assert parameter.grad is not None, "it was just accumulated"
        self._note("gradients", [(name, parameter.grad)])


def _tensors_of_python(device: str, known: set[int]) -> list[Tensor]:
    """Tensors that Python holds, without those at known addresses and without scalars: tables,
    masks, the batch."""
    found: dict[int, Tensor] = {}
    for thing in gc.get_objects():
        if type(thing) in (Tensor, Parameter) and thing.device.type == device and thing.dim():
            with contextlib.suppress(NotImplementedError):  # a wrapper of torch.func has no storage
                found.setdefault(address(thing), thing)
    return [thing for place, thing in found.items() if place not in known]


def _others(snapshot: dict, known: list[dict]) -> list[dict]:
    """Blocks that outlive the recording, began before it and belong to no tensor: buffers of CUDA's
    libraries."""
    made = {tensor["address"] for tensor in known}
    for entry in chain(*snapshot["device_traces"]):
        if entry["action"] == "alloc":
            made.add(entry["addr"])
    library = {"category": "workspace", "name": "library", "shape": [], "dtype": "", "at": [0, 0]}
    found = []
    for block in chain(*(segment["blocks"] for segment in snapshot["segments"])):
        if block["state"] == "active_allocated" and block["address"] not in made:
            size = block.get("requested_size", block["size"])
            found.append(library | {"address": block["address"], "bytes": size})
    return found
