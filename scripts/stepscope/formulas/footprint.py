"""GPU memory of a training step and of inference, in closed form: the tensors. Standard library
only.

`terms.toml` lists every tensor by its dimensions ("batch × heads × context × context") and its
type, and the moments at which they are alive. Bytes are computed from that very text, here and in
the page that asks what fits, so that a formula in a report cannot disagree with its number.
`stepscope.formulas.footprint_peak` adds them up.

Under autocast (bf16, fp16) the table follows CUDA's lists of operators (ATen/autocast_mode.h):
matrix products and fused attention run in 16 bits; exp, log, rsqrt, reciprocal and sum in fp32;
addcmul in the widest type among its inputs; and all others, as mul, silu and mean, in the type that
they are given. A weight's 16-bit copy is kept until autocast ends, without gradients too
(`cached_cast` asks whether the weight is a leaf that requires a gradient, not whether autograd is
on); an activation's copy is made anew for each product. The residual stream stays in fp32, because
the embedding is not cast and fp32 + bf16 is fp32.

`sdpa` is taken to run a fused kernel: FlashAttention or cuDNN's in 16 bits, the memory-efficient
kernel in fp32, which rounds its row statistics up to 32 queries. All three save Q, K, V, their
result and one number a row. A window is a mask to `sdpa` (context × context), which it turns into
numbers and keeps for every block; `flex` and `triton` know it by its width. With fewer heads of K
and V PyTorch's memory-efficient kernel does not run: in fp32 `sdpa` then needs more than is said
here.
"""

import functools
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from stepscope.model.about import Optimizer
from stepscope.model.chosen import said
from stepscope.model.formats import FORMATS
from stepscope.model.losses import CHUNK
from stepscope.model.shape import ModelShape

from .architecture import Architecture
from .options import DTYPE_BYTES, TERMS, Row, value

_COMBINED: dict[str, Callable[[Iterable[int]], int]] = {"sum": sum, "min": min, "max": max}
OPTIONS = (
    "precision",
    "attention",
    "optimizer",
    "loss",
    "compile",
    "recompute",
    "gradients",
    "strategy",
)


@dataclass(frozen=True)
class Setup:
    """A model and how it is run. precision, attention, optimizer, loss, compile and checkpoint are
    values of the options of those names; all values: `stepscope.formulas.options`."""

    shape: ModelShape
    batch: int  # sequences, of one device
    context: int  # tokens
    precision: str = "fp32"
    attention: str = "naive"
    optimizer: str = "own"
    loss: str = "own"
    compile: str = "none"
    checkpoint: int = 0
    recompute: str = "no"
    gradients: str = "kept"
    strategy: str = "alone"
    devices: int = 1

    @classmethod
    def of(cls, spec: dict) -> "Setup":
        """What a spec names, of a step with all activations kept and nothing compiled."""
        names = ("batch", "context", "precision", "attention", "optimizer", "loss")
        return cls(ModelShape.of(spec), **{name: spec[name] for name in names if name in spec})

    @property
    def is_known(self) -> bool:
        """Whether the closed form knows all that this project's options need: of a precision in the
        blocks' linear layers alone it does not know the operands that are kept."""
        says = said("optimizer", self.optimizer, Optimizer)
        is_whole = not FORMATS[self.precision].outside
        return is_whole and None not in (says.state, says.workspace)

    @property
    def types(self) -> dict[str, str]:
        """What the types in the table stand for, where they are none of PyTorch's."""
        return value("precision", self.precision).types

    @functools.cached_property
    def sizes(self) -> dict[str, int]:
        """What the dimensions in formulas stand for."""
        others = {"devices": self.devices, "checkpoint": self.checkpoint}
        return all_sizes(self.shape, self.batch, self.context, **others)

    @functools.cached_property
    def flags(self) -> frozenset[str]:
        """What conditions in the table ask for."""
        numbers = TERMS["flags"].items()
        found = [flag for flag, tests in numbers if any(map(self._is_true, tests))]
        for option in OPTIONS:
            found += value(option, getattr(self, option)).flags
        return frozenset(found)

    def _is_true(self, comparison: str) -> bool:
        """Whether one product of dimensions is less than another."""
        less, more = (product(each, self.sizes) for each in comparison.split(" < "))
        return less < more


def all_sizes(shape: ModelShape, batch: int, context: int, **others: int) -> dict[str, int]:
    """Dimensions of a model and of what it is given, others, and those that follow from them."""
    found = {"batch": batch, "context": context, "window": shape.keys_seen(context)} | others
    found["tokens of a chunk"] = CHUNK
    for name, field in TERMS["sizes"].items():
        found[name] = getattr(shape, field, getattr(Architecture, field, 0))
    for name, (how, *products) in TERMS["dimensions"].items():
        found[name] = _COMBINED[how](product(each, found) for each in products)
    return found


def product(text: str, sizes: dict[str, int]) -> int:
    """The value of dimensions, from the left: "×" multiplies, "/" divides and rounds up."""
    found = 1
    for sign, name in _factors(text):
        factor = int(name) if name.isdigit() else sizes[name]
        found = found * factor if sign == "×" else -(-found // factor)
    return found


@functools.cache
def _factors(text: str) -> list[tuple[str, str]]:
    """Each with the sign before it."""
    _, *parts = re.split(" ([×/]) ", f"1 × {text}")
    return list(zip(parts[::2], parts[1::2], strict=True))


@dataclass(frozen=True)
class Contribution:
    """`count` equal tensors."""

    category: str
    # the part that makes it, or saves it where autograd keeps it: "blocks.*/attention/softmax"
    module: str
    name: str
    dims: str  # of one, in words: "batch × context × d_model"
    numbers: int  # elements of one
    dtype: str
    count: int = 1
    op: str = ""  # PyTorch's operator that makes it, where it is known

    @property
    def bytes(self) -> int:
        """Of all together."""
        return self.count * self.numbers * DTYPE_BYTES[self.dtype]

    @property
    def formula(self) -> str:
        """What `bytes` is made of: "24 × batch × context × d_model × 4 B"."""
        return f"{self.count} × " * (self.count != 1) + f"{self.dims} × {DTYPE_BYTES[self.dtype]} B"


def holds(condition: str, flags: Collection[str]) -> bool:
    """Whether all flags of a condition are there, and none of those behind "!"."""
    words = condition.split()
    return all((word.lstrip("!") in flags) != word.startswith("!") for word in words)


@functools.cache
def group(setup: Setup, name: str) -> tuple[Contribution, ...]:
    """The tensors of a group of the table, as often as one block, or one of whatever it is, has
    them. Raises ValueError for an optimizer that does not say what it keeps."""
    known = TERMS["groups"][name]
    if not holds(known.get("when", ""), setup.flags):
        return ()
    own = getattr(value("optimizer", setup.optimizer), known["own"]) if "own" in known else ()
    over = " / devices" if f"shards-{known.get('sharded')}" in setup.flags else ""
    return tuple(
        _tensor(setup, known["category"], row, over)
        for row in (*known["tensors"], *(Row(*each) for each in own))
        if holds(row.when, setup.flags)
    )


def _tensor(setup: Setup, category: str, row: Row, over: str) -> Contribution:
    """A row of the table, divided among devices or not; a number in front is how many there are."""
    first, _, rest = row.dims.partition(" × ")
    count, dims = (int(first), rest) if first.isdigit() else (1, row.dims)
    return Contribution(
        category,
        row.module,
        row.name,
        dims=dims + over,
        numbers=product(dims + over, setup.sizes),
        dtype=setup.types.get(row.dtype, row.dtype),
        count=count,
        op=row.op,
    )


def total(contributions: Iterable[Contribution]) -> int:
    """Bytes of all together."""
    return sum(each.bytes for each in contributions)
