"""Bytes that the optimizer and the named ranges move, counted operator by operator."""

import contextlib

import pytest
import torch
from stepscope.formulas import traffic
from stepscope.model import ranges
from stepscope.model.attention.naive import attention
from stepscope.model.optimizers.own import make
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import TransformerLM
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

SHAPE = ModelShape(128, 256, 2, 4, 512)


class Ranges(TorchDispatchMode):
    """Bytes that operators read and write within each named range; views move nothing."""

    def __init__(self):
        super().__init__()
        self.moved = {}
        self.inside = []

    @contextlib.contextmanager
    def opened(self, name):
        self.inside.append(name)
        yield
        self.inside.pop()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        results = [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
        given = [each for each in pytree.tree_leaves(args) if isinstance(each, torch.Tensor)]
        given = {id(each): each for each in given}.values()  # one that is given twice, once
        storages = {each.untyped_storage().data_ptr() for each in given}
        name = operator.__name__.split(".")[0]
        is_view = not name.endswith("_") and any(
            each.untyped_storage().data_ptr() in storages for each in results
        )
        if self.inside and not is_view and name != "empty_like":
            size = sum(each.numel() * each.element_size() for each in (*given, *results))
            self.moved[self.inside[-1]] = self.moved.get(self.inside[-1], 0) + size
        return result


def test_adamw_written_out_moves_72_bytes_a_parameter():
    parameter = torch.nn.Parameter(torch.ones(1000))
    parameter.grad = torch.ones(1000)
    optimizer = make([parameter])
    optimizer.step()  # the first one makes the moments
    with Ranges() as counted, counted.opened("step"):
        optimizer.step()
    assert traffic.WRITTEN_OUT_BYTES == counted.moved["step"] / 1000 == 72


@pytest.mark.parametrize("is_mixed", [False, True])
def test_ranges_move_what_their_operators_read_and_write(is_mixed):
    """On the CPU, operator by operator; what goes over rows or masks alone is left out. Under
    autocast a CPU casts the tables of RoPE another way than a GPU."""
    model = TransformerLM(SHAPE, 256, attention)
    tokens = torch.zeros(2, 256, dtype=torch.int64)
    mixed = torch.autocast("cpu", torch.bfloat16, enabled=is_mixed)
    with mixed:
        model(tokens)  # makes the mask that is kept
    with Ranges() as counted, mixed:
        ranges.turn_on(counted.opened)
        model(tokens)
    ranges.turn_on(None)
    found = traffic.of_ranges(SHAPE, 2, 256, is_mixed)
    for name, (_, moved) in found.items():
        if not (is_mixed and name.startswith("RoPE")):
            assert moved == pytest.approx(counted.moved[name], rel=0.06), name


def test_ranges_multiply_what_pytorch_counts():
    model = TransformerLM(SHAPE, 64, attention)
    with FlopCounterMode(display=False) as counted:
        model(torch.zeros(2, 64, dtype=torch.int64))
    found = traffic.of_ranges(SHAPE, 2, 64, is_mixed=False)
    scores = 2 * 2 * 4 * 64 * 64  # layers, batch, heads, positions twice
    numbers = {"softmax": 5 * scores, "mask": scores}
    assert {name: found[name][0] for name in numbers} == numbers
    elementwise = 5 * scores + scores + 2 * 2 * 64 * (2 * 4 * 128 + 2 * 3 * 128 + 128 + 2 * 256)
    elementwise += 2 * 64 * 4 * 128  # the last norm
    total = sum(work for work, _ in found.values())
    assert total - elementwise == counted.get_total_flops()


def test_a_fused_attention_moves_no_scores():
    plain = traffic.of_kinds(SHAPE, 2, 256, (2, 2), is_fused=False)["matmul"]
    rest = traffic.of_kinds(SHAPE, 2, 256, (2, 2), is_fused=True)
    scores = 2 * 2 * 4 * 256 * 256
    # Scores and weights, by three products each: 2 bytes; and Q, K, V and the result by those.
    assert plain[1] - rest["matmul"][1] == 3 * 2 * (2 * scores + 4 * 2 * 2 * 256 * 128)
    assert plain[0] - rest["matmul"][0] == 3 * 2 * 2 * scores * 32
    # 2 products forward, 5 backward, over half of the pairs
    assert rest["fused attention"][0] == 7 * 2 * scores / 2 * 32
    assert rest["fused attention"][1] == 2 * 12 * 2 * 2 * 256 * 128
