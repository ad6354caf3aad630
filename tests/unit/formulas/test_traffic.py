"""Bytes that the optimizer moves, counted operator by operator."""

import torch
from stepscope.formulas import traffic
from stepscope.model.optimizers.own import make
from torch.utils._python_dispatch import TorchDispatchMode


class Moved(TorchDispatchMode):
    """Counts the numbers that operators read and write, a tensor that is given twice once."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        read = {id(each): each for each in args if isinstance(each, torch.Tensor)}
        self.numbers += sum(each.numel() for each in (*read.values(), result))
        return result


def test_adamw_written_out_moves_72_bytes_a_parameter():
    parameter = torch.nn.Parameter(torch.ones(1000))
    parameter.grad = torch.ones(1000)
    optimizer = make([parameter])
    optimizer.step()  # the first one makes the moments
    with Moved() as moved:
        optimizer.step()
    assert traffic.WRITTEN_OUT_BYTES == 4 * moved.numbers / 1000 == 72
