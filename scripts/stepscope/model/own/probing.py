"""What one step of a model computes, found without memory or a GPU: shapes alone go through forward
and backward.

torch's FakeTensorMode runs the user's code on tensors that have a shape and no values; what decides
by values cannot be followed, and is then said.
"""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

from stepscope.model.own import inputs
from stepscope.model.own.counting import Counter
from stepscope.model.own.loading import named_errors
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


@dataclass
class Called:
    """What a forward pass calls: attention, and whether the blocks' container as a whole."""

    attention: list[Call] = field(default_factory=list)
    container: bool = False


@contextmanager
def in_shapes_alone() -> Iterator[None]:
    """Within it tensors have no values and take no memory. What cannot be followed is an error."""
    with warnings.catch_warnings(), FakeTensorMode(allow_non_fake_inputs=True):
        # as copies do
        warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")
        yield


def counted(own) -> tuple[dict, str]:
    """({"counter", "forward": operations of a step and of its forward pass; "uncounted": operators
    without a formula, if there are any}, what the batch is made of) of an OwnModel.

    Runs them once: in shapes alone, or with values where it was built so. Raises ModelError.
    """
    counter = Counter()
    # On a CPU torch's fused attention counts nothing; the formula's own products do.
    with sdpa_kernel(SDPBackend.MATH), _flex_as_sdpa(own), counter:
        batch = own.make_batch()
        loss = own.loss(batch)
        forward_flops = counter.get_total_flops()
        with named_errors(own.reference, "backward fails"):
            loss.backward()
    found: dict[str, object] = {"counter": counter.get_total_flops(), "forward": forward_flops}
    if counter.uncounted:
        found["uncounted"] = sorted(counter.uncounted)
    return found, inputs.item_of(batch, (own.batch, own.context))


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


def forward(own) -> Called:
    """What one forward pass of an OwnModel calls, on its device and without gradients.

    In shapes alone some models take another way: those of transformers then make a mask that they
    else do without.
    """
    found = Called()
    devices = [own.device] if own.device.type == "cuda" else []

    def keep_that_it_is_called(*_: object) -> None:
        found.container = True

    def keep_call(query, key, value, attn_mask=None, dropout_p=0.0, *_, scale=None, **__) -> None:
        q, k, v = (tuple(each.shape) for each in (query, key, value))
        found.attention.append(Call(q, k, v, attn_mask is not None, dropout_p, scale))

    def attention(*args, **kwargs):
        keep_call(*args, **kwargs)
        return SDPA(*args, **kwargs)

    with ExitStack() as watched:
        if own.blocks:
            container = own.found_blocks.container
            watched.enter_context(container.register_forward_pre_hook(keep_that_it_is_called))
        watched.enter_context(InPlaceOfSdpa(own.module, attention))
        watched.enter_context(torch.random.fork_rng(devices))
        watched.enter_context(torch.no_grad())
        own.forward(own.make_batch())
    return found
