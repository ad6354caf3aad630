"""Ranges of a model that has none of its own: hooks that open and close what its parts are called.

They are there only while a profiler has ranges turned on. Forward, a range spans the call of a
module. Backward, it begins before the gradient of the module's output is passed on, and ends once
that of its inputs is complete, "attention backward". No hook changes a tensor or adds to autograd's
graph, so the numbers stay what they are. torch.profiler has ranges of autograd's engine, which
those of the backward pass cross: there they have no parent.
"""

import fnmatch
import sys
import threading
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from stepscope.model import ranges

BACKWARD = " backward"
_VIEWS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")
_KEY = "parts that end here"  # in what autograd lets us keep with a node


def are_on() -> bool:
    """Whether a profiler shows ranges now."""
    return not isinstance(ranges.named("a part"), nullcontext)


def names_its_own(module: nn.Module) -> bool:
    """Whether a file that the model's classes come from uses `stepscope.model.ranges` itself."""
    files = {type(part).__module__ for part in module.modules()}
    for file in files & set(sys.modules):
        for value in list(vars(sys.modules[file]).values()):
            if value is ranges or value is ranges.named:
                return True
    return False


def renamed(parts: dict[str, str], module: nn.Module, chosen: dict[str, str]) -> dict[str, str]:
    """`parts` (path → name) with what the user chose: pattern of paths (`*.attn.c_proj`) → name, ""
    for no range.

    The first pattern that matches a path counts.
    """
    result = dict(parts)
    for path, _ in module.named_modules():
        fits = [name for pattern, name in chosen.items() if fnmatch.fnmatchcase(path, pattern)]
        if path and fits:
            result[path] = fits[0]
    return {path: name for path, name in result.items() if name}


class Names:
    """The hooks of a model's parts (path → name); follow() sets or removes them as ranges are
    turned on or off."""

    def __init__(self, module: nn.Module, parts: dict[str, str]):
        self._module = module
        self._parts = parts
        self._handles: list = []
        self._backward = _Backward()

    def follow(self) -> None:
        """Have the hooks if ranges are on, and else have none: cheap where nothing changes."""
        if are_on() == bool(self._handles):
            return
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if are_on():
            for path, name in self._parts.items():
                self._hook(self._module.get_submodule(path), path, name)

    def _hook(self, part: nn.Module, path: str, name: str) -> None:
        opened: list[AbstractContextManager] = []
        outer = tuple(each for each in self._parts if path.startswith(f"{each}."))

        def before(_part: nn.Module, args: tuple, kwargs: dict) -> None:
            if torch.is_grad_enabled():
                for one in _tensors((args, kwargs)):
                    one.register_hook(lambda _gradient: self._backward.close(path))
            opened.append(ranges.named(name))
            opened[-1].__enter__()

        def after(_part: nn.Module, args: tuple, kwargs: dict, output: object) -> None:
            if not opened:
                return
            opened.pop().__exit__(None, None, None)
            if not torch.is_grad_enabled():
                return
            has_input = bool(_tensors((args, kwargs)))
            for end in {one.grad_fn for one in _tensors(output)}:
                nodes = _last_nodes(end)
                for node in nodes:
                    self._backward.open_before(node, path, name, outer)
                if not has_input:  # as an embedding: no gradient goes on from there
                    nodes[-1].register_hook(lambda *_: self._backward.close(path))

        # always_call: recomputing a checkpointed block ends with an exception as soon as it has all
        # that it needs.
        self._handles.append(part.register_forward_pre_hook(before, with_kwargs=True))
        self._handles.append(part.register_forward_hook(after, with_kwargs=True, always_call=True))


class _Backward:
    """The ranges that a thread of autograd has open, outermost first, as (path, range).

    A gradient may be complete only after the next module's backward pass has begun: what does not
    hold that module is closed first, so that ranges always lie in each other.
    """

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def open_before(self, node, path: str, name: str, outer: tuple[str, ...]) -> None:
        """Open a range before `node` runs; of several that it ends, the one that came back last is
        the outermost."""
        if _KEY not in node.metadata:
            node.metadata[_KEY] = []
            node.register_prehook(lambda _gradients: self._open_all(node.metadata[_KEY]))
        node.metadata[_KEY].append((path, name, outer))

    def _open_all(self, ending: list[tuple[str, str, tuple[str, ...]]]) -> None:
        for path, name, outer in reversed(ending):
            self._open(path, name, outer)

    def _open(self, path: str, name: str, outer: tuple[str, ...]) -> None:
        stack = self._stack()
        if any(each == path for each, _ in stack):
            return  # another of its outputs came first
        while stack and stack[-1][0] not in outer:
            stack.pop()[1].__exit__(None, None, None)
        stack.append((path, ranges.named(name + BACKWARD)))
        stack[-1][1].__enter__()

    def close(self, path: str) -> None:
        stack = self._stack()
        while any(each == path for each, _ in stack):
            stack.pop()[1].__exit__(None, None, None)

    def _stack(self) -> list[tuple[str, AbstractContextManager]]:
        if not hasattr(self._of_thread, "stack"):
            self._of_thread.stack = []
        return self._of_thread.stack


def _last_nodes(end) -> list:
    """What runs first backward: the node of an output, and of a view also that of what it shows; an
    operation in place on the view takes the view's node out of the graph."""
    below = end.next_functions[0][0] if end.name() in _VIEWS else None
    return [end] if below is None else [end, below]


def _tensors(value: object) -> list[Tensor]:
    """The tensors in nested tuples, lists and dicts that a gradient passes through."""
    if isinstance(value, Tensor):
        return [value] if value.grad_fn is not None else []
    if isinstance(value, dict):
        value = list(value.values())
    found = []
    if isinstance(value, (tuple, list)):
        for each in value:
            found += _tensors(each)
    return found
