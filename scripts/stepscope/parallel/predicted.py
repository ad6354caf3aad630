"""The step on several devices, predicted from one device's step and from collectives by themselves.
Standard library only.

Computing is taken to be as quick beside communication as alone, and copies into buffers to cost
nothing: what is measured beyond the prediction is just that.
"""

from bisect import bisect_left
from dataclasses import dataclass, replace

from stepscope.model.shape import ModelShape

BUCKETS = (2**20, 25 * 2**20)  # bytes of DistributedDataParallel's first and later ones
HIDDEN = 0.02  # of the step: what may show of communication that counts as hidden
MOST = 2**20  # sequences


@dataclass(frozen=True)
class Network:
    """Seconds of an all-reduce by bytes, as they were measured on so many devices, ascending.

    Half of an all-reduce is a reduce-scatter, and half an all-gather.
    """

    devices: int
    points: tuple[tuple[int, float], ...]

    def all_reduce(self, size: float, devices: int) -> float:
        """Seconds; between two points linear, beyond the last by its bandwidth. On more devices
        each byte crosses a link more often, 2 (n - 1) / n times (nccl-tests)."""
        at = bisect_left([one for one, _ in self.points], size)
        if at == 0:
            seconds = self.points[0][1]
        elif at == len(self.points):
            largest, took = self.points[-1]
            seconds = took * size / largest
        else:
            (less, short), (more, long) = self.points[at - 1 : at + 1]
            seconds = short + (long - short) * (size - less) / (more - less)
        crossings = (devices - 1) / devices
        return seconds * crossings / ((self.devices - 1) / self.devices)


@dataclass(frozen=True)
class Gradient:
    """bytes: of a gradient. ready: the share of the backward pass after which it is there."""

    bytes: int
    ready: float


@dataclass(frozen=True)
class OneDevice:
    """Seconds of the phases of one device's step on `batch` sequences, and its gradients in the
    order in which the backward pass makes them."""

    forward: float
    backward: float
    optimizer: float
    batch: int
    gradients: tuple[Gradient, ...]

    @property
    def step(self) -> float:
        return self.forward + self.backward + self.optimizer

    @property
    def bytes(self) -> int:
        """Of all gradients."""
        return sum(gradient.bytes for gradient in self.gradients)

    def with_batch(self, batch: int) -> "OneDevice":
        """The same with another batch: what computes takes as much longer as it is larger."""
        more = batch / self.batch
        forward, backward = more * self.forward, more * self.backward
        return replace(self, batch=batch, forward=forward, backward=backward)


def sizes_of(shape: ModelShape) -> list[tuple[int, bool]]:
    """(number of entries, whether it is a matrix of a product) of each parameter, in the order of
    the forward pass."""
    width, hidden = shape.d_model, shape.d_ff
    gain, head = (width, False), shape.vocab_size * width
    products = [shape.qkv_width * width, width * width, *[hidden * width] * 3]
    block = [gain, gain, *((count, True) for count in products)]
    return [(head, False), *block * shape.num_layers, gain, (head, True)]


def gradients_of(sizes: list[tuple[int, bool]]) -> tuple[Gradient, ...]:
    """The gradients of parameters that stand in the order of the forward pass: (number of entries,
    whether it is a matrix of a product). The backward pass takes time for products alone, and of
    each as much as it has entries."""
    total = sum(count for count, is_product in sizes if is_product)
    done, found = 0, []
    for count, is_product in reversed(sizes):
        done += count if is_product else 0
        found.append(Gradient(4 * count, done / total))
    return tuple(found)


def step(one: OneDevice, network: Network, strategy: str, devices: int) -> float:
    """Seconds of a step on so many devices by a strategy, the batch of each as on one."""
    whole = network.all_reduce(one.bytes, devices)
    rest = one.forward + one.backward + one.optimizer
    spared = one.optimizer * (1 - 1 / devices)
    sent = [(gradient.bytes, gradient.ready) for gradient in one.gradients]
    if strategy == "naive":
        return rest + sum(network.all_reduce(size, devices) for size, _ in sent)
    if strategy == "flat":
        return rest + whole
    if strategy == "sharded":
        return rest - spared + whole
    if strategy == "fsdp":
        return _fully_sharded(one, whole / 2) - spared
    if strategy == "overlapped":
        return rest + _late(one, sent, network, devices)
    if strategy in ("ddp", "zero"):
        shown = rest + _late(one, _bucketed(sent), network, devices)
        return shown + (whole / 2 - spared if strategy == "zero" else 0.0)
    return rest


def _late(one: OneDevice, sent: list[tuple[int, float]], network: Network, devices: int) -> float:
    """Seconds from the end of the backward pass until the last has been sent: each starts once it
    is there and the one before has been sent."""
    now = 0.0
    for size, ready in sent:
        now = max(now, ready * one.backward) + network.all_reduce(size, devices)
    return max(0.0, now - one.backward)


def _bucketed(sent: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Gradients in buckets, each sent with its last."""
    found: list[tuple[int, float]] = []
    size = 0
    for position, (bytes_, ready) in enumerate(sent):
        size += bytes_
        if size >= BUCKETS[bool(found)] or position == len(sent) - 1:
            found.append((size, ready))
            size = 0
    return found


def _fully_sharded(one: OneDevice, gather: float) -> float:
    """A pass takes as long as what it computes or what it sends, whichever is longer; weights are
    gathered in both, and gradients scattered in the backward pass."""
    return max(one.forward, gather) + max(one.backward, 2 * gather) + one.optimizer


def hiding_batch(one: OneDevice, network: Network, strategy: str, devices: int) -> int | None:
    """The fewest sequences a device at which the step takes at most HIDDEN longer than on one; None
    if no batch does."""

    def is_hidden(batch: int) -> bool:
        own = one.with_batch(batch)
        return step(own, network, strategy, devices) <= (1 + HIDDEN) * own.step

    if not is_hidden(MOST):
        return None
    return 1 + bisect_left(range(1, MOST), True, key=is_hidden)
