"""The data sheets' peaks against what the chips' SM counts, clocks and memory buses give."""

import math

import pytest
from stepscope.results import data_sheets

# Driver's name: SMs, boost clock (GHz), clock of the tensor cores, FP32 lanes an SM, then FLOP a
# clock and SM of dense products in tf32, bf16 and fp16 (accumulated in fp32), memory bus (bits) and
# rate of a pin (Gbit/s). Chips of which these numbers are known; any other row is checked against
# itself alone.
CHIPS = {
    "Tesla P100-PCIE-16GB": (56, 1.303, 1.303, 64, 0, 0, 256, 4096, 1.43),
    "Tesla P100-PCIE-12GB": (56, 1.303, 1.303, 64, 0, 0, 256, 3072, 1.43),
    "Tesla P100-SXM2-16GB": (56, 1.480, 1.480, 64, 0, 0, 256, 4096, 1.43),
    "Tesla V100-PCIE-32GB": (80, 1.380, 1.380, 64, 0, 0, 1024, 4096, 1.755),
    "Tesla V100-SXM2-16GB": (80, 1.530, 1.530, 64, 0, 0, 1024, 4096, 1.755),
    "Tesla V100S-PCIE-32GB": (80, 1.597, 1.597, 64, 0, 0, 1024, 4096, 2.214),
    "Tesla T4": (40, 1.590, 1.590, 64, 0, 0, 1024, 256, 10),
    "NVIDIA A100-SXM4-40GB": (108, 1.410, 1.410, 64, 1024, 2048, 2048, 5120, 2.43),
    "NVIDIA A100-PCIE-40GB": (108, 1.410, 1.410, 64, 1024, 2048, 2048, 5120, 2.43),
    "NVIDIA A100-SXM4-80GB": (108, 1.410, 1.410, 64, 1024, 2048, 2048, 5120, 3.186),
    "NVIDIA A100 80GB PCIe": (108, 1.410, 1.410, 64, 1024, 2048, 2048, 5120, 3.024),
    "NVIDIA H100 80GB HBM3": (132, 1.980, 1.830, 128, 2048, 4096, 4096, 5120, 5.234),
    "NVIDIA H100 PCIe": (114, 1.755, 1.620, 128, 2048, 4096, 4096, 5120, 3.186),
    "NVIDIA H100 NVL": (132, 1.785, 1.545, 128, 2048, 4096, 4096, 6144, 5.1),
    "NVIDIA H200": (132, 1.980, 1.830, 128, 2048, 4096, 4096, 6144, 6.25),
    "NVIDIA H200 NVL": (132, 1.785, 1.545, 128, 2048, 4096, 4096, 6144, 6.25),
    "NVIDIA L4": (58, 2.040, 2.040, 128, 512, 1024, 1024, 192, 12.5),
    "NVIDIA L40S": (142, 2.520, 2.520, 128, 512, 1024, 1024, 384, 18),
    "NVIDIA GeForce RTX 3090": (82, 1.695, 1.695, 128, 256, 512, 512, 384, 19.5),
    "NVIDIA GeForce RTX 4090": (128, 2.520, 2.520, 128, 256, 512, 512, 384, 21),
    "NVIDIA GeForce RTX 5090": (170, 2.407, 2.407, 128, 256, 512, 512, 512, 28),
    "NVIDIA B200": (148, 1.965, 1.860, 128, 4096, 8192, 8192, 8192, 7.5),
}
ROUNDING = 0.025  # data sheets round, and the H100 PCIe's bandwidth to one digit


@pytest.mark.parametrize("name", CHIPS)
def test_rates_are_those_of_the_chip(name):
    sms, clock, tensor_clock, lanes, tf32, bf16, fp16, bits, pin = CHIPS[name]
    peak = data_sheets.peak_of(name)
    assert peak.fp32 == pytest.approx(sms * lanes * 2 * clock / 1000, rel=ROUNDING)
    for precision, operations in (("tf32", tf32), ("bf16", bf16), ("fp16", fp16)):
        rate = sms * operations * tensor_clock / 1000
        expected = pytest.approx(rate * 1e12, rel=ROUNDING) if operations else None
        assert data_sheets.rate(name, "matmul", precision) == expected, precision
    assert data_sheets.rate(name, "copy", "fp32") == pytest.approx(
        bits * pin / 8 * 1e9, rel=ROUNDING
    )
    assert "NVIDIA" in peak.source and "20" in peak.source


@pytest.mark.parametrize("peak", data_sheets.PEAKS.values(), ids=data_sheets.PEAKS)
def test_a_row_agrees_with_itself_and_with_physics(peak):
    """Of a chip with tensor cores a product in half as many bits takes half the time: tf32, 16 bits
    and fp8 are as 1 : 2 : 4 (tf32 reads 19 bits of 32); those with sparsity would be twice that."""
    assert peak.fp32 <= (peak.tf32 or math.inf)
    assert peak.fp32 < peak.fp16
    for fewer, more in ((peak.tf32, peak.bf16), (peak.bf16, peak.fp8)):
        if fewer and more:
            assert more / fewer == pytest.approx(2, rel=ROUNDING)
    if peak.bf16:
        assert peak.bf16 == peak.fp16
    # Bytes a cycle of HBM or GDDR, and how many operations it takes to be worth a byte: no GPU so
    # far lies outside, and a rate in the wrong unit does by far.
    assert 250 < peak.bandwidth < 10_000
    assert 20 < peak.fp16 * 1e12 / (peak.bandwidth * 1e9) < 450
    assert peak.source and any(f"20{year}" in peak.source for year in range(10, 40))


def test_a_name_is_that_of_one_row():
    names = {name.casefold() for name in data_sheets.PEAKS}
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
    assert data_sheets.rate(name, "matmul", "bf16") is None
    assert data_sheets.rate(name, "copy", "fp32") is None


def test_an_unknown_precision_has_no_rate():
    assert data_sheets.rate("NVIDIA H200", "matmul", "bandwidth") is None
    assert data_sheets.rate("NVIDIA A100-SXM4-80GB", "matmul", "fp8") is None
