"""The data sheets' peaks against what the chips' SM counts, clocks and memory buses give."""

import math
from pathlib import Path

import pandas as pd
import pytest
from pytest import approx
from stepscope.results import data_sheets

# Driver's name, SMs, boost clock (GHz), clock of the tensor cores, FP32 lanes an SM, then FLOP a
# clock and SM of dense products in tf32, bf16 and fp16 (accumulated in fp32), memory bus (bits) and
# rate of a pin (Gbit/s). Chips of which these numbers are known; any other row is checked against
# itself alone.
CHIPS = pd.read_csv(Path(__file__).with_name("chips.csv"))
ROUNDING = 0.025  # data sheets round, and the H100 PCIe's bandwidth to one digit


@pytest.mark.parametrize("chip", [*CHIPS.itertuples()], ids=lambda chip: chip.name)
def test_rates_are_those_of_the_chip(chip):
    peak = data_sheets.peak_of(chip.name)
    assert peak.fp32 == approx(chip.sms * chip.lanes * 2 * chip.clock / 1000, rel=ROUNDING)
    for precision in ("tf32", "bf16", "fp16"):
        rate = chip.sms * getattr(chip, precision) * chip.tensor_clock * 1e9
        expected = approx(rate or math.nan, rel=ROUNDING, nan_ok=True)
        assert data_sheets.rate(chip.name, "matmul", precision) == expected, precision
    bandwidth = chip.bits * chip.pin / 8 * 1e9
    found = data_sheets.rate(chip.name, "copy", "fp32")
    assert found == approx(bandwidth, rel=ROUNDING)
    assert "NVIDIA" in peak.source and "20" in peak.source


@pytest.mark.parametrize("peak", [*data_sheets.PEAKS.itertuples()], ids=lambda peak: peak.Index)
def test_a_row_agrees_with_itself_and_with_physics(peak):
    """Of a chip with tensor cores a product in half as many bits takes half the time: tf32, 16 bits
    and fp8 are as 1 : 2 : 4 (tf32 reads 19 bits of 32); those with sparsity would be twice that."""
    assert not peak.fp32 > peak.tf32  # NaN: none
    assert peak.fp32 < peak.fp16
    for fewer, more in ((peak.tf32, peak.bf16), (peak.bf16, peak.fp8)):
        if not math.isnan(fewer) and not math.isnan(more):
            assert more / fewer == approx(2, rel=ROUNDING)
    if not math.isnan(peak.bf16):
        assert peak.bf16 == peak.fp16
    # Bytes a cycle of HBM or GDDR, and how many operations it takes to be worth a byte: no GPU so
    # far lies outside, and a rate in the wrong unit does by far.
    assert 250 < peak.bandwidth < 10_000
    assert 20 < peak.fp16 * 1e12 / (peak.bandwidth * 1e9) < 450
    assert peak.source and any(f"20{year}" in peak.source for year in range(10, 40))


def test_a_name_is_that_of_one_row():
    names = {name.casefold() for name in data_sheets.PEAKS.index}
    assert len(names) == len(data_sheets.PEAKS)


def test_what_is_cut_by_rule_is_listed_as_cut():
    """The H20 has an H100's chip with its products limited: NVIDIA gives 148 and 44 TFLOP/s."""
    h20 = data_sheets.peak_of("NVIDIA H20")
    assert (h20.bf16, h20.fp32, h20.bandwidth) == (148, 44, 4000)


@pytest.mark.parametrize(
    "name", ["NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB", " nvidia  a100-sxm4-40gb "]
)
def test_brand_names_case_and_gaps_do_not_matter(name):
    assert data_sheets.rate(name, "matmul", "bf16") == 312e12


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 3090 Ti",
        "NVIDIA A100-SXM-64GB",
        "NVIDIA H100",
        "AMD EPYC 7763",
        "",
        None,
        float("nan"),
    ],
)
def test_what_is_not_listed_has_no_peak(name):
    assert data_sheets.peak_of(name) is None
    assert math.isnan(data_sheets.rate(name, "matmul", "bf16"))
    assert math.isnan(data_sheets.rate(name, "copy", "fp32"))


def test_an_unknown_precision_has_no_rate():
    assert math.isnan(data_sheets.rate("NVIDIA H200", "matmul", "bandwidth"))
    assert math.isnan(data_sheets.rate("NVIDIA A100-SXM4-80GB", "matmul", "fp8"))
