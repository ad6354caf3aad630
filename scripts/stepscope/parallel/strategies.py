"""The same training step on several devices, by strategy: who sends what, and when.

Each rank has the whole model and a part of the whole batch, whose gradient is the mean of the
parts'. Ours scale a part's gradient before it is summed, so that nothing more runs. `sharded` and
`zero` divide the optimizer's state (Rajbhandari et al. 2020, stage 1), `fsdp` also weights and
gradients (stage 3). Section 5 there counts the memory of each as held() does.
"""

import warnings
import weakref
from collections.abc import Iterator
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from stepscope.axes import option
from stepscope.measure import models
from stepscope.measure.workload import Workload, unsupported
from stepscope.model.formats import FORMATS

from .place import Place

# torch 2.13 calls them so, and warns of the names that 2.11 has, as of `broadcast_buffers`.
warnings.filterwarnings("ignore", ".*(broadcast_buffers|torch.distributed)", FutureWarning)
reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class Replica(Workload):
    """A rank's step on its part of the batch: what all strategies share.

    spec: that of a variant; its batch is a device's. is_capturable: whether a CUDA graph can hold
    the step. divided: what of weights, gradients and state each rank has a part of alone. buckets:
    buffers as large as all gradients that it has besides.
    """

    is_capturable = True
    divided: tuple[str, ...] = ()
    buckets = 0

    @classmethod
    def formulas(cls, parameters: int, devices: int, point: str) -> dict[str, float]:
        """Bytes that a rank holds at a point of a step (init, before optimizer, after), by part and
        in all, in closed form. AdamW keeps two moments, from the first step on. What a step makes
        and lets go of (activations, a buffer while it is sent) is not in it, and is the same for
        all."""
        later = int(point != "init")
        found = {"weights": 1.0, "gradients": later, "state": 2 * later}
        each = 4 * parameters  # of fp32
        for part in found:
            found[part] *= each / devices if part in cls.divided else each
        return found | {"all": sum(found.values()) + cls.buckets * each}

    def parts(self) -> dict[str, int]:
        """Bytes that this rank holds now of weights, gradients and the optimizer's state."""
        holders = {*self.parameters}
        moments: list[Tensor] = []
        for optimizer in self.optimizers:
            # torch's ZeRO keeps the optimizer of a rank's own parameters within.
            own = getattr(optimizer, "optim", optimizer)
            holders.update(*(group["params"] for group in own.param_groups))
            for state in own.state.values():
                moments += state.values()
        gradients = [tensor.grad for tensor in holders if tensor.grad is not None]
        found = {"weights": self.parameters, "gradients": gradients, "state": moments}
        return {name: sum(map(_size, tensors)) for name, tensors in found.items()}

    def __init__(self, spec: dict, place: Place):
        if "model" in spec:
            raise models.Unsupported("several devices run the sizes of this project alone")
        if reason := unsupported(spec):
            raise models.Unsupported(reason)
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
        loss = torch.tensor(self.loss_value(), dtype=torch.float64)
        self._backward()
        dist.all_reduce(loss)
        return float(loss) / self._place.devices

    def gradients(self) -> Iterator[Tensor]:
        """The gradient of each parameter after the backward pass, in the model's order; all ranks
        ask at once."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                yield parameter.grad


class Alone(Replica):
    """One device: each rank steps by itself, and none sends anything."""

    _backward = Workload._backward

    def whole(self) -> float:
        """On one device the parts come one after the other, and their gradients add up."""
        total = 0.0
        for part in range(self._place.devices):
            self._take(part)
            self._forward()
            super()._backward()
            total += float(self.loss.detach())
        self._take(self._place.rank)
        return total / self._place.devices


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
        gradients = list(self.gradients())
        flat = parameters_to_vector(gradients)
        dist.all_reduce(flat, group=self._group)
        vector_to_parameters(flat, gradients)


class Overlapped(Replica):
    """Every gradient is sent as soon as it is there, while the backward pass goes on.

    gradients of the spec: the type that is sent, fp32 or bf16.
    """

    def _share(self) -> None:
        self._sent: list[tuple[Tensor, Tensor, dist.Work]] = []
        # Weakly: a parameter has its hooks where Python's collector does not look, so that a
        # replica that they hold would stay in memory for good.
        send = partial(Overlapped._send, weakref.proxy(self))
        for parameter in self.parameters:
            parameter.register_post_accumulate_grad_hook(send)

    def _send(self, parameter: Tensor) -> None:
        gradient = parameter.grad
        assert gradient is not None, "the hook of a parameter that has its gradient"
        sent = gradient.bfloat16() if self.spec.get("gradients") == "bf16" else gradient
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
        last, *others = self.parameters
        self._others = self.optimizer_of(others)
        self.optimizer = self.optimizer_of([last])

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
    buckets = 1
    _backward = Workload._backward  # it takes the mean

    def _share(self) -> None:
        whole = self.model.module
        # Its default also sends all buffers before each step; ours are the same tables everywhere.
        self.model.module = nn.parallel.DistributedDataParallel(
            whole, process_group=self._group, broadcast_buffers=False
        )
        self.model.module.head = whole.head  # which a loss in chunks asks for


class Zero(Ddp):
    """The same with torch's ZeroRedundancyOptimizer: each rank updates some of the parameters, and
    sends them to all."""

    divided = ("state",)

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

    divided = ("gradients", "state")

    def _share(self) -> None:
        count = sum(parameter.numel() for parameter in self.parameters)
        each = -(-count // self._place.devices)
        # Behind all parameters, so that pieces are equally long.
        self._filling = self.parameters[0].new_zeros(each * self._place.devices - count)
        self._weights = parameters_to_vector([*self.parameters, self._filling]).detach()
        vector_to_parameters(self._weights, self.parameters)
        self._own = self._weights.split(each)[self._place.rank]
        self.optimizer = self.optimizer_of([self._own])

    def _backward(self) -> None:
        super()._backward()
        flat = parameters_to_vector([*super().gradients(), self._filling])
        self.model.module.zero_grad()
        self._own.grad = torch.empty_like(self._own)
        reduce_scatter(self._own.grad, flat, group=self._group)

    def _optimizer(self) -> None:
        self.optimizer.step()
        all_gather(self._weights, self._own, group=self._group)

    def gradients(self) -> Iterator[Tensor]:
        """Gathered from all ranks."""
        flat = torch.empty_like(self._weights)
        all_gather(flat, self._own.grad, group=self._group)
        found = [parameter.detach() for parameter in self.parameters]
        vector_to_parameters(flat, found)
        return iter(found)


class Fsdp(Replica):
    """torch's FSDP2: each rank has a piece of every weight, and asks for the others' when a block
    needs them. Under autocast weights of products are sent in 16 bits, as they are used."""

    is_capturable = False
    divided = ("weights", "gradients", "state")
    _backward = Workload._backward  # it takes the mean

    def _share(self) -> None:
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        precision = FORMATS[self.spec["precision"]]
        whole = self.model.module
        shard = partial(fully_shard, mesh=DeviceMesh.from_group(self._group, self._place.device))
        # The residual stream stays in fp32, as under autocast: inputs are not cast, and neither is
        # the embedding.
        low = getattr(torch, precision.dtype) if precision.is_autocast else None
        policy = MixedPrecisionPolicy(
            low,
            torch.float32 if low else None,
            cast_forward_inputs=False,
        )
        for block in whole.blocks:
            shard(block, mp_policy=policy)
        if option(self.spec, "loss") != "chunked":  # which reads the head's weight by itself
            # The head is needed again at once.
            shard(whole.head, mp_policy=policy, reshard_after_forward=False)
        shard(whole.embedding)
        shard(whole)
        self.parameters = list(whole.parameters())
        self.renew_optimizer()

    def gradients(self) -> Iterator[Tensor]:
        """Gathered from all ranks, one after the other; on the host, as a device may not hold all
        of them."""
        for gradient in super().gradients():
            assert isinstance(gradient, DTensor)
            yield gradient.full_tensor().cpu()


def _size(tensor: Tensor) -> int:
    """Bytes of it that are on this rank."""
    return getattr(tensor, "_local_tensor", tensor).nbytes


STRATEGIES: dict[str, type[Replica]] = {
    each.__name__.lower(): each
    for each in (Alone, Naive, Flat, Overlapped, Staged, Ddp, Sharded, Zero, Fsdp)
}
