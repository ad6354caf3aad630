"""Bytes and operations against numbers counted by hand."""

import math

import pytest
import torch
from stepscope.model import traffic
from stepscope.model.footprint import Setup
from stepscope.model.optimizers.own import make
from stepscope.model.shape import ModelShape
from torch.utils._python_dispatch import TorchDispatchMode

SHAPE = ModelShape(d_model=8, d_ff=16, num_layers=2, num_heads=2, vocab_size=11)
BATCH, CONTEXT = 3, 6
TOKENS, STREAM, SCORES, HIDDEN = 18, 18 * 8, 3 * 2 * 6 * 6, 18 * 16
MATRICES = 2 * (4 * 8 * 8 + 3 * 8 * 16) + 11 * 8  # of two layers, and the head
GAINS = 2 * 2 * 8 + 8
PARAMETERS = MATRICES + GAINS + 11 * 8  # and the embedding


def setup(precision="fp32", **more):
    return Setup(SHAPE, BATCH, CONTEXT, precision, **more)


def test_fp32():
    # Each block: ten tensors of the stream's size (the inputs of both norms, what they divide by rms, the inputs of QKV
    # and of the gate, Q, K, V and what attention gives), 1 / rms twice, exponentials, weights and 1 / sums of the
    # softmax, and gate, silu, up and their product.
    block = 10 * STREAM + 2 * TOKENS + 2 * SCORES + 3 * 2 * 6 + 4 * HIDDEN
    outside = 3 * STREAM + TOKENS + TOKENS * 11 + TOKENS
    saved = 4 * (2 * block + outside)
    assert saved == 27_432
    assert traffic.saved_activations(setup()) == saved
    assert traffic.forward_bytes(setup()) == 4 * (MATRICES + GAINS) + saved
    assert traffic.backward_bytes(setup()) == saved + 4 * (MATRICES + GAINS) + 4 * PARAMETERS
    assert traffic.forward_bytes(setup("tf32")) == traffic.forward_bytes(setup())


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_autocast(precision):
    # In fp32: inputs of the norms, what they divide, 1 / rms, exponentials and 1 / sums, log-sum-exp; else 16 bits, and
    # the input of the gate and of up are cast twice.
    block = 4 * (4 * STREAM + 2 * TOKENS + SCORES + 3 * 2 * 6) + 2 * (7 * STREAM + SCORES + 4 * HIDDEN)
    outside = 4 * (2 * STREAM + 2 * TOKENS) + 2 * (STREAM + TOKENS * 11)
    saved = 2 * block + outside
    assert saved == 18_396
    assert traffic.forward_bytes(setup(precision)) == 4 * (MATRICES + GAINS) + 2 * MATRICES + saved
    assert traffic.backward_bytes(setup(precision)) == saved + 2 * MATRICES + 4 * GAINS + 4 * PARAMETERS


def test_fused_attention_saves_no_scores():
    less = traffic.saved_activations(setup()) - traffic.saved_activations(setup(attention="sdpa"))
    # Two score matrices and 1 / sums go; log-sum-exp, of rows in 32s, and the projection's Q and K beside V come.
    assert less == 2 * 4 * (2 * SCORES + 3 * 2 * 6 - 3 * 2 * 32 - 2 * STREAM)


def test_the_optimizer_moves_28_bytes_a_parameter():
    for precision in ("fp32", "bf16"):
        assert traffic.optimizer_bytes(setup(precision)) == 28 * PARAMETERS


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


class Counted:
    """A number that counts the operations on it."""

    done = 0

    def __init__(self, value):
        self.value = value

    def _apply(self, value):
        Counted.done += 1
        return Counted(value)

    def __add__(self, other):
        return self._apply(self.value + getattr(other, "value", other))

    def __sub__(self, other):
        return self._apply(self.value - getattr(other, "value", other))

    def __mul__(self, other):
        return self._apply(self.value * getattr(other, "value", other))

    def __truediv__(self, other):
        return self._apply(self.value / getattr(other, "value", other))

    def root(self):
        return self._apply(math.sqrt(self.value))


def test_operations_of_adamw_are_those_of_its_algorithm():
    parameter, gradient, first, second = (Counted(value) for value in (0.5, 0.25, 0.1, 0.2))
    beta1, beta2, epsilon, rate, decay = 0.9, 0.999, 1e-8, 1e-3, 0.99  # with the corrections of the bias in them
    Counted.done = 0
    first = first * beta1 + gradient * (1 - beta1)
    second = second * beta2 + gradient * gradient * (1 - beta2)
    parameter = parameter * decay - first / (second.root() + epsilon) * rate
    assert traffic.optimizer_flops(setup()) == Counted.done * PARAMETERS


def test_attention_moves_q_k_v_and_the_output_once():
    elements = 2 * 3 * 5 * 7
    assert traffic.attention_bytes(2, 3, 5, 7, "bf16", "forward") == 4 * elements * 2
    assert traffic.attention_bytes(2, 3, 5, 7, "fp32", "backward") == 8 * elements * 4
    assert traffic.attention_bytes(2, 3, 5, 7, "tf32", "forward") == 4 * elements * 4
