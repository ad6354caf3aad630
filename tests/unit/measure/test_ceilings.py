"""The large product and the large copy."""

import pytest
import torch
from stepscope.measure import ceilings
from stepscope.measure.telemetry import Telemetry

pytestmark = pytest.mark.usefixtures("one_thread")

SPEC = {
    **{"study": "ceilings", "operation": "matmul", "order": 32, "precision": "fp32", "warmup": 2, "steps": 3},
    **{"max_steps": 9, "max_seconds": 0, "seed": 0, "threads": 1, "device": "cpu"},
}
COPY = {key: value for key, value in SPEC.items() if key != "order"} | {"operation": "copy", "mebibytes": 3}


@pytest.mark.parametrize("spec", [SPEC, COPY])
def test_warm_ups_are_marked_and_do_not_count(spec):
    outcome = ceilings.measure(spec, Telemetry(None))
    found, rows = ceilings.summary(outcome), outcome.rows
    assert [(row["step"], row["warmup"]) for row in rows] == [(0, True), (1, True), (2, False), (3, False), (4, False)]
    assert {row["phase"] for row in rows} == {spec["operation"]}
    assert (found["status"], found["reason"], found["first_step"]) == ("ok", "", rows[0]["seconds"])
    (one,) = found["processes"]
    assert (one["count"], one["median"]) == (3, sorted(row["seconds"] for row in rows[2:])[1])


@pytest.mark.parametrize("precision, tolerance", [("fp32", 1e-4), ("bf16", 0.5)])
def test_the_product_is_of_two_random_matrices(precision, tolerance):
    product = ceilings._operation(SPEC | {"precision": precision})()
    torch.manual_seed(0)
    left, right = torch.randn(32, 32).double(), torch.randn(32, 32).double()
    assert product.dtype == {"fp32": torch.float32, "bf16": torch.bfloat16}[precision]
    torch.testing.assert_close(product.double(), left @ right.t(), rtol=0, atol=tolerance)
    assert product.abs().mean() > 1


def test_the_copy_has_its_size_and_copies():
    copied = ceilings._operation(COPY)()
    assert copied.numel() * copied.element_size() == 3 * 1024 * 1024
    torch.manual_seed(0)
    assert torch.equal(copied, torch.randn(copied.shape))


@pytest.mark.parametrize(
    "error, reason", [(torch.OutOfMemoryError("full\nof it"), "full"), (MemoryError(), "MemoryError")]
)
def test_operands_that_do_not_fit_are_oom(error, reason, monkeypatch):
    def too_large(*_, **__):
        raise error

    monkeypatch.setattr(torch, "randn", too_large)
    outcome = ceilings.measure(SPEC, Telemetry(None))
    assert outcome.rows == []
    assert ceilings.summary(outcome) == {"status": "oom", "reason": reason}


def test_one_process_without_memory_makes_the_cell_oom():
    found = ceilings.merged([ceilings.Outcome(rows=[{"process": 1}]), ceilings.Outcome("oom", "full")])
    assert (found.status, found.reason, found.rows) == ("oom", "full", [{"process": 1}])


def test_other_errors_pass_through(monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("illegal memory access")

    monkeypatch.setattr(torch, "randn", broken)
    with pytest.raises(RuntimeError, match="illegal"):
        ceilings.measure(SPEC, Telemetry(None))


def test_rates_in_words():
    # 2 x 1000^3 operations in 1 ms; 2 x 1000 MiB = 2.097152 GB in 10 ms
    assert ceilings.rate_in_words({"operation": "matmul", "order": 1000}, 0.001) == "2.000 TFLOP/s"
    assert ceilings.rate_in_words({"operation": "copy", "mebibytes": 1000}, 0.01) == "209.7 GB/s read and written"
