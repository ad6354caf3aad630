"""Calls of torch's scaled_dot_product_attention that a model makes, led elsewhere while it runs."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch.nn.functional as F
from torch import nn

SDPA = F.scaled_dot_product_attention
FLEX = "torch.nn.attention.flex_attention"
TORCHS = {F.__name__, FLEX}  # where torch's own code looks attentions up


class InPlaceOfSdpa(AbstractContextManager):
    """Within it `attention` stands for torch's scaled_dot_product_attention, with the same
    parameters: in torch itself and in the files of the model's classes, by whatever name these
    imported it. It may be entered any number of times. original: for another function of torch's.
    """

    def __init__(self, module: nn.Module, attention: Callable, original: Callable = SDPA):
        self._places: list[tuple[dict, str]] = []
        files = {type(part).__module__ for part in module.modules()}
        for file in (files | TORCHS) & sys.modules.keys():
            names = vars(sys.modules[file])
            same = [key for key, value in list(names.items()) if value is original]
            self._places += [(names, key) for key in same]
        self._attention = attention
        self._original = original

    def __enter__(self) -> None:
        for names, key in self._places:
            names[key] = self._attention

    def __exit__(self, *_error) -> None:
        for names, key in self._places:
            names[key] = self._original
