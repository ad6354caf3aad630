"""What one step of a model computes, found without memory or a GPU: shapes alone go through forward
and backward.

torch's FakeTensorMode runs the user's code on tensors that have a shape and no values; what decides
by values cannot be followed, and is then said.
"""

import logging
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

from stepscope.model.own import inputs
from stepscope.model.own.counting import Counter
from stepscope.model.own.loading import named_errors
from stepscope.model.own.reference import ModelError
from stepscope.model.own.sdpa import SDPA, InPlaceOfSdpa

# What cannot be followed by shapes is an error, which is enough of a report.
logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Call:
    """A call of scaled_dot_product_attention: shapes of Q, K and V, (..., heads, length, d_head),
    and its options."""

    q: tuple[int, ...]
    k: tuple[int, ...]
    v: tuple[int, ...]
    has_mask: bool
    dropout: float
    scale: float | None

    @property
    def flops(self) -> int:
        """Of forward and backward: Q K^T and the product with V, 2 m n k each, and twice that
        backward."""
        return 6 * math.prod(self.q[:-1]) * self.k[-2] * (self.q[-1] + self.v[-1])


@dataclass
class Probe:
    """What was seen: operations as torch counts them (None if the step could not be run, and then
    why), of them those of forward, operators that are not counted, the calls of attention, the
    shape of what goes into the first block, whether the blocks' container is called as a whole, and
    what a batch is made of."""

    flops: int | None = None
    forward_flops: int | None = None
    uncounted: tuple[str, ...] = ()
    reason: str = ""
    calls: list[Call] = field(default_factory=list)
    block_input: tuple[int, ...] | None = None
    item: str | None = None
    calls_container: bool = False


@contextmanager
def in_shapes_alone() -> Iterator[None]:
    """Within it tensors have no values and take no memory. What cannot be followed is an error."""
    with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True):
        # as copies do
        warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
        yield


def probe(make: Callable) -> Probe:
    """What a step of the model that `make` gives computes; shapes alone."""
    with in_shapes_alone():
        try:
            own = make()
        except ModelError as error:
            return Probe(reason=str(error))
        return run(own)


def run(own) -> Probe:
    """Forward and backward of an OwnModel once, as it is: in shapes alone, or with values where it
    was built so."""
    found = Probe(reason=own.refused or "")
    if own.refused:
        return found
    counter = Counter()
    # On a CPU torch's fused attention counts nothing; the formula's own products do.
    with _watched(own, found), sdpa_kernel(SDPBackend.MATH), _flex_as_sdpa(own), counter:
        try:
            batch = own.make_batch()
            found.item = inputs.item_of(batch, (own.batch, own.context))
            loss = own.loss(batch)
            found.forward_flops = counter.get_total_flops()
            with named_errors(own.reference, "backward fails"):
                loss.backward()
        except ModelError as error:
            found.reason = str(error)
            return found
    found.flops = counter.get_total_flops()
    found.uncounted = tuple(sorted(counter.uncounted))
    return found


def _flex_as_sdpa(own) -> AbstractContextManager:
    """Within it flex_attention is as many products of scaled_dot_product_attention: a CPU has no
    backward pass of it, and a mask saves nothing of what is counted."""
    flex = sys.modules.get("torch.nn.attention.flex_attention")
    if flex is None:
        return nullcontext()

    def attention(query, key, value, *_, return_lse=False, enable_gqa=False, **__):
        attended = F.scaled_dot_product_attention(query, key, value, enable_gqa=enable_gqa)
        return (attended, attended[..., 0]) if return_lse else attended

    return InPlaceOfSdpa(own.module, attention, flex.flex_attention, flex)


def forward(own) -> Probe:
    """What one forward pass of an OwnModel calls, on its device and without gradients.

    In shapes alone some models take another way: those of transformers then make a mask that they
    else do without.
    """
    found = Probe()
    devices = [own.device] if own.device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad(), _watched(own, found):
        own.forward(own.make_batch())
    return found


@contextmanager
def _watched(own, found: Probe) -> Iterator[None]:
    """Within it a forward pass of the model fills in what it calls."""

    def keep_shape(_block, args: tuple, kwargs: dict) -> None:
        given = [
            each for each in (*args, *kwargs.values()) if isinstance(each, Tensor) and each.ndim > 1
        ]
        if given and found.block_input is None:
            found.block_input = tuple(given[0].shape)

    def keep_that_it_is_called(*_: object) -> None:
        found.calls_container = True

    def keep_call(query, key, value, attn_mask=None, dropout_p=0.0, *_, scale=None, **__) -> None:
        q, k, v = (tuple(each.shape) for each in (query, key, value))
        found.calls.append(Call(q, k, v, attn_mask is not None, dropout_p, scale))

    def attention(*args, **kwargs):
        keep_call(*args, **kwargs)
        return SDPA(*args, **kwargs)

    with ExitStack() as watched:
        if own.blocks:
            container = own.found_blocks.container
            first = container[0]
            watched.enter_context(first.register_forward_pre_hook(keep_shape, with_kwargs=True))
            watched.enter_context(container.register_forward_pre_hook(keep_that_it_is_called))
        watched.enter_context(InPlaceOfSdpa(own.module, attention))
        yield
