"""The verdicts of the profile study, against numbers worked out by hand."""

import pandas as pd
import pytest
import synthetic_profile as made
from stepscope.report.data import bound
from stepscope.report.data import profile_parts as parts
from stepscope.report.data.profile import Profile
from stepscope.report.data.roofline import Roof, measured_roof
from stepscope.report.kit.order import with_order
from stepscope.report.studies.profile.findings import findings
from stepscope.tables.reader import Tables


def profile(tmp_path, cells, timings=(), rates=()):
    return Profile(Tables(made.write(tmp_path, cells, timings, rates), ["timing", "ceilings", "profile"]))


@pytest.mark.parametrize(
    ("step", "busy", "word", "idle"),
    [
        (20.0, 12.0, "launch-bound", 8.0),
        (10.0, 6.999, "launch-bound", 3.001),
        (10.0, 7.0, "mixed", 3.0),
        (10.0, 8.9, "mixed", 1.1),
        (10.0, 9.0, "GPU-bound", 1.0),
        (10.0, 11.0, "GPU-bound", -1.0),
    ],
)
def test_launch_bound_or_gpu_bound(step, busy, word, idle):
    found = bound.Occupation(step, busy)
    assert found.verdict == word
    assert found.idle == pytest.approx(idle)


def test_the_step_without_a_profiler_decides(tmp_path):
    row = made.cell()
    own = profile(tmp_path, [row], [made.timing(row, 20.0, step_noisy=True)])
    found = bound.occupation(own, own.profiled()[0])
    assert (found.step, found.busy, found.share, found.noisy) == (20.0, 12.0, 0.6, True)


def test_inference_is_compared_with_inference(tmp_path):
    row = made.cell(mode="inference", busy=3.0)
    own = profile(tmp_path, [row], [made.timing(row, 20.0)])
    assert bound.occupation(own, own.profiled()[0]).step == 5.0


@pytest.mark.parametrize("change", [{"batch": 8}, {"context": 256}, {"precision": "bf16"}, {"compile": "block"}])
def test_another_point_is_not_compared_with(tmp_path, change):
    row = made.cell()
    own = profile(tmp_path, [row], [made.timing(row, 20.0, **change)])
    assert bound.occupation(own, own.profiled()[0]) is None


def test_the_same_run_is_preferred(tmp_path):
    row = made.cell()
    runs = [made.timing(row, 30.0, repeat=2), made.timing(row, 20.0)]
    own = profile(tmp_path, [row], runs)
    assert bound.occupation(own, own.profiled()[0]).step == 20.0


def one(**more):
    frame = pd.DataFrame([made.cell(**more)])
    return with_order(frame.astype({"checkpoint": str})).to_dict("records")[0]


def test_operations_of_the_matrix_products():
    row = {**one(), "batch": 4.0, "context": 128.0}
    assert parts.product_flops(row, "forward") == made.FORWARD_FLOPS
    assert parts.product_flops(row, "backward") == 2 * made.FORWARD_FLOPS
    assert parts.product_flops(row, "step") == 3 * made.FORWARD_FLOPS
    assert parts.product_flops({**row, "mode": "inference"}, "step") == made.FORWARD_FLOPS
    assert parts.product_flops({**row, "mode": "forward-backward"}, "step") == 3 * made.FORWARD_FLOPS
    assert parts.product_flops(row, "loss") is None
    assert parts.product_flops({**row, "d_model": float("nan")}, "step") is None


def test_operations_a_byte():
    row = {**one(), "batch": 4.0, "context": 128.0}
    assert bound.intensity(row) == pytest.approx(made.FORWARD_FLOPS / (4 * made.ELEMENTS_MOVED))
    assert bound.intensity({**row, "precision": "bf16"}) == pytest.approx(
        made.FORWARD_FLOPS / (2 * made.ELEMENTS_MOVED)
    )
    # A fused attention does not move its scores: 2 layers x 2 x (4 x 2 x 128 x 128) elements less.
    fused = made.FORWARD_FLOPS / (4 * (made.ELEMENTS_MOVED - 524_288))
    assert bound.intensity({**row, "attention": "sdpa"}) == pytest.approx(fused)


def test_rate_of_the_products_and_the_ridge(tmp_path):
    own = profile(tmp_path, [made.cell()], rates=made.ceilings())
    row = own.profiled()[0]
    # 3 x 233,308,160 operations in 8 ms.
    assert bound.products(own, row, "step")["tflops"] == pytest.approx(0.08749056)
    assert measured_roof(own.ceilings, "gpu", "fp32").ridge == pytest.approx(17.5)
    assert bound.products(own, row, "optimizer") == {}


@pytest.mark.parametrize(
    ("operations_a_byte", "mean", "word"),
    [(20.1, 80.0, "compute-bound"), (17.4, 80.0, "memory-bound"), (100.0, 4.9, "latency-bound"), (None, 80.0, "")],
)
def test_memory_bound_or_compute_bound(operations_a_byte, mean, word):
    assert bound.bound_of_products(Roof(0.175, 10.0), operations_a_byte, mean) == word
    assert bound.bound_of_products(None, 20.0, 80.0) == ""


def test_the_other_categories_are_bound_by_memory_or_latency():
    assert (bound.bound_of_others(5.0), bound.bound_of_others(4.99)) == ("memory-bound", "latency-bound")


def test_ranges_say_over_how_many_cells_they_are(tmp_path):
    step, other, inference = made.cell(), made.cell(context=256), made.cell(context=512, mode="inference", busy=4.0)
    other["cell"] += "/long"
    own = profile(tmp_path, [step, other, inference], [made.timing(step, 20.0), made.timing(inference, 20.0)])
    told = {each.question: each.text for each in findings(own)}
    bound_or_not = told["does launching kernels or running them set the time"]
    assert "of 3 profiled cells: " in bound_or_not
    assert bound_or_not.endswith("; not known of 1, which were not timed without a profiler.")
    products = told["what share do matrix products take"]
    assert "of the step (2 of 3 cells); no forward pass beside a step in" in products and "512" in products
    assert "as long as without (2 of 3 cells)" in told["what does the profiler cost"]
