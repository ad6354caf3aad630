"""Sums of 0.01 in each format: the published digits, and the same bits by exact arithmetic with
fractions."""

from fractions import Fraction

import pytest
import torch
from common import picked
from stepscope.measure.precision import dtype
from stepscope.measure.precision_accumulation import VARIANTS, measure, running_sums

SPEC = {"device": "cpu"}
BITS = {
    "fp32": (24, -149),
    "fp16": (11, -24),
    "bf16": (8, -133),
}  # of the significand; exponent of the smallest number


def rounded(value, dtype):
    """To the nearest number of a format, ties to even (IEEE 754-2019, section 4.3.1); no
    overflow."""
    significand, smallest = BITS[dtype]
    exponent = 0
    while Fraction(2) ** exponent > value:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= value:
        exponent += 1
    step = Fraction(2) ** max(exponent - significand + 1, smallest)
    return round(value / step) * step  # Fraction rounds halves to even


@pytest.fixture(scope="module")
def found():
    return measure(SPEC)


def test_the_sums_are_those_that_the_write_ups_publish(found):
    sums = {row["variant"]: f"{row['sum']:.8f}" for row in found["accumulation"]}
    assert sums["fp32 += fp32"] == "10.00013351"
    assert sums["fp16 += fp16"] == "9.95312500"
    assert sums["fp32 += fp16"] == sums["fp32 += fp16 cast to fp32"] == "10.00213623"


@pytest.mark.parametrize("variant", VARIANTS, ids=[name for name, *_ in VARIANTS])
def test_every_sum_has_the_bits_of_exact_arithmetic(found, variant):
    name, into, of, is_cast = variant
    addend, total, exact = rounded(Fraction(0.01), of), Fraction(0), []
    for _ in range(1000):
        total = rounded(total + rounded(addend, into), into)
        exact.append(float(total))
    low = torch.tensor(0.01, dtype=dtype(of))
    assert running_sums(dtype(into), low.to(dtype(into)) if is_cast else low) == exact
    (row,) = picked(found["accumulation"], variant=name)
    last = max(at for at in range(1000) if at == 0 or exact[at] != exact[at - 1])
    assert (row["sum"], row["last_change"]) == (exact[-1], last + 1)


def test_rounding_of_random_addends_averages_out_where_the_sum_is_wide(found):
    """Of 1,000 independent roundings the mean is off by less than a tenth of one."""
    off = {row["variant"]: row["sum"] / row["exact"] - 1 for row in found["accumulation"]}
    for name, bits in {"fp32 += fp16": 11, "fp32 += bf16": 8}.items():
        assert abs(off[f"{name}, random addends"]) < 2**-bits / 10
        assert abs(off[f"{name}, random addends"]) < abs(off[name]) / 5
    # A sum in 16 bits rounds each time again, by more than the addend is.
    assert abs(off["bf16 += bf16, random addends"]) > 0.1
    exact = [row["exact"] for row in found["accumulation"] if "random" in row["variant"]]
    drawn = torch.rand(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert exact == pytest.approx([drawn.sum().item() / 50] * 5, rel=1e-12)
