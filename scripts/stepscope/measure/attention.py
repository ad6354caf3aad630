"""One process of an attention cell: implementations that take turns, forward and backward, over
sequences of growing length.

Each timed forward pass builds the graph, as in training; each timed backward pass runs on a graph
of its own, whose forward pass is not timed. On a GPU the L2 cache is overwritten before each pass,
so that no pass finds its inputs there, and a pass is queued as a whole before it begins, so that
its time is the GPU's and not the host's for launching it.
"""

import re
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from stepscope.axes import DIRECTIONS, FULL, IMPLEMENTATIONS
from stepscope.model.attention import unsupported
from stepscope.model.chosen import load

from . import memory, precision, steps
from .clock import Clock, time_queued
from .found import Call, Found, Outcome, Place
from .models import Unsupported
from .samples import PhaseTimes, Step, take_turns
from .steps import caught
from .telemetry import Telemetry
from .workload import no_compiler


def batch_of(spec: dict, length: int) -> int:
    """Sequences of this length in a batch: as many as asked for, or as make up so many tokens."""
    return spec["batch"] if "batch" in spec else max(1, spec["tokens"] // length)


def measure(spec: dict, telemetry: Telemetry, process: int) -> Found:
    """Each length, shortest first, forward before backward.

    Where an implementation runs out of memory in a direction, it is `oom` for all longer sequences
    too; what it cannot do is `unsupported`. Other errors pass.
    """
    run = _Process(spec, telemetry, process)
    for length in sorted(spec["lengths"]):
        for direction in DIRECTIONS:
            run.measure(length, direction)
    return run.found


class _Process(steps.Process):
    def __init__(self, spec: dict, telemetry: Telemetry, process: int):
        super().__init__(spec, telemetry, process)
        self._names = [variant["name"] for variant in spec["variants"]]
        # (name, direction) -> what failed, and is so expected of longer sequences
        self._gone: dict[tuple[str, str], Outcome] = {}
        # of Q, K and V
        self._functions: dict[str, Callable[..., Tensor]] = {}
        # Only what is asked for: compiled code looks at each argument anew.
        masked = {"is_causal": spec.get("mask", FULL) != FULL}
        if "window" in spec:
            masked["window"] = spec["window"]
        precision.configure(spec["precision"])
        refused = precision.unsupported(spec["precision"], self._device)
        for name in self._names:
            with caught() as outcome:
                if refused:
                    raise Unsupported(refused)
                self._functions[name] = partial(function(name, self._device), **masked)
            if not outcome.is_ok:
                self._gone[name, "forward"] = outcome
        self._time = _timer(self._clock, self._device)
        self._after_forward = 0  # bytes that were allocated before the last backward pass
        if self._device == "cuda":
            _open_libraries()

    def measure(self, length: int, direction: str) -> None:
        """All implementations at one length and in one direction."""
        place: Place = {"length": length, "direction": direction, "kind": "free"}
        inputs: list[Tensor] = []
        with caught() as full:
            inputs = _inputs(self._spec, length)
        outcomes = {}
        turns: dict[str, Callable[[int], None]] = {}
        for name in self._names:
            # What shorter sequences, or forward passes, leave to expect.
            gone = self._gone.get((name, direction)) or self._gone.get((name, "forward"))
            outcome = gone or Outcome() if full.is_ok else full
            outcomes[name] = outcome
            if not outcome.is_ok:
                continue
            step = partial(self._step, name, inputs, direction)
            with caught(outcome):
                self._warm_up(name, step, inputs, place)
                turns[name] = partial(self._turn, name, step, place, outcome)
            if self._device == "cuda":
                self._note_sizes(name, inputs, outcome.is_ok, place)
        take_turns(turns, self._budget)
        for name, outcome in outcomes.items():
            self.found.status(name, outcome, **place)
            if outcome.status == "oom":
                outcome = Outcome("oom", f"length {length} ran out of memory")
            if not outcome.is_ok:
                self._gone.setdefault((name, direction), outcome)
        memory.release(self._device)

    def _warm_up(self, name: str, step: Step, inputs: list[Tensor], place: Place) -> None:
        """The first passes, of which the last is that whose memory is noted."""
        self._after_forward = 0
        run = partial(self._samples.run, name, step, warmup=True, **place)
        for _ in range(self._spec["warmup"]):
            run()
        if self._device == "cuda":
            self._tidy(inputs)
            memory.reset_peaks(self._device)
            run()

    def _note_sizes(self, name: str, inputs: list[Tensor], is_whole: bool, place: Place) -> None:
        """Note what a pass took beside what is held without one, and its inputs; of a backward pass
        also what was allocated before it, be it that it ran out of memory."""
        self._tidy(inputs)
        at_rest = memory.held(self._device)
        taken = memory.peaks(self._device, at_rest) if is_whole else {}
        if self._after_forward:
            taken["before_backward"] = self._after_forward - at_rest["peak_allocated"]
        of_inputs = sum(tensor.untyped_storage().nbytes() for tensor in inputs)
        sizes = {quantity: size + of_inputs for quantity, size in taken.items()}
        self.found.sizes(name, sizes, **place)

    def _tidy(self, inputs: list[Tensor]) -> None:
        """Leave no gradients or anything in between."""
        for tensor in inputs:
            tensor.grad = None
        memory.release(self._device)

    def _turn(self, name: str, step: Step, place: Place, outcome: Outcome, number: int) -> None:
        in_round: Place = {**place, "round": number}
        if outcome.is_ok:
            with caught(outcome):
                self._samples.run(name, step, **in_round)

    def _step(self, name: str, inputs: list[Tensor], direction: str) -> PhaseTimes:
        """A timed pass; of a backward pass the forward one before it is not timed."""
        attend = self._functions[name]
        if direction == "forward":
            kept: list[Tensor] = []  # so that the graph is let go of after the clock has stopped
            return [(direction, self._time(lambda: kept.append(attend(*inputs))))]
        for tensor in inputs:
            tensor.grad = None
        result = attend(*inputs)
        if self._device == "cuda":
            self._after_forward = torch.cuda.memory_allocated()
        gradient = torch.randn_like(result)
        return [(direction, self._time(lambda: result.backward(gradient)))]


def function(name: str, device: str) -> Callable[..., Tensor]:
    """An implementation as a function of (Q, K, V, is_causal, window=None).

    Q: (batch, length, d_head) or (batch, heads, length, d_head); K, V: as Q, of their own heads. It
    raises Unsupported for what cannot be done.
    """
    module, how = IMPLEMENTATIONS[name]
    if module == "triton" and device == "cpu":  # where its interpreter is for tests alone
        raise Unsupported(f"{name} trains on a GPU only")
    if reason := unsupported(module, torch.device(device)):
        raise Unsupported(reason)
    attention = load("attention", module).attention
    if how == "under torch.compile":
        if device == "cpu" and (reason := no_compiler()):
            raise Unsupported(reason)
        return torch.compile(attention)  # for the first length as it is, for the next for any
    if module == "naive":
        return attention
    if module == "sdpa":
        return partial(_with_backend, attention, how)
    return partial(_with_heads, attention)


def _with_backend(attention: Callable, backend: str, *inputs: Tensor, **masked) -> Tensor:
    """SDPA with one backend and no other. It runs fused on four dimensions only: without heads it
    is given one."""
    with sdpa_kernel(getattr(SDPBackend, backend)):
        return _with_heads(attention, *inputs, **masked)


def _with_heads(attention: Callable, *inputs: Tensor, **masked) -> Tensor:
    try:
        if inputs[0].dim() == 4:
            return attention(*inputs, **masked)
        return attention(*(tensor.unsqueeze(1) for tensor in inputs), **masked).squeeze(1)
    except (NotImplementedError, ValueError) as error:
        raise Unsupported(memory.reason(error)) from None
    except RuntimeError as error:
        if not re.search("No (available kernel|viable backend)", str(error)):
            raise
        raise Unsupported("SDPA has no such kernel for these inputs on this machine") from None


def _inputs(spec: dict, length: int) -> list[Tensor]:
    """Random Q, K, V that want gradients, each (batch, length, d_head) or (batch, heads, length,
    d_head)."""
    torch.manual_seed(spec["seed"])
    dtype = precision.dtype(spec["precision"])
    heads = spec.get("heads")  # None without a dimension of heads
    of_keys = spec.get("key_value_heads", heads)
    made = []
    for number in (heads, of_keys, of_keys):
        shape = filter(None, (batch_of(spec, length), number, length, spec["d_head"]))
        made.append(torch.randn([*shape], device=spec["device"]).to(dtype).requires_grad_())
    return made


def _timer(clock: Clock, device: str) -> Callable[[Call], float]:
    """What times a pass in seconds: on a GPU after its L2 cache was overwritten, twice over."""
    if device == "cpu":
        return clock.time
    size = torch.cuda.get_device_properties().L2_cache_size
    buffer = torch.empty(2 * max(size, 2**20), dtype=torch.uint8, device=device)
    return partial(time_queued, before=buffer.zero_)


def _open_libraries() -> None:
    """A small product, forward and backward, so that cuBLAS takes its workspaces before memory is
    counted."""
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for shape in ((16, 16), (2, 16, 16)):
            small = torch.zeros(shape, device="cuda", dtype=dtype, requires_grad=True)
            (small @ small).sum().backward()
