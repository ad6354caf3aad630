"""What one step makes and saves: the outputs of every operator, and the tensors that autograd keeps for backward."""

import contextlib
from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Observed(contextlib.AbstractContextManager):
    """Within its `with` block fills `made` and `saved`, each a list of plain dictionaries, in the order of making.

    `where()` gives the running (phase, module). Tensors are neither kept nor copied, so memory is as without it.
    """

    def __init__(self, parameters: Iterable[tuple[str, Tensor]], where: Callable[[], tuple[str, str]]):
        self.made: list[dict] = []
        self.saved: list[dict] = []
        self._parameters = {address(tensor): name for name, tensor in parameters}
        self._where = where
        self._maker: dict[int, dict] = {}  # address -> what was made there last
        self._kept: set[int] = set()  # of what was made, by identity: an address may be used again

    def __enter__(self) -> "Observed":
        self._open = contextlib.ExitStack()
        self._open.enter_context(torch.autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor))
        self._open.enter_context(_Operators(self._make))
        return self

    def __exit__(self, *error) -> None:
        self._open.close()

    def _make(self, operator: str, inputs: list[Tensor], tensor: Tensor) -> None:
        phase, module = self._where()
        copied = self._parameters.get(address(inputs[0])) if operator == "_to_copy" and inputs else None
        entry = {"phase": phase, "module": module, "op": operator, "cast_of": copied} | described(tensor)
        self.made.append(entry)
        self._maker[address(tensor)] = entry

    def _save(self, tensor: Tensor) -> Tensor:
        maker = self._maker.get(address(tensor))  # none: a parameter, a table or the batch, there before the step
        if maker is not None and id(maker) not in self._kept:
            self._kept.add(id(maker))
            made_by = {"op": maker["op"], "cast_of": maker["cast_of"]}
            self.saved.append({"module": self._where()[1]} | made_by | described(tensor))
        return tensor.detach()  # a result kept with its graph would be a circle that only a backward pass opens


class _Operators(TorchDispatchMode):
    """Tells of each new storage that an operator returns."""

    def __init__(self, made: Callable[[str, list[Tensor], Tensor], None]):
        super().__init__()
        self._made = made

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        given = [leaf for leaf in tree_leaves((args, kwargs or {})) if isinstance(leaf, Tensor)]
        known = {address(tensor) for tensor in given}
        result = operator(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and address(tensor) not in known:
                known.add(address(tensor))
                self._made(operator.overloadpacket.__name__, given, tensor)
        return result


def address(tensor: Tensor) -> int:
    """Where the tensor's storage begins."""
    return tensor.untyped_storage().data_ptr()


def described(tensor: Tensor) -> dict:
    """Bytes of the storage, shape and type of the tensor."""
    kind = str(tensor.dtype).removeprefix("torch.")
    return {"bytes": tensor.untyped_storage().nbytes(), "shape": list(tensor.shape), "dtype": kind}
