"""Which part of the model is running: in the forward pass by its ranges, in the backward pass by autograd's nodes."""

import bisect
import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node


class Parts:
    """Follows the path of the running part, such as "blocks.3/attention/softmax"; `changed(path)` is told of each.

    A node of autograd's graph belongs to the part in which the forward pass made it, by its sequence number; the part
    whose node runs is the one whose gradient is computed. Its hooks make and hold no tensors.
    """

    def __init__(self, blocks: nn.ModuleList, changed: Callable[[str], None]):
        self._changed = changed
        self._stack: list[str] = []
        self._first_node: list[int] = []  # sequence numbers from which on ...
        self._paths: list[str] = []  # ... nodes belong to this path
        for number, block in enumerate(blocks):
            block.register_forward_pre_hook(lambda *_, name=f"blocks.{number}": self._enter(name))
            block.register_forward_hook(lambda *_: self._leave())

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[None]:
        """A range of the model, as stepscope.model.ranges opens them.

        An error leaves it open: where memory ran out is then the running part, and the next step forgets it.
        """
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
        waiting, seen = [loss.grad_fn], {loss.grad_fn}
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
