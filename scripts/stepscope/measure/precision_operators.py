"""Which operators run, and in which dtypes: seen below autocast, where its casts have become operators themselves."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_NAMES = {
    torch.float64: "fp64",
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.int64: "int64",
    torch.bool: "bool",
}
_UNSUPPORTED = ("not implemented for", "not supported", "does not support", "unsupported")


def name_of(dtype: torch.dtype) -> str:
    """Short name of a dtype, as `fp32`."""
    return _NAMES.get(dtype, str(dtype).removeprefix("torch."))


def names_of(value: object) -> str:
    """The dtypes of the tensors in nested arguments, each once, in their order, joined by ` + `."""
    found = (name_of(leaf.dtype) for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))
    return " + ".join(dict.fromkeys(found))


def missing_operator(error: Exception) -> str | None:
    """The error in one line where the device lacks an operator for a dtype; None if it is any other error."""
    if not isinstance(error, RuntimeError):  # NotImplementedError is one
        return None
    text = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
    return text if any(part in str(error).lower() for part in _UNSUPPORTED) else None


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
        floats = [leaf for leaf in tree_leaves([args, kwargs, result]) if _is_float(leaf)]
        if floats and not _is_view(func):
            operator = func._schema.name.removeprefix("aten::")
            entry = {"operator": operator, "input_dtypes": names_of([args, kwargs]), "output_dtype": names_of(result)}
            self.rows.append({"part": self.part} | entry)
        return result


def _is_float(leaf: object) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_floating_point()


def _is_view(func) -> bool:
    returns = func._schema.returns
    aliases = [argument.alias_info for argument in func._schema.arguments if argument.alias_info]
    written = any(alias.is_write for alias in aliases)
    return bool(returns and returns[0].alias_info and not written) or func._schema.name == "aten::_unsafe_view"
