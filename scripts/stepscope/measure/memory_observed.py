"""What one step makes and saves (every operator's outputs, and the tensors that autograd keeps for
backward), and which part of the model is running: in the forward pass by its ranges, in the
backward pass by autograd's nodes."""

import bisect
import contextlib
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Observed(TorchDispatchMode):
    """Within its `with` block fills `made`, and within that of its `hooks` `saved`, each a list of
    plain dictionaries, in the order of making.

    `where()` gives the running (phase, module). Tensors are neither kept nor copied, so memory is
    as without it.
    """

    def __init__(
        self, parameters: Iterable[tuple[str, Tensor]], where: Callable[[], tuple[str, str]]
    ):
        super().__init__()
        self.made: list[dict] = []
        self.saved: list[dict] = []
        self._parameters = {address(tensor): name for name, tensor in parameters}
        self._where = where
        self._maker: dict[int, dict] = {}  # address -> what was made there last
        self._kept: set[int] = set()  # of what was made, by identity: an address may be used again
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        given = [leaf for leaf in tree_leaves((args, kwargs or {})) if isinstance(leaf, Tensor)]
        known = {address(tensor) for tensor in given}
        result = operator(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):  # each new storage
            if isinstance(tensor, Tensor) and address(tensor) not in known:
                known.add(address(tensor))
                self._make(operator.overloadpacket.__name__, given, tensor)
        return result

    def _make(self, operator: str, inputs: list[Tensor], tensor: Tensor) -> None:
        phase, module = self._where()
        copied = None
        if operator == "_to_copy" and inputs:
            copied = self._parameters.get(address(inputs[0]))
        where = {"phase": phase, "module": module, "op": operator, "cast_of": copied}
        entry = where | described(tensor)
        self.made.append(entry)
        self._maker[address(tensor)] = entry

    def _save(self, tensor: Tensor) -> Tensor:
        # None has made a parameter, a table or the batch, which were there before the step.
        maker = self._maker.get(address(tensor))
        if maker is not None and id(maker) not in self._kept:
            self._kept.add(id(maker))
            made_by = {"op": maker["op"], "cast_of": maker["cast_of"]}
            self.saved.append({"module": self._where()[1]} | made_by | described(tensor))
        # A result kept with its graph would be a circle that only a backward pass opens.
        return tensor.detach()


def address(tensor: Tensor) -> int:
    """Where the tensor's storage begins."""
    return tensor.untyped_storage().data_ptr()


def described(tensor: Tensor) -> dict:
    """Bytes of the storage, shape and type of the tensor."""
    kind = str(tensor.dtype).removeprefix("torch.")
    return {"bytes": tensor.untyped_storage().nbytes(), "shape": list(tensor.shape), "dtype": kind}


class Parts:
    """Follows the path of the running part, such as "blocks.3/attention/softmax"; `changed(path)`
    is told of each.

    A node of autograd's graph belongs to the part in which the forward pass made it, by its
    sequence number; the part whose node runs is the one whose gradient is computed. Its hooks make
    and hold no tensors.
    """

    def __init__(self, blocks: Iterable[nn.Module], changed: Callable[[str], None]):
        self._changed = changed
        self._stack: list[str] = []
        self._first_node: list[int] = []  # sequence numbers from which on ...
        self._paths: list[str] = []  # ... nodes belong to this path
        for number, block in enumerate(blocks):
            block.register_forward_pre_hook(lambda *_, name=f"blocks.{number}": self._enter(name))
            block.register_forward_hook(lambda *_: self._leave())

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[None]:
        """A range of the model, as stepscope.model.ranges opens them. Blocks are known by their
        number already, so that their ranges are passed over.

        An error leaves it open: where memory ran out is then the running part, and the next step
        forgets it.
        """
        if name == "block":
            yield
            return
        self._enter(name)
        yield
        self._leave()

    def forget(self) -> None:
        """Begin a new step."""
        self._stack.clear()
        self._first_node.clear()
        self._paths.clear()

    def watch_backward(self, loss: Tensor) -> None:
        """From now on each node of the loss's graph tells its part before it runs."""
        assert loss.grad_fn is not None, "a loss without a graph has no backward pass"
        waiting = [loss.grad_fn]
        seen = {loss.grad_fn}
        while waiting:
            node = waiting.pop()
            if not hasattr(node, "variable"):  # of a parameter: it makes nothing of its own
                path = self._path_of(node)
                node.register_prehook(lambda *_, path=path: self._changed(path))
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    waiting.append(following)

    def _path_of(self, node: Node) -> str:
        place = bisect.bisect_right(self._first_node, node._sequence_nr()) - 1
        return self._paths[place] if place >= 0 else ""

    def _enter(self, name: str) -> None:
        self._stack.append(name)
        self._tell()

    def _leave(self) -> None:
        self._stack.pop()
        self._tell()

    def _tell(self) -> None:
        path = "/".join(self._stack)
        self._first_node.append(torch._C._autograd._get_sequence_nr())
        self._paths.append(path)
        self._changed(path)
