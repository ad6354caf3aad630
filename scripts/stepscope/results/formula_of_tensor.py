"""A tensor's size as a formula of the model's numbers, found from its dimensions. Standard library
only."""

import math

from stepscope.formulas.footprint import DTYPE_BYTES, WEIGHTS, Setup, spelled

# "·" joins dimensions that the code merges into one; a dimension of 1 is not repeated in the
# formula.
_CHANNELS = ("d_model", "3 d_model", "d_ff", "vocabulary", "d_K")
_ACTIVATIONS = (
    "batch × heads × context × context",
    "batch·heads × context × context",
    "batch × heads × context × d_head",
    "batch·heads × context × d_head",
    "batch × context × heads × d_head",
    "batch × K heads × context × d_head",
    "batch·K heads × context × d_head",
    "batch × context × K heads × d_head",
    "batch × heads × d_head × context",
    "batch·heads × d_head × context",
    "batch × context × heads × pairs × 2",
    "3 × batch × context × heads × d_head",
    "batch × context × 3 × heads × d_head",
    *(f"batch × context × {channels}" for channels in _CHANNELS),
    *(f"batch·context × {channels}" for channels in _CHANNELS),
    "batch × context × context",
    "batch × heads × context × 1",
    "batch × heads × context",
    "batch × context × 1",
    "batch × context",
    "batch·context",
    "context × 1 × d_head",
    "context × d_head",
    "context × context",
)


def _ways(dims: str) -> tuple[str, ...]:
    """How a weight is laid out: as it is, transposed, and with axes of 1 in front."""
    return dims, " × ".join(reversed(dims.split(" × "))), f"1 × 1 × {dims}"


_WEIGHTS = tuple(dict.fromkeys(way for dims in WEIGHTS for way in _ways(dims)))
_OF_WEIGHTS = ("parameters", "gradients", "optimizer state", "cast weights")


def formula_of(
    setup: Setup, size: int, dims: tuple[int, ...], dtype: str, category: str = ""
) -> str | None:
    """What the bytes of a tensor are made of, as "batch × heads × context × context × 4 B".

    size: bytes of its memory. dims: its shape. dtype: as torch names it, with or without "torch.".
    None if the shape is none that the model has, or the memory is more than the shape needs. Where
    two shapes of the model are equal, the category decides between weights and activations.
    """
    width = DTYPE_BYTES.get(dtype.removeprefix("torch."))
    if width is None or size != width * math.prod(dims):
        return None
    is_of_weights = category in _OF_WEIGHTS
    first, last = (_WEIGHTS, _ACTIVATIONS) if is_of_weights else (_ACTIVATIONS, _WEIGHTS)
    patterns = [*first, *last]
    if setup.shape.num_heads == 1:
        # batch·heads is batch, and d_head is d_model: the plainer names first.
        patterns.sort(key=lambda pattern: "heads" in pattern)
    for pattern in (spelled(setup, each) for each in patterns):
        if _sizes_of(setup, pattern) == tuple(dims):
            factors = pattern.replace("·", " × ").replace("pairs × 2", "d_head").split(" × ")
            named = [factor for factor in factors if factor != "1"]
            return " × ".join([*named, f"{width} B"])
    return None


def _sizes_of(setup: Setup, pattern: str) -> tuple[int, ...]:
    """The dimensions that a pattern stands for in this model."""
    known = setup.sizes | {"pairs": setup.shape.d_head // 2, "1": 1, "2": 2, "3": 3}
    dims = (dim.split("·") for dim in pattern.split(" × "))
    return tuple(math.prod(known[name] for name in merged) for merged in dims)
