"""Which operators run, and in which dtypes: seen below autocast, where its casts have become operators themselves."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from stepscope.measure import memory, precision

_NAMES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.int64: "int64",
    torch.bool: "bool",
}
_UNSUPPORTED = ("not implemented for", "not supported", "does not support", "unsupported")
Result = TypeVar("Result")


def name_of(dtype: torch.dtype) -> str:
    """Short name of a dtype, as `fp32`."""
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))


def names_of(value: object) -> str:
    """The dtypes of the tensors in nested arguments, each once, in their order, joined by ` + `."""
    found = (name_of(leaf.dtype) for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))
    return " + ".join(dict.fromkeys(found))


def refused(name: str, device: str) -> str | None:
    """Why a GPU cannot run autocast in a format; None if it can. A CPU without its instructions is only slow."""
    return precision.unsupported(name, device) if device == "cuda" else None


def attempt(call: Callable[[], Result], refused: str | None = None) -> tuple[Result | None, str]:
    """(what `call` gives, ""); or (None, why not) where it is refused, or the device lacks an operator for a dtype."""
    if refused:
        return None, refused
    try:
        return call(), ""
    except RuntimeError as error:  # NotImplementedError is one
        if not any(part in str(error).lower() for part in _UNSUPPORTED):
            raise
        return None, memory.reason(error)


class OperatorLog(TorchDispatchMode):
    """Within it, `rows` gets one entry for each operator that takes or gives floating-point numbers.

    Operators that only look at a tensor in another way (views, detach) compute nothing and are left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict] = []
        self.part: str | None = None  # what the operators belong to, set from outside

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        leaves = [leaf for leaf in tree_leaves([args, kwargs, result]) if isinstance(leaf, torch.Tensor)]
        if any(map(torch.is_floating_point, leaves)) and not _is_view(func):
            operator = func._schema.name.removeprefix("aten::")
            entry = {"operator": operator, "input_dtypes": names_of([args, kwargs]), "output_dtype": names_of(result)}
            self.rows.append({"part": self.part} | entry)
        return result


def _is_view(func) -> bool:
    returns = func._schema.returns
    aliases = [argument.alias_info for argument in func._schema.arguments if argument.alias_info]
    written = any(alias.is_write for alias in aliases)
    return bool(returns and returns[0].alias_info and not written) or func._schema.name == "aten::_unsafe_view"
