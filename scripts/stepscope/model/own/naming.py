"""Ranges of a user's model: hooks that open and close what its parts are called.

They are there only while a profiler has ranges turned on. A range spans the call of a module; what
its backward pass does, autograd's numbers say. No hook changes a tensor or adds to autograd's
graph, so the numbers stay what they are.
"""

import fnmatch
from contextlib import AbstractContextManager

from torch import nn

from stepscope.model import ranges


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

    def follow(self) -> None:
        """Have the hooks if ranges are on, and else have none: cheap where nothing changes."""
        if ranges.are_on() == bool(self._handles):
            return
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if ranges.are_on():
            for path, name in self._parts.items():
                self._hook(self._module.get_submodule(path), name)

    def _hook(self, part: nn.Module, name: str) -> None:
        opened: list[AbstractContextManager] = []

        def before(*_: object) -> None:
            opened.append(ranges.named(name))
            opened[-1].__enter__()

        def after(*_: object) -> None:
            if opened:
                opened.pop().__exit__(None, None, None)

        # always_call: recomputing a checkpointed block ends with an exception as soon as it has all
        # that it needs.
        self._handles.append(part.register_forward_pre_hook(before))
        self._handles.append(part.register_forward_hook(after, always_call=True))
