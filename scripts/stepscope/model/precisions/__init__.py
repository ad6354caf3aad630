"""Precisions in which matrix products are computed, a module each (see `stepscope.model.chosen`).

Its FORMAT is what runs under the name. One that is more than a context of torch also has
`unsupported(shape, tokens)` and `convert(blocks)`, and for products by themselves `factors` and
`product`.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Format:
    """dtype: torch's name for the type of results of products; bytes: of an element of operands.

    is_autocast: whether the forward pass runs under autocast, with weights in fp32. of_fp32: what
    torch.set_float32_matmul_precision is told: "highest" leaves operands of fp32 as they are,
    "high" rounds them to TF32, "medium" to bf16. capability: the least CUDA compute capability.

    cpu_flags: words of /proc/cpuinfo of which one says that a processor multiplies in the format
    (x86's names, then Arm's); without any torch computes in fp32 and rounds, some 16 times slower
    than fp32; empty: on no CPU, None: on each. outside: the precision of all else, where only the
    linear layers of blocks run in this one.
    """

    dtype: str
    bytes: int
    is_autocast: bool = False
    of_fp32: Literal["highest", "high", "medium"] = "highest"
    capability: tuple[int, int] = (0, 0)
    cpu_flags: tuple[str, ...] | None = None
    outside: str = ""
