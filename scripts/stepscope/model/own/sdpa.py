"""Calls of torch's scaled_dot_product_attention that a model makes, led elsewhere while it runs."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch.nn.functional as F
from torch import nn

SDPA = F.scaled_dot_product_attention


class InPlaceOfSdpa(AbstractContextManager):
    """Within it `attention` stands for torch's scaled_dot_product_attention, with the same
    parameters: in torch itself and in the files of the model's classes, by whatever name these
    imported it. It may be entered any number of times.
    """

    def __init__(self, module: nn.Module, attention: Callable):
        files = {type(part).__module__ for part in module.modules()} & set(sys.modules)
        self._places: list[tuple[dict, str]] = []
        for names in (vars(F), *(vars(sys.modules[file]) for file in files)):
            self._places += [(names, key) for key, value in list(names.items()) if value is SDPA]
        self._attention = attention

    def __enter__(self) -> None:
        for names, key in self._places:
            names[key] = self._attention

    def __exit__(self, *_error) -> None:
        for names, key in self._places:
            names[key] = SDPA
