"""Ranges of a model that has none of its own: hooks that open and close what its parts are called.

They are there only while a profiler has ranges turned on. Forward, a range spans the call of a
module. Backward, it begins before the gradient of the module's output is passed on, and ends once
that of its inputs is complete, "attention backward". No hook changes a tensor or adds to autograd's
graph, so the numbers stay what they are. torch.profiler has ranges of autograd's engine, which
those of the backward pass cross: there they have no parent.
"""

import fnmatch
import threading
from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from stepscope.model import ranges
from stepscope.model.own.sdpa import namespaces

BACKWARD = " backward"
_VIEWS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")
_KEY = "parts that end here"  # in what autograd lets us keep with a node


def names_its_own(module: nn.Module) -> bool:
    """Whether a file that the model's classes come from uses `stepscope.model.ranges` itself."""
    for names in namespaces(module):
        if any(value is ranges or value is ranges.named for value in list(names.values())):
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
        if ranges.are_on() == bool(self._handles):
            return
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if ranges.are_on():
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
                    self._open_before(node, path, name, outer)
                if not has_input:  # as an embedding: no gradient goes on from there
                    nodes[-1].register_hook(lambda *_: self._backward.close(path))

        # always_call: recomputing a checkpointed block ends with an exception as soon as it has all
        # that it needs.
        self._handles.append(part.register_forward_pre_hook(before, with_kwargs=True))
        self._handles.append(part.register_forward_hook(after, with_kwargs=True, always_call=True))

    def _open_before(self, node, *part) -> None:
        """Open the range of a part before `node` runs; of several that it ends, the one that came
        back last is the outermost."""
        ending = node.metadata.setdefault(_KEY, [])
        ending.append(part)

        def open_all(_gradients) -> None:
            for each in reversed(ending):
                self._backward.open(*each)

        if len(ending) == 1:
            node.register_prehook(open_all)


class _Backward(threading.local):
    """The ranges that a thread of autograd has open, outermost first, by path.

    A gradient may be complete only after the next module's backward pass has begun: what does not
    hold that module is closed first, so that ranges always lie in each other.
    """

    def __init__(self) -> None:
        self._opened: dict[str, AbstractContextManager] = {}

    def open(self, path: str, name: str, outer: tuple[str, ...]) -> None:
        if path in self._opened:
            return  # another of its outputs came first
        for other in reversed(list(self._opened)):
            if other in outer:
                break
            self.close(other)
        self._opened[path] = ranges.named(name + BACKWARD)
        self._opened[path].__enter__()

    def close(self, path: str) -> None:
        while path in self._opened:
            self._opened.popitem()[1].__exit__(None, None, None)


def _last_nodes(end) -> list:
    """What runs first backward: the node of an output, and of a view also that of what it shows; an
    operation in place on the view takes the view's node out of the graph."""
    below = end.next_functions[0][0] if end.name() in _VIEWS else None
    return [end] if below is None else [end, below]


def _tensors(value: object) -> list[Tensor]:
    """The tensors in nested tuples, lists and dicts that a gradient passes through."""
    leaves = tree_leaves(value)
    return [each for each in leaves if isinstance(each, Tensor) and each.grad_fn is not None]
