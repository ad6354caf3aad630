"""The large product and the large copy."""

import itertools
from types import SimpleNamespace

import pytest
import torch
from common import TINY, picked
from stepscope.measure import ceilings
from stepscope.measure.telemetry import Telemetry

pytestmark = pytest.mark.usefixtures("one_thread")

SPEC = TINY | {"study": "ceilings", "operation": "matmul", "order": 32, "warmup": 2, "steps": 3}
COPY = SPEC | {"operation": "copy", "mebibytes": 3}


@pytest.fixture(autouse=True)
def made_up_time(monkeypatch):
    """A clock that goes on by a second whenever it is read, and by what is slept."""
    ticks, slept = itertools.count(), []
    fake = SimpleNamespace(perf_counter=lambda: float(next(ticks)), sleep=slept.append)
    monkeypatch.setattr(ceilings, "time", fake)
    return slept


@pytest.mark.parametrize("spec", [SPEC, COPY])
def test_bursts_come_after_a_rest_and_the_sustained_series_counts_from_its_middle(
    spec, made_up_time
):
    # Of the sustained series a turn reads the clock once and its three operations four times: 0 to
    # 5 s, 5 to 10 s, ….
    found = ceilings.measure(spec | {"max_seconds": 20.0}, Telemetry(None), 1)
    assert set(picked(found.statuses, "variant", "status")) == {
        ("burst", "ok"),
        ("sustained", "ok"),
    }
    kinds = picked(found.rows, "kind", "warmup")
    assert kinds[:2] == [("burst", True)] * 2
    assert kinds[2:17] == [("burst", False)] * (ceilings.BURSTS * 3)
    assert kinds[17:] == [("sustained", True)] * 2 + [("sustained", False)] * 3
    assert {
        (row["variant"] == row["kind"], row["phase"], row["seconds"]) for row in found.rows
    } == {(True, spec["operation"], 1.0)}
    assert made_up_time == [ceilings.IDLE] * ceilings.BURSTS


@pytest.mark.parametrize("precision, tolerance", [("fp32", 1e-4), ("bf16", 0.5)])
def test_the_product_is_of_two_random_matrices(precision, tolerance):
    product = ceilings.operation(SPEC | {"precision": precision})()
    torch.manual_seed(0)
    left, right = torch.randn(32, 32).double(), torch.randn(32, 32).double()
    assert product.dtype == {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    torch.testing.assert_close(product.double(), left @ right.t(), rtol=0, atol=tolerance)
    assert product.abs().mean() > 1


def test_the_copy_has_its_size_and_copies():
    copied = ceilings.operation(COPY)()
    assert copied.numel() * copied.element_size() == 3 * 1024 * 1024
    torch.manual_seed(0)
    assert torch.equal(copied, torch.randn(copied.shape))


def test_rates():
    assert ceilings.said(SPEC | {"order": 1000}, 5e-4) == "4 TFLOP/s"  # 2 n³ operations
    assert ceilings.said(COPY | {"mebibytes": 1}, 5e-4) == "4.194 GB/s read and written"


@pytest.mark.parametrize(
    "error, reason",
    [(torch.OutOfMemoryError("full\nof it"), "full"), (MemoryError(), "MemoryError")],
)
def test_operands_that_do_not_fit_are_oom(error, reason, monkeypatch):
    def too_large(*_, **__):
        raise error

    monkeypatch.setattr(torch, "randn", too_large)
    found = ceilings.measure(SPEC, Telemetry(None), 1)
    assert found.rows == []
    assert set(picked(found.statuses, "status", "reason")) == {("oom", reason)}
