"""Attention by itself: timed forward and backward passes over sequences of growing length.

Each timed forward pass builds the graph, as in training; each timed backward pass runs on a graph of its own, whose
forward pass is not timed. On a GPU the L2 cache is overwritten before each pass, so that no pass
finds its inputs there, and a pass is queued as a whole before it begins, so that its time is the GPU's and not the
host's for launching it, which is noted beside it.

Beside that, how long a call keeps the host busy, on a GPU at the shortest length: several calls are issued one after
the other without waiting for the GPU, in turns with as many of PyTorch's own attention, and the host's clock is read
before and after.
"""

import contextlib
import dataclasses
import functools
import re
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from stepscope.axes import DIRECTIONS, FULL, IMPLEMENTATIONS, LOWER_RIGHT, mask_of
from stepscope.measure import attention_host, memory, precision
from stepscope.measure.clock import Clock, time_queued
from stepscope.measure.series import ATTENTION_TIMES, FixedNumber, PhaseTimes, Series
from stepscope.measure.summary import STATUSES, of_processes
from stepscope.measure.telemetry import Telemetry
from stepscope.model import flops
from stepscope.model.chosen import load

LEAST = 3  # passes, however long they take


class Unsupported(Exception):
    """What this machine, or the implementation, cannot do; the message is one line."""


@dataclass
class Outcome:
    """One length and direction: status, reason, the first pass's time, memory in bytes, a row for each pass.

    host_seconds, host_over_sdpa: of each process, how long one call keeps the host busy, in seconds and over a call of
    PyTorch's own; the latter is empty where the mask is one that PyTorch has no kernel for.
    """

    length: int
    direction: str
    status: str = "ok"
    reason: str = ""
    first_seconds: float | None = None
    before_backward_bytes: int | None = None
    peak_bytes: int | None = None
    rows: list[dict] = field(default_factory=list)
    host_seconds: list[float] = field(default_factory=list)
    host_over_sdpa: list[float] = field(default_factory=list)


def batch_of(spec: dict, length: int) -> int:
    """Sequences of this length in a batch: as many as asked for, or as make up so many tokens."""
    return spec["batch"] if "batch" in spec else max(1, spec["tokens"] // length)


def operations(spec: dict, length: int, direction: str) -> float:
    """Floating-point operations of one pass (see stepscope.model.flops)."""
    shape = (batch_of(spec, length), spec.get("heads", 1), length, spec["d_head"])
    return flops.attention_flops(*shape, mask_of(spec), direction, spec.get("keys"), spec.get("window"))


def unsupported(spec: dict, reason: str) -> list[Outcome]:
    """Every length and direction as `unsupported`."""
    lengths = sorted(map(int, spec["lengths"].split(",")))
    return [Outcome(length, direction, "unsupported", reason) for length in lengths for direction in DIRECTIONS]


def measure(spec: dict, telemetry: Telemetry) -> Iterator[Outcome]:
    """Measure each length, shortest first, forward before backward; yields each as it ends.

    Where a direction runs out of memory, it is `oom` for all longer sequences too; what the implementation cannot do is
    `unsupported`. Other errors pass through.
    """
    passes = _Passes(spec, telemetry)
    gone: dict[str, Outcome] = {}
    lengths = sorted(map(int, spec["lengths"].split(",")))
    for length in lengths:
        for direction in DIRECTIONS:
            outcome = Outcome(length, direction)
            before = gone.get(direction) or gone.get("forward")
            if before:
                outcome.status = before.status
                said = f"length {before.length} ran out of memory" if before.status == "oom" else before.reason
                outcome.reason = said
            else:
                passes.measure(outcome, with_host=length == lengths[0])
                if outcome.status != "ok":
                    gone[direction] = outcome
            yield outcome


class _Passes:
    """Passes of one implementation on one device."""

    def __init__(self, spec: dict, telemetry: Telemetry):
        self._spec, self._telemetry, self._device = spec, telemetry, spec["device"]
        self._flush = _flusher(self._device)
        self._attention: Callable | None = None
        _open_libraries(self._device)
        self._base = _allocated(self._device)

    def measure(self, outcome: Outcome, with_host: bool = False) -> None:
        """Fill in one outcome; with_host: the host's time for a call too, where the device is a GPU."""
        memory.reset_peaks(self._device)
        try:
            with memory.caught(outcome):
                self._attention = self._attention or function(self._spec)
                inputs = _inputs(self._spec, outcome.length)
                one = self._forward(inputs) if outcome.direction == "forward" else self._backward(inputs, outcome)
                self._series(one, outcome)
        except Unsupported as error:
            outcome.status, outcome.reason = "unsupported", str(error)
        if self._device == "cuda":
            outcome.peak_bytes = memory.peaks(self._device)["peak_allocated_bytes"] - self._base
            if with_host and outcome.status == "ok":
                with contextlib.suppress(torch.OutOfMemoryError):
                    self._host(inputs, outcome)
        inputs = one = None  # let go of, before memory is given back
        memory.release(self._device)

    def _forward(self, inputs: list[Tensor]) -> Callable[[], tuple]:
        """A timed forward pass."""

        def one() -> tuple:
            output: list[Tensor] = []
            return self._time(lambda: output.append(self._attend(inputs)))

        return one

    def _backward(self, inputs: list[Tensor], outcome: Outcome) -> Callable[[], tuple]:
        """A timed backward pass, after a forward pass that is not timed."""

        def one() -> tuple:
            for tensor in inputs:
                tensor.grad = None
            output = self._attend(inputs)
            if outcome.before_backward_bytes is None and self._device == "cuda":
                outcome.before_backward_bytes = _allocated(self._device) - self._base
            gradient = torch.randn_like(output)
            return self._time(lambda: output.backward(gradient))

        return one

    def _host(self, inputs: list[Tensor], outcome: Outcome) -> None:
        """How long a call keeps the host busy: a forward pass, or for `backward` both passes."""
        ways, mask = [self._attend], mask_of(self._spec)
        if mask != LOWER_RIGHT and "window" not in self._spec:
            sdpa = functools.partial(_with_heads, attention_host.sdpa, is_causal=mask != FULL)
            with contextlib.suppress(Unsupported, torch.OutOfMemoryError):
                sdpa(*inputs)
                ways.append(lambda inputs: sdpa(*inputs))
        gradient = torch.randn_like(self._attend(inputs))

        def call(attend: Callable[[list[Tensor]], Tensor]) -> None:
            output = attend(inputs)
            if outcome.direction == "backward":
                for tensor in inputs:
                    tensor.grad = None
                output.backward(gradient)

        calls = [functools.partial(call, way) for way in ways]
        own, *others = attention_host.seconds_of(calls, Clock(self._device).synchronize)
        outcome.host_seconds.append(statistics.median(own))
        for other in others:
            outcome.host_over_sdpa.append(statistics.median(a / b for a, b in zip(own, other, strict=True)))

    def _time(self, work: Callable[[], object]) -> tuple[float, float | None]:
        """(seconds of the pass, seconds that the host took to launch it; None on a CPU)."""
        if self._device == "cuda":
            return time_queued(work, before=self._flush)
        seconds, _, launched = Clock(self._device).time(work)
        return seconds, launched

    def _attend(self, inputs: list[Tensor]) -> Tensor:
        mask = mask_of(self._spec)
        more = {"window": self._spec["window"]} if "window" in self._spec else {}
        if mask == LOWER_RIGHT:
            more["lower_right"] = True
        return self._attention(*inputs, mask != FULL, **more)

    def _series(self, one: Callable[[], tuple], outcome: Outcome) -> None:
        """Warm up, then as many passes as asked for, or as fit in the time."""
        spec = self._spec
        series = Series(self._telemetry, outcome.rows, {"length": outcome.length}, times=ATTENTION_TIMES)

        def step() -> PhaseTimes:
            return [(outcome.direction, one())]

        start = time.perf_counter()
        if spec["warmup"]:
            series.warm_up(step, 1)
            outcome.first_seconds = time.perf_counter() - start
            series.warm_up(step, spec["warmup"] - 1)
        series.measure(step, FixedNumber(spec["steps"], LEAST, spec["max_seconds"]))
        self._telemetry.read()


def function(spec: dict) -> Callable[..., Tensor]:
    """The spec's implementation as a function of (Q, K, V, is_causal, window=None, lower_right=False).

    Q: (batch, length, d_head) or (batch, heads, length, d_head); K, V: as Q, of their own length and heads. It raises
    Unsupported for what cannot be done.
    """
    module, how = IMPLEMENTATIONS[spec["implementation"]]
    if module in ("flex", "triton") and spec["device"] == "cpu":
        raise Unsupported(f"{spec['implementation']} trains on a GPU only")
    attention = load("attention", module).attention
    if how == "under torch.compile":
        return _compiled(attention, spec["device"])
    if module == "naive":
        return attention
    if module == "sdpa":
        return functools.partial(_with_backend, attention, how)
    return functools.partial(_with_heads, attention)


def _compiled(attention: Callable, device: str) -> Callable:
    """The function under torch.compile as a user gets it: for the first length as it is, for the next for any."""
    if device == "cpu" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        raise Unsupported("torch.compile needs a C++ compiler on a CPU; install g++")
    return torch.compile(attention)


def _with_backend(attention: Callable, backend: str, q: Tensor, k: Tensor, v: Tensor, *mask, **more) -> Tensor:
    """SDPA with one backend and no other. It runs fused on four dimensions only: without heads it is given one."""
    kernel = getattr(torch.nn.attention.SDPBackend, backend, None)
    if kernel is None:
        raise Unsupported(f"this torch has no SDPA backend {backend}")
    with torch.nn.attention.sdpa_kernel(kernel):
        return _with_heads(attention, q, k, v, *mask, **more)


def _with_heads(attention: Callable, q: Tensor, k: Tensor, v: Tensor, *mask, **more) -> Tensor:
    try:
        if q.dim() == 4:
            return attention(q, k, v, *mask, **more)
        return attention(*(tensor.unsqueeze(1) for tensor in (q, k, v)), *mask, **more).squeeze(1)
    except (NotImplementedError, ValueError) as error:
        raise Unsupported(_first_line(error)) from None
    except RuntimeError as error:
        if not re.search("No (available kernel|viable backend)", str(error)):
            raise
        raise Unsupported("SDPA has no such kernel for these inputs on this machine") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _inputs(spec: dict, length: int) -> list[Tensor]:
    """Random Q, K, V that want gradients, each (batch, length, d_head) or (batch, heads, length, d_head)."""
    torch.manual_seed(spec["seed"])
    dtype, made = precision.dtype(spec["precision"]), []
    for heads, rows in [(spec.get("heads"), length), *[(_kv_heads(spec), spec.get("keys", length))] * 2]:
        shape = (batch_of(spec, length), *([heads] if heads else []), rows, spec["d_head"])
        made.append(torch.randn(shape, device=spec["device"]).to(dtype).requires_grad_())
    return made


def _kv_heads(spec: dict) -> int | None:
    """Heads of K and V; None without a dimension of heads."""
    return spec.get("key_value_heads", spec.get("heads"))


def _allocated(device: str) -> int:
    return torch.cuda.memory_allocated() if device == "cuda" else 0


def _flusher(device: str) -> Callable[[], object]:
    """Overwrites a GPU's L2 cache, twice over; nothing on a CPU."""
    if device == "cpu":
        return lambda: None
    size = torch.cuda.get_device_properties().L2_cache_size
    buffer = torch.empty(2 * max(size, 2**20), dtype=torch.uint8, device=device)
    return buffer.zero_


def _open_libraries(device: str) -> None:
    """A small product, forward and backward, so that cuBLAS takes its workspaces before memory is counted."""
    if device == "cuda":
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            small = torch.zeros(16, 16, device=device, dtype=dtype, requires_grad=True)
            (small @ small).sum().backward()
            batched = torch.zeros(2, 16, 16, device=device, dtype=dtype, requires_grad=True)
            (batched @ batched).sum().backward()


def summary(outcomes: list[Outcome]) -> dict:
    """The record's summary: each length and direction with its statistics in seconds.

    Times are the GPU's between two events, or those of the host's clock on a CPU.
    """
    return {"series": [_entry(outcome) for outcome in outcomes]}


def _entry(outcome: Outcome) -> dict:
    entry = {
        key: getattr(outcome, key)
        for key in ("length", "direction", "status", "reason", "first_seconds", "before_backward_bytes", "peak_bytes")
    }
    entry["processes"] = of_processes(outcome.rows) if outcome.status == "ok" else []
    launches = [found["launch"] for found in entry["processes"] if found["launch"] is not None]
    entry["launch_seconds"] = statistics.median(launches) if launches else None
    for key in ("host_seconds", "host_over_sdpa"):
        found = getattr(outcome, key)
        entry[key] = statistics.median(found) if found else None
    return entry


def merged(found: list[list[Outcome]]) -> list[Outcome]:
    """What several processes found, as one: the worst status, the first process's first pass, the largest memory."""
    return [_merged(one) for one in zip(*found, strict=True)]


def _merged(found: tuple[Outcome, ...]) -> Outcome:
    worst = max(found, key=lambda outcome: STATUSES.index(outcome.status))
    memory_of = {
        name: max((size for outcome in found if (size := getattr(outcome, name)) is not None), default=None)
        for name in ("before_backward_bytes", "peak_bytes")
    }
    return dataclasses.replace(
        found[0],
        status=worst.status,
        reason=worst.reason,
        rows=[row for outcome in found for row in outcome.rows],
        host_seconds=[one for outcome in found for one in outcome.host_seconds],
        host_over_sdpa=[one for outcome in found for one in outcome.host_over_sdpa],
        **memory_of,
    )
