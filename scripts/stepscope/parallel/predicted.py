"""The step on several devices, predicted from one device's step and from collectives by themselves.

What computes and sends at once is slower, both by what a product and an all-reduce lost beside each
other, and copies into buffers take what a copy of as many bytes takes; nobody waits for anybody.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from stepscope.model.shape import ModelShape

BUCKETS = (2**20, 25 * 2**20)  # bytes of DistributedDataParallel's first and later ones
HIDDEN = 0.02  # of the step: what may show of communication that counts as hidden
MOST = 2**20  # sequences


@dataclass(frozen=True)
class Network:
    """Seconds of an all-reduce by bytes, as they were measured on so many devices, ascending.

    Half of an all-reduce is a reduce-scatter, and half an all-gather. lost: the share of its time
    in which a device does not compute while it sends. slowed: how many times as long it sends
    while it computes. copying: seconds of copying a byte.
    """

    devices: int
    points: tuple[tuple[int, float], ...]
    lost: float = 0.0
    slowed: float = 1.0
    copying: float = 0.0

    def among(self, devices: int) -> "Network":
        """The same links among so many: each byte crosses a link more often, 2 (n - 1) / n times
        (nccl-tests)."""
        more = (1 - 1 / devices) / (1 - 1 / self.devices)
        points = [(size, more * seconds) for size, seconds in self.points]
        return replace(self, devices=devices, points=tuple(points))

    def all_reduce(self, size: float) -> float:
        """Seconds; between two points linear, beyond the last by its bandwidth."""
        sizes, seconds = zip(*self.points, strict=True)
        return float(np.interp(size, sizes, seconds)) * max(1.0, size / sizes[-1])

    def beside(self, computing: float, sending: float) -> float:
        """Seconds in which both go on, of two that start at once, each of which takes so long by
        itself."""
        return min(sending * self.slowed, computing / (1 - self.lost))

    def at_once(self, computing: float, sending: float) -> float:
        """Seconds until both of them have ended."""
        both = self.beside(computing, sending)
        return computing + sending + both * (self.lost - 1 / self.slowed)


@dataclass(frozen=True)
class Gradient:
    """bytes: of a gradient. ready: the share of the backward pass after which it is there."""

    bytes: int
    ready: float


@dataclass(frozen=True)
class OneDevice:
    """Seconds of the phases of one device's step on `batch` sequences, and its gradients in the
    order in which the backward pass makes them. gathered: bytes of a weight that is sent to be
    used over those of its gradient."""

    forward: float
    backward: float
    optimizer: float
    batch: float
    gradients: tuple[Gradient, ...]
    gathered: float = 1.0

    @property
    def step(self) -> float:
        return self.forward + self.backward + self.optimizer

    @property
    def bytes(self) -> int:
        """Of all gradients."""
        return sum(gradient.bytes for gradient in self.gradients)

    def with_batch(self, batch: float) -> "OneDevice":
        """The same with another batch: what computes takes as much longer as it is larger."""
        more = batch / self.batch
        return replace(
            self,
            batch=batch,
            forward=more * self.forward,
            backward=more * self.backward,
        )


def gradients_of(shape: ModelShape) -> tuple[Gradient, ...]:
    """In the order in which the backward pass makes them. It takes time for products alone, and of
    each as much as its matrix has entries."""
    width = shape.d_model
    gain = (width, 0)  # entries, and those of a product's matrix
    head = shape.vocab_size * width
    products = (shape.qkv_width * width, width**2, *[shape.d_ff * width] * 3)
    block = [gain, gain, *((entries, entries) for entries in products)]
    forward = [(head, 0), *block * shape.num_layers, gain, (head, head)]
    entries, multiplied = np.array(forward[::-1]).T
    done = multiplied.cumsum()
    return tuple(map(Gradient, (4 * entries).tolist(), (done / done[-1]).tolist()))


def step(one: OneDevice, network: Network, strategy: str, devices: int) -> float:
    """Seconds of a step on so many devices by a strategy, the batch of each as on one."""
    network = network.among(devices)
    whole = network.all_reduce(one.bytes)
    copied = network.copying * one.bytes
    spared = 0.0
    if strategy in ("sharded", "zero", "fsdp"):
        spared = one.optimizer * (1 - 1 / devices)
    match strategy:
        case "naive":
            return one.step + sum(network.all_reduce(each.bytes) for each in one.gradients)
        case "flat" | "sharded":
            return one.step + copied + whole - spared
        case "fsdp":
            # Weights are gathered in both passes, and gradients scattered in the backward pass,
            # while something computes: all but the first weights and the last gradients, both the
            # embedding's. Each weight that was gathered is copied into its place, and each
            # gradient to be scattered.
            first = network.all_reduce(one.gradients[-1].bytes) / 2
            scattered = whole / 2 - first
            gathered = one.gathered * scattered
            forward = network.at_once(one.forward, gathered)
            backward = network.at_once(one.backward, gathered + scattered)
            copied *= 1 + 2 * one.gathered
            return forward + backward + 2 * first + one.optimizer + copied - spared
        case "overlapped":
            return one.forward + max(_sent(one, one.gradients, network)) + one.optimizer
        case "staged":
            # The optimizer's part for all gradients but the last runs while that one is sent.
            *others, last, computed = _sent(one, one.gradients, network)
            of_last = one.optimizer * one.gradients[-1].bytes / one.bytes
            start = max([computed, *others])
            beside = network.at_once(one.optimizer - of_last, max(0.0, last - start))
            return one.forward + start + beside + of_last
        case "ddp" | "zero":
            ended = max(_sent(one, _bucketed(one.gradients), network))
            gathered = whole / 2 if strategy == "zero" else 0.0
            return one.forward + ended + one.optimizer + 2 * copied + gathered - spared
    return one.step


def _sent(one: OneDevice, gradients: Sequence[Gradient], network: Network) -> list[float]:
    """Seconds from the start of the backward pass until each has been sent, and then until the pass
    ends: each starts once it is there and the one before has been sent."""
    now = 0.0
    lost = 0.0  # of computing, to what was sent beside it
    done = []
    for gradient in gradients:
        now = max(now, gradient.ready * one.backward + lost)
        sending = network.all_reduce(gradient.bytes)
        both = network.beside(max(0.0, one.backward + lost - now), sending)
        lost += network.lost * both
        now += both + sending - both / network.slowed
        done.append(now)
    return [*done, one.backward + lost]


def _bucketed(gradients: Sequence[Gradient]) -> list[Gradient]:
    """Gradients in buckets, each sent with its last."""
    found: list[Gradient] = []
    size = 0
    for gradient in gradients:
        size += gradient.bytes
        if size >= BUCKETS[bool(found)] or gradient is gradients[-1]:
            found.append(Gradient(size, gradient.ready))
            size = 0
    return found


def hiding_batch(one: OneDevice, network: Network, strategy: str, devices: int) -> int | None:
    """The fewest sequences a device at which the step takes at most HIDDEN longer than on one; None
    if no batch does."""

    def is_hidden(batch: int) -> bool:
        own = one.with_batch(batch)
        return step(own, network, strategy, devices) <= (1 + HIDDEN) * own.step

    fewest = 1 + bisect_left(range(1, MOST), True, key=is_hidden)
    return fewest if is_hidden(fewest) else None
