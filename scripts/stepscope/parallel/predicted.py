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

    Half of an all-reduce is a reduce-scatter, and half an all-gather. lost: the share of its time
    in which a device does not compute while it sends. slowed: how many times as long it sends
    while it computes. copying: seconds of copying a byte.
    """

    devices: int
    points: tuple[tuple[int, float], ...]
    lost: float = 0.0
    slowed: float = 1.0
    copying: float = 0.0

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
    order in which the backward pass makes them. gathered: bytes of a weight that is sent to be
    used over those of its gradient."""

    forward: float
    backward: float
    optimizer: float
    batch: int
    gradients: tuple[Gradient, ...]
    gathered: float = 1.0

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
        forward = more * self.forward
        backward = more * self.backward
        return replace(self, batch=batch, forward=forward, backward=backward)


def sizes_of(shape: ModelShape) -> list[tuple[int, bool]]:
    """(number of entries, whether it is a matrix of a product) of each parameter, in the order of
    the forward pass."""
    width = shape.d_model
    hidden = shape.d_ff
    gain = (width, False)
    head = shape.vocab_size * width
    products = [shape.qkv_width * width, width * width, *[hidden * width] * 3]
    block = [gain, gain, *((count, True) for count in products)]
    return [(head, False), *block * shape.num_layers, gain, (head, True)]


def gradients_of(sizes: list[tuple[int, bool]]) -> tuple[Gradient, ...]:
    """The gradients of parameters that stand in the order of the forward pass: (number of entries,
    whether it is a matrix of a product). The backward pass takes time for products alone, and of
    each as much as it has entries."""
    total = sum(count for count, is_product in sizes if is_product)
    done = 0
    found = []
    for count, is_product in reversed(sizes):
        done += count if is_product else 0
        found.append(Gradient(4 * count, done / total))
    return tuple(found)


def step(one: OneDevice, network: Network, strategy: str, devices: int) -> float:
    """Seconds of a step on so many devices by a strategy, the batch of each as on one."""
    whole = network.all_reduce(one.bytes, devices)
    copied = network.copying * one.bytes
    spared = one.optimizer * (1 - 1 / devices)
    sent = [(gradient.bytes, gradient.ready) for gradient in one.gradients]
    if strategy == "naive":
        return one.step + sum(network.all_reduce(size, devices) for size, _ in sent)
    if strategy == "flat":
        return one.step + copied + whole
    if strategy == "sharded":
        return one.step + copied + whole - spared
    if strategy == "fsdp":
        return _fully_sharded(one, network, devices) - spared
    if strategy == "overlapped":
        computed, done = _sent(one, sent, network, devices)
        return one.forward + max(computed, done[-1]) + one.optimizer
    if strategy == "staged":
        return one.forward + _staged(one, sent, network, devices)
    if strategy in ("ddp", "zero"):
        computed, done = _sent(one, _bucketed(sent), network, devices)
        shown = one.forward + max(computed, done[-1]) + one.optimizer + 2 * copied
        return shown + (whole / 2 - spared if strategy == "zero" else 0.0)
    return one.step


def _sent(
    one: OneDevice, sent: list[tuple[int, float]], network: Network, devices: int
) -> tuple[float, list[float]]:
    """Seconds from the start of the backward pass (until it ends, until each has been sent): each
    starts once it is there and the one before has been sent."""
    now = 0.0
    computed = 0.0
    ended = 0.0
    done = []
    for size, ready in sent:
        if (missing := ready * one.backward - computed) > 0:
            now = now + missing
            computed = ready * one.backward
        left = network.all_reduce(size, devices)
        both = min(left * network.slowed, (one.backward - computed) / (1 - network.lost))
        computed += both * (1 - network.lost)
        now += both
        if not ended and computed >= one.backward * (1 - 1e-9):
            ended = now
        now += left - both / network.slowed
        done.append(now)
    return ended or now + one.backward - computed, done


def _staged(one: OneDevice, sent: list[tuple[int, float]], network: Network, devices: int) -> float:
    """Backward pass and optimizer, of which the part for all gradients but the last runs while that
    one is sent."""
    computed, done = _sent(one, sent, network, devices)
    of_last = one.optimizer * sent[-1][0] / one.bytes
    start = max(computed, done[-2]) if len(done) > 1 else computed
    beside = _at_once(one.optimizer - of_last, max(0.0, done[-1] - start), network)
    return start + beside + of_last


def _at_once(computing: float, sending: float, network: Network) -> float:
    """Seconds of two things that start at once, each of which takes so long by itself."""
    beside = min(sending * network.slowed, computing / (1 - network.lost))
    return beside + (sending - beside / network.slowed) + (computing - beside * (1 - network.lost))


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


def _fully_sharded(one: OneDevice, network: Network, devices: int) -> float:
    """Weights are gathered in both passes, and gradients scattered in the backward pass, while
    something computes: all but the first weights and the last gradients, both the embedding's.
    Each weight that was gathered is copied into its place, and each gradient to be scattered."""
    whole = network.all_reduce(one.bytes, devices) / 2
    first = network.all_reduce(one.gradients[-1].bytes, devices) / 2
    gathered = one.gathered * (whole - first)
    copied = network.copying * one.bytes * (1 + 2 * one.gathered)
    forward = first + _at_once(one.forward, gathered, network)
    backward = _at_once(one.backward, gathered + whole - first, network) + first
    return forward + backward + one.optimizer + copied


def hiding_batch(one: OneDevice, network: Network, strategy: str, devices: int) -> int | None:
    """The fewest sequences a device at which the step takes at most HIDDEN longer than on one; None
    if no batch does."""

    def is_hidden(batch: int) -> bool:
        own = one.with_batch(batch)
        return step(own, network, strategy, devices) <= (1 + HIDDEN) * own.step

    if not is_hidden(MOST):
        return None
    return 1 + bisect_left(range(1, MOST), True, key=is_hidden)
