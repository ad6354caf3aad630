"""The step on several devices by closed forms worked out by hand."""

from dataclasses import replace

import pytest
from pytest import approx
from stepscope.model.shape import ModelShape
from stepscope.parallel.predicted import (
    Gradient,
    Network,
    OneDevice,
    gradients_of,
    hiding_batch,
    step,
)

MB = 1e6
# 10 ms for 100 MB on two devices, 1 ms for whatever is small: bandwidth and latency of a link
NETWORK = Network(2, ((1000, 0.001), (int(100 * MB), 0.010)))
# Gradients of 100 MB each, the last of which is there when the backward pass ends
ONE = OneDevice(
    forward=0.05,
    backward=0.10,
    optimizer=0.02,
    batch=4,
    gradients=tuple(Gradient(int(100 * MB), ready) for ready in (0.25, 0.5, 0.75, 1.0)),
)


def test_an_all_reduce_is_latency_then_bandwidth_and_grows_with_devices():
    assert NETWORK.all_reduce(10) == 0.001
    assert NETWORK.all_reduce((1000 + 100 * MB) / 2) == approx(0.0055)
    assert NETWORK.all_reduce(400 * MB) == approx(0.040)
    # 2 (n - 1) / n: 1 on two devices, 1.75 on eight
    assert NETWORK.among(8).all_reduce(400 * MB) == approx(0.070)


# The first starts after 25 ms, all four take 200 ms: 125 ms after the backward pass.
SLOW = Network(2, ((1000, 0.001), (int(100 * MB), 0.050)))
# What sends and computes at once: sends 1.5 times as long, and computes 0.8 as much; 1 ms to copy
SLOWED = replace(NETWORK, lost=0.2, slowed=1.5, copying=1e-11)


@pytest.mark.parametrize(
    "network, strategy, more",
    [
        (NETWORK, "alone", 0.0),
        (NETWORK, "naive", 4 * 0.010),
        (NETWORK, "flat", 0.040),
        (NETWORK, "overlapped", 0.010),  # the last one alone is late
        (NETWORK, "ddp", 0.010),  # each gradient fills a bucket
        (NETWORK, "sharded", 0.040 - 0.010),  # and the optimizer works on a half
        (NETWORK, "zero", 0.010 + 0.020 - 0.010),
        # The embedding's 5 ms show at both ends, 15 ms of gathering in each pass are hidden.
        (NETWORK, "fsdp", 2 * 0.005 - 0.010),
        (NETWORK, "staged", 0.0),  # 15 of the optimizer's 20 ms hide the last
        (SLOW, "overlapped", 0.125),
        (SLOWED, "naive", 4 * 0.010),
        (SLOWED, "flat", 0.040 + 0.004),
        # Three are sent in 15 ms, of each of which 3 are lost; the last once nothing computes.
        (SLOWED, "overlapped", 3 * 0.003 + 0.010),
        (SLOWED, "ddp", 3 * 0.003 + 0.010 + 2 * 0.004),
        (SLOWED, "staged", 3 * 0.003 + 0.003),
        # 15 ms beside the forward pass and 30 beside the other last 22.5 and 45, of which a fifth
        # is lost; three copies; half the optimizer.
        (SLOWED, "fsdp", 0.2 * 0.0675 + 2 * 0.005 + 3 * 0.004 - 0.010),
    ],
)
def test_a_step_on_two_devices_is_longer_than_one_devices(network, strategy, more):
    assert step(ONE, network, strategy, 2) == approx(0.17 + more)


def test_gradients_are_there_in_reverse_after_as_much_of_the_products():
    # a block of a width of 10: queries, keys and values 300 entries, what follows them 100, three
    # matrices of 200; a head, and an embedding, which is no product's, of 700; three gains of 10
    found = gradients_of(ModelShape(10, 20, 1, 1, vocab_size=70))
    assert [one.bytes for one in found] == [2800, 40, 800, 800, 800, 400, 1200, 40, 40, 2800]
    done = [700, 700, 900, 1100, 1300, 1400, 1700, 1700, 1700, 1700]
    assert [one.ready for one in found] == approx([each / 1700 for each in done])


def test_the_batch_from_which_communication_hides():
    # 10 ms show whatever the batch; 2 % of a step of 0.15 / 4 a sequence and 20 ms: 12.8
    assert hiding_batch(ONE, NETWORK, "overlapped", 2) == 13
    assert step(ONE.with_batch(13), NETWORK, "overlapped", 2) <= 1.02 * ONE.with_batch(13).step
    assert step(ONE.with_batch(12), NETWORK, "overlapped", 2) > 1.02 * ONE.with_batch(12).step


def test_the_gradients_are_those_of_all_parameters():
    shape = ModelShape(64, 160, 3, 4, vocab_size=100, key_value_heads=2)
    found = gradients_of(shape)
    assert sum(one.bytes for one in found) == 4 * shape.parameters
    assert found[-1] == Gradient(4 * 6400, 1.0)  # the embedding's, at the end
