"""Floating-point operations of a forward and a backward pass, as torch's counter sees them, with
formulas that it lacks.

Counted are the products, 2 m n k for (m, k) x (k, n), once: what a backward pass computes again of
the forward pass is no further work of the model. An operator that multiplies and has no formula is
named: the count is then the least that the model computes.
"""

import contextlib
import math
import re
import sys
from collections.abc import Callable
from types import FrameType

import torch
import torch.utils.checkpoint
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count, flop_registry

aten = torch.ops.aten
Shape = tuple[int, ...]
# Names of operators that multiply matrices; of other libraries' all count as such.
_PRODUCTS = re.compile(r"mm|matmul|linear|conv|rnn|(lstm|gru)(?!_cell)|attention|einsum|\b(add)?mv")

# The files through which a backward pass calls code in Python: a user's Function, a checkpoint.
_CALLED_BACKWARD = (torch.autograd.function.__file__, torch.utils.checkpoint.__file__)


def convolution_backward(gradient: Shape, x: Shape, weight: Shape, *rest, **_) -> int:
    """Of each gradient that is asked for as many as forward: batch, positions and weight.

    torch's own formula takes groups for one. rest: sizes of bias, stride, padding, dilation,
    whether it is transposed, its output's padding, groups, and which gradients are asked for.
    """
    is_transposed = rest[4]
    asked_for = rest[7][:2]
    forward = conv_flop_count(list(x), list(weight), list(gradient), is_transposed)
    return forward * sum(asked_for)


def recurrent(x: Shape, of_input: Shape, of_hidden: Shape, *_rest, **_) -> int:
    """A layer of an LSTM or a GRU in one direction: (steps, batch, d_in) by both weights, (gates,
    d_in) and (gates, d_hidden), at each step."""
    return 2 * math.prod(x[:-1]) * (math.prod(of_input) + math.prod(of_hidden))


def recurrent_on_gpu(x: Shape, weights: list[Shape], *_rest, **_) -> int:
    """All layers and directions at once: each position by each matrix; vectors are biases."""
    matrices = [each for each in weights if len(each) == 2]
    return 2 * math.prod(x[:-1]) * sum(map(math.prod, matrices))


def grouped(a: Shape, b: Shape, *_rest, **_) -> int:
    """Products of experts, each with the rows that are its own: (rows, k) by (groups, k, n), and
    where a group has a part of the inner dimension or of the columns, (m, k) by (k, n)."""
    has_own_rows = len(a) == 3 and len(b) == 2
    return 2 * math.prod(a[1:] if has_own_rows else a) * b[-1]


def twice(forward: Callable[..., int]) -> Callable[..., int]:
    """Of a backward pass: gradients of what is multiplied, and of weights."""
    return lambda *args, **kwargs: 2 * forward(*args, **kwargs)


def without_scores(backward: Callable[..., int]) -> Callable[..., int]:
    """torch's formula of an attention's backward pass has five products; one are the scores, which
    are computed again."""

    def counted(*args, **kwargs) -> int:
        return backward(*args, **kwargs) * 4 // 5

    counted._get_raw = True  # type: ignore[attr-defined]  # given tensors, as torch's own is
    return counted


FORMULAS: dict[object, Callable[..., int]] = {
    aten.convolution_backward: convolution_backward,
    aten.mkldnn_rnn_layer: recurrent,
    aten.mkldnn_rnn_layer_backward: twice(recurrent),
    aten._cudnn_rnn: recurrent_on_gpu,
    aten._cudnn_rnn_backward: twice(recurrent_on_gpu),
    aten._grouped_mm: grouped,
    aten._scaled_grouped_mm: grouped,
    aten._scaled_grouped_mm_v2: grouped,
    aten._scaled_mm_v2: grouped,  # as one group
}
FORMULAS |= {
    operator: without_scores(formula)
    for operator, formula in flop_registry.items()
    if str(operator).endswith("attention_backward")
}


class Everywhere(contextlib.nullcontext):
    """In the place of what tells modules apart, by hooks that gradients of inputs do not stand."""

    parents = frozenset({"Global"})


class Counter(FlopCounterMode):
    """Counts within it. uncounted: operators that multiply and have no formula."""

    def __init__(self) -> None:
        super().__init__(display=False, custom_mapping=FORMULAS)
        self.mod_tracker = Everywhere()  # type: ignore[assignment]  # what is used of it
        self.uncounted: set[str] = set()

    def _count_flops(self, func_packet, out, args, kwargs):
        if _runs_again():
            return out
        if func_packet not in self.flop_registry and multiplies(str(func_packet)):
            self.uncounted.add(str(func_packet))
        return super()._count_flops(func_packet, out, args, kwargs)


def _runs_again() -> bool:
    """Whether this is the forward pass of a checkpoint, run again within a backward pass: Python's
    code, with gradients. Gradients of gradients have these, too, but no such code calls them."""
    if torch._C._current_graph_task_id() == -1 or not torch.is_grad_enabled():
        return False
    frame: FrameType | None = sys._getframe()
    while frame and frame.f_code.co_name != "_engine_run_backward":
        if frame.f_code.co_filename in _CALLED_BACKWARD:
            return True
        frame = frame.f_back
    return False


def multiplies(operator: str) -> bool:
    """Whether an operator, as `aten.addmm`, may multiply matrices, by its name."""
    library, _, name = operator.partition(".")
    return library not in ("aten", "prim", "prims", "profiler") or bool(_PRODUCTS.search(name))
