"""The same training step on several devices, by strategy: who sends what, and when.

Each rank has the whole model and a part of the whole batch, whose gradient is the mean of the
parts'. Ours scale a part's gradient before it is summed, so that nothing more runs. `sharded` and
`zero` divide the optimizer's state (Rajbhandari et al. 2020, stage 1), `fsdp` also weights and
gradients (stage 3).
"""

import warnings
import weakref
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from stepscope.axes import option
from stepscope.measure import models
from stepscope.measure.workload import Workload
from stepscope.model.chosen import load
from stepscope.model.formats import FORMATS
from stepscope.parallel.place import Place

# torch 2.13 calls them so, and warns of the names that 2.11 has, as of `broadcast_buffers`.
warnings.filterwarnings("ignore", ".*(broadcast_buffers|torch.distributed)", FutureWarning)
reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class Replica(Workload):
    """A rank's step on its part of the batch: what all strategies share.

    spec: that of a variant; its batch is a device's. is_capturable: whether a CUDA graph can hold
    the step.
    """

    is_capturable = True

    def __init__(self, spec: dict, place: Place):
        if "model" in spec:
            raise models.Unsupported("several devices run the sizes of this project alone")
        self._place = place
        self._group = place.group(spec.get("ctas", 0))
        super().__init__(spec | {"batch": spec["batch"] * place.devices})
        self.spec = spec
        self._take(place.rank)
        self._share()

    def _take(self, part: int) -> None:
        """Go on with the part of the batch that a rank has."""
        each = self.spec["batch"]
        self.model.choose(slice(part * each, (part + 1) * each))

    def _share(self) -> None:
        """What a strategy changes of the model and the optimizer once both are there."""

    def _backward(self) -> None:
        """The gradient of this part, as its share of the whole batch's."""
        self.loss.backward(torch.full_like(self.loss, 1 / self._place.devices))

    def whole(self) -> float:
        """Forward and backward pass over the whole batch; its loss."""
        self._forward()
        loss = float(self.loss.detach())
        self._backward()
        return self._place.mean(loss)

    def gradients(self) -> Iterator[Tensor]:
        """The gradient of each parameter after the backward pass, in the model's order; all ranks
        ask at once."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                yield parameter.grad


class Alone(Replica):
    """One device: each rank steps by itself, and none sends anything."""

    def _backward(self) -> None:
        self.loss.backward()

    def whole(self) -> float:
        """On one device the parts come one after the other, and their gradients add up."""
        losses = []
        for part in range(self._place.devices):
            self._take(part)
            self._forward()
            super()._backward()
            losses.append(float(self.loss.detach()))
        self._take(self._place.rank)
        return sum(losses) / len(losses)


class Naive(Replica):
    """Every gradient is summed by itself, after the backward pass."""

    def _backward(self) -> None:
        super()._backward()
        for gradient in self.gradients():
            dist.all_reduce(gradient, group=self._group)


class Flat(Replica):
    """All gradients are copied into one buffer, and summed at once."""

    def _backward(self) -> None:
        super()._backward()
        flat = flattened(self.gradients())
        dist.all_reduce(flat, group=self._group)
        for parameter, gradient in pieces(flat, self.parameters):
            parameter.grad = gradient


class Overlapped(Replica):
    """Every gradient is sent as soon as it is there, while the backward pass goes on.

    gradients of the spec: the type that is sent, fp32 or bf16.
    """

    def _share(self) -> None:
        self._sent: list[tuple[Tensor, Tensor, dist.Work]] = []
        self._is_cast = self.spec.get("gradients", "fp32") == "bf16"
        # Weakly: a parameter has its hooks where Python's collector does not look, so that a
        # replica that they hold would stay in memory for good.
        method = weakref.WeakMethod(self._send)

        def send(parameter: Tensor) -> None:
            if found := method():
                found(parameter)

        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(send)

    def _send(self, parameter: Tensor) -> None:
        gradient = parameter.grad
        assert gradient is not None, "the hook of a parameter that has its gradient"
        sent = gradient.to(torch.bfloat16) if self._is_cast else gradient
        work = dist.all_reduce(sent, group=self._group, async_op=True)
        self._sent.append((gradient, sent, work))

    def _backward(self) -> None:
        super()._backward()
        self._receive(len(self._sent))

    def _receive(self, count: int) -> None:
        """Wait for so many of the gradients that were sent, the oldest ones."""
        for gradient, sent, work in self._sent[:count]:
            work.wait()
            if sent is not gradient:
                gradient.copy_(sent)
        del self._sent[:count]


class Staged(Overlapped):
    """The same, and the optimizer updates all other weights while the last gradient is still sent:
    the embedding's, which no computing of the backward pass can hide."""

    def renew_optimizer(self) -> None:
        """Two of them, each without state: all other weights' and the last gradient's."""
        make = load("optimizer", str(option(self.spec, "optimizer"))).make
        last, *others = self.parameters
        self._others = make(others)
        self.optimizer = make([last])

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        return [self._others, self.optimizer]

    def whole(self) -> float:
        """With all gradients there, as for a step whose optimizer is not waited for."""
        loss = super().whole()
        self._receive(len(self._sent))
        return loss

    def _backward(self) -> None:
        Replica._backward(self)
        self._receive(len(self._sent) - 1)

    def _optimizer(self) -> None:
        self._others.step()
        self._receive(1)
        self.optimizer.step()


class Ddp(Replica):
    """torch's DistributedDataParallel: gradients are copied into buckets, each sent when full."""

    is_capturable = False  # its reducer wants 11 steps on a stream of their own before

    def _share(self) -> None:
        whole = self.model.module
        # Its default also sends all buffers before each step; ours are the same tables everywhere.
        self.model.module = nn.parallel.DistributedDataParallel(
            whole, process_group=self._group, broadcast_buffers=False
        )
        self.model.module.head = whole.head  # which a loss in chunks asks for

    def _backward(self) -> None:
        self.loss.backward()


class Zero(Ddp):
    """The same with torch's ZeroRedundancyOptimizer: each rank updates some of the parameters, and
    sends them to all."""

    def _share(self) -> None:
        from torch.distributed.optim import ZeroRedundancyOptimizer

        super()._share()
        self.optimizer = ZeroRedundancyOptimizer(
            self.parameters,
            torch.optim.AdamW,
            process_group=self._group,
            fused=option(self.spec, "optimizer") == "fused",
        )


class Sharded(Replica):
    """All parameters lie in one buffer, of which each rank has the optimizer's state of one piece:
    it is given that piece of the summed gradient, and gives back the updated weights."""

    def _share(self) -> None:
        count = sum(parameter.numel() for parameter in self.parameters)
        self._piece = -(-count // self._place.devices)  # the last one is filled up
        self._missing = self._piece * self._place.devices - count
        with torch.no_grad():
            self._weights = flattened(self.parameters, self._missing)
        for parameter, weight in pieces(self._weights, self.parameters):
            parameter.data = weight
        self._own = self._weights.split(self._piece)[self._place.rank]
        self.optimizer = load("optimizer", str(option(self.spec, "optimizer"))).make([self._own])

    def _backward(self) -> None:
        super()._backward()
        flat = flattened(super().gradients(), self._missing)
        for parameter in self.parameters:
            parameter.grad = None
        own = torch.empty_like(self._own)
        reduce_scatter(own, flat, group=self._group)
        self._own.grad = own

    def _optimizer(self) -> None:
        self.optimizer.step()
        all_gather(self._weights, self._own, group=self._group)

    def gradients(self) -> Iterator[Tensor]:
        """Gathered from all ranks."""
        assert self._own.grad is not None, "asked for after a backward pass"
        flat = torch.empty_like(self._weights)
        all_gather(flat, self._own.grad, group=self._group)
        for _, gradient in pieces(flat, self.parameters):
            yield gradient


class Fsdp(Replica):
    """torch's FSDP2: each rank has a piece of every weight, and asks for the others' when a block
    needs them. Under autocast weights of products are sent in 16 bits, as they are used."""

    is_capturable = False

    def _share(self) -> None:
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        precision = FORMATS[self.spec["precision"]]
        whole = self.model.module
        mesh = DeviceMesh.from_group(self._group, self._place.device)
        low = None
        wide = None
        if precision.is_autocast:
            low = getattr(torch, precision.dtype)
            wide = torch.float32
        # The residual stream stays in fp32, as under autocast: inputs are not cast, and neither is
        # the embedding.
        policy = MixedPrecisionPolicy(low, wide, cast_forward_inputs=False)
        for block in whole.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        if option(self.spec, "loss") != "chunked":  # which reads the head's weight by itself
            # The head is needed again at once.
            fully_shard(whole.head, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
        fully_shard(whole.embedding, mesh=mesh)
        fully_shard(whole, mesh=mesh)
        self.parameters = list(whole.parameters())
        self.renew_optimizer()

    def _backward(self) -> None:
        self.loss.backward()

    def gradients(self) -> Iterator[Tensor]:
        """Gathered from all ranks, one after the other."""
        for gradient in super().gradients():
            assert isinstance(gradient, DTensor)
            yield gradient.full_tensor()


def flattened(tensors, missing: int = 0) -> Tensor:
    """All entries end to end in one new tensor, with so many zeros behind them."""
    parts = [tensor.flatten() for tensor in tensors]
    return torch.cat([*parts, parts[0].new_zeros(missing)])


def pieces(flat: Tensor, parameters: list[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
    """Each parameter with its piece of a flat tensor, in its shape."""
    start = 0
    for parameter in parameters:
        yield parameter, flat[start : start + parameter.numel()].view_as(parameter)
        start += parameter.numel()


STRATEGIES: dict[str, type[Replica]] = {
    "alone": Alone,
    "naive": Naive,
    "flat": Flat,
    "overlapped": Overlapped,
    "staged": Staged,
    "ddp": Ddp,
    "sharded": Sharded,
    "zero": Zero,
    "fsdp": Fsdp,
}
