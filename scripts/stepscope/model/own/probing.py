"""What one step of a model computes, found without memory or a GPU: shapes alone go through forward
and backward.

torch's FakeTensorMode runs the user's code on tensors that have a shape and no values; what decides
by values cannot be followed, and is then said.
"""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

from . import inputs
from .counting import Counter
from .loading import named_errors
from .sdpa import FLEX, InPlaceOfSdpa

# What cannot be followed by shapes is an error, which is enough of a report.
logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)


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
    flex = sys.modules.get(FLEX)
    if flex is None:
        return nullcontext()

    def attention(query, key, value, *_, return_lse=False, enable_gqa=False, **__):
        attended = F.scaled_dot_product_attention(query, key, value, enable_gqa=enable_gqa)
        return (attended, attended[..., 0]) if return_lse else attended

    return InPlaceOfSdpa(own.module, attention, flex.flex_attention)
