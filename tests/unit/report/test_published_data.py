"""Published figures beside ours: which meet, what the hardware explains, what is not comparable or cannot be true."""

import published_maker as made
import pytest
from stepscope.report.data.published import (
    BETTER,
    EXPLAINED,
    FITS_HERE,
    FITS_THERE,
    WORSE,
    Published,
    rate_ratios,
    reasons,
    verdict_of,
)
from stepscope.report.kit.compare import NOT_COMPARABLE, SAME

HIGH = 66.9 / 19.5 * 1.25  # 4.2885: the last ratio that the H100's rates explain beside the A100's, in fp32
LAUNCHES = "here the host's launches fill the time, and the other host is not known"
LOW = 3350 / 2039 / 1.25  # 1.3144: the first


def beside(folder, *figures, **tables):
    return Published(made.write(folder, figures, **tables)).beside("gpu")


def one(folder, figure, **tables):
    (found,) = beside(folder, figure, **tables)
    return found


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(5.0, EXPLAINED), (5.01, BETTER), (1.6, EXPLAINED), (1.59, WORSE), (3.0, EXPLAINED)]
)
def test_a_ratio_is_explained_within_the_rates_ratios_and_a_quarter_more(ratio, verdict):
    assert verdict_of(ratio, 2.0, 4.0, 0.25) == verdict


@pytest.mark.parametrize(
    ("ms", "verdict"),
    [(HIGH - 0.001, EXPLAINED), (HIGH + 0.001, BETTER), (LOW + 0.001, EXPLAINED), (LOW - 0.001, WORSE)],
)
def test_a_time_is_judged_by_both_data_sheets(ms, verdict, tmp_path):
    found = one(tmp_path, made.figure(ms))
    assert (found.verdict, found.ratio, found.reason) == (verdict, pytest.approx(ms), "")
    assert (found.arithmetic, found.memory) == (pytest.approx(66.9 / 19.5), pytest.approx(3350 / 2039))
    assert found.partner.cells == ("gpu/timing/nano/ctx6/fp32",)


def test_units_become_ours(tmp_path):
    found = beside(tmp_path, made.figure(0.003, unit="s"), made.figure(3000, unit="us"), made.figure(3, unit="ms"))
    assert [each.published for each in found] == pytest.approx([3.0] * 3)


@pytest.mark.parametrize(
    "other",
    [
        {"context": 12}, {"batch": 4}, {"d_model": 16}, {"d_ff": 32}, {"num_layers": 3}, {"num_heads": 4},
        {"precision": "bf16"}, {"phase": "inference"}, {"vocab_size": 12}, {"statistic": "std"}, {"name": "sgemm"},
        {"quantity": "instances"}, {"study": "profile"},
    ],
)  # fmt: skip
def test_what_is_of_another_cell_or_statistic_has_no_partner(other, tmp_path):
    assert beside(tmp_path, made.figure(3.0, **other)) == []


@pytest.mark.parametrize("same", [{"vocab_size": 11}, {"vocab_size": None}, {"size": "called otherwise"}])
def test_the_shape_counts_and_not_the_name(same, tmp_path):
    assert one(tmp_path, made.figure(3.0, **same)).verdict == EXPLAINED


def test_a_median_stands_beside_our_median(tmp_path):
    row = made.timing(forward_mean_ms=2.0, forward_median_ms=1.0)
    found = beside(tmp_path, made.figure(3.0), made.figure(3.0, statistic="median"), timing=[row])
    assert [each.ratio for each in found] == [1.5, 3.0]


@pytest.mark.parametrize("over", [{"repeat": 2}, {"attention": "sdpa"}, {"checkpoint": 2}])
def test_ours_is_the_first_run_with_neutral_options(over, tmp_path):
    assert beside(tmp_path, made.figure(3.0), timing=[made.timing(**over)]) == []


@pytest.mark.parametrize(
    ("over", "ours", "reason"),
    [
        ({"gpu": ""}, {}, "GPU not named"),
        ({"gpu": "Unheard"}, {}, "no data sheet gives the rates of both machines"),
        ({"doubt": "the host was slow"}, {}, "the host was slow"),
        ({"precision": "tf32"}, {}, "it multiplied in TF32, ours in fp32 proper"),
        ({}, {"forward_limited_by": "launches"}, LAUNCHES),
        ({}, {"forward_unsteady": True}, "our processes differ by more than chance"),
        ({"impossible": "True", "doubt": "why"}, {}, "cannot be true"),
    ],
)  # fmt: skip
def test_what_differs_is_not_comparable(over, ours, reason, tmp_path):
    found = one(tmp_path, made.figure(3.0, **over), timing=[made.timing(**ours)])
    assert (found.verdict, found.reason) == (NOT_COMPARABLE, reason)
    assert list(reasons([found])) == [reason]


@pytest.mark.parametrize(
    ("published", "ours", "verdict"),
    [
        (None, {}, FITS_HERE),
        (None, {"forward_status": "oom", "forward_mean_ms": None}, SAME),
        (3.0, {"forward_status": "oom", "forward_mean_ms": None}, FITS_THERE),
    ],
)
def test_who_ran_out_of_memory(published, ours, verdict, tmp_path):
    found = one(tmp_path, made.figure(published), timing=[made.timing(**ours)])
    assert (found.verdict, found.ratio) == (verdict, None)


def test_a_phase_that_failed_here_has_no_partner(tmp_path):
    row = made.timing(forward_status="unsupported", forward_mean_ms=None)
    assert beside(tmp_path, made.figure(3.0), timing=[row]) == []


@pytest.mark.parametrize(("gib", "verdict"), [(10.99, SAME), (11.01, BETTER), (9.1, SAME), (9.0, WORSE)])
def test_memory_depends_on_no_gpus_rate(gib, verdict, tmp_path):
    assert one(tmp_path, made.peak(gib, gpu="")).verdict == verdict  # ours: 10 GiB; 10 / 1.1 = 9.09


@pytest.mark.parametrize(("value", "verdict"), [(10.0009, SAME), (10.0012, BETTER), (9.9991, SAME), (9.9989, WORSE)])
def test_a_sum_agrees_as_far_as_it_was_printed(value, verdict, tmp_path):
    sums = [{"cell": "gpu/precision/accumulation", "hardware": "gpu", "variant": "fp32 += fp32", "sum": 10.0}]
    row = made.figure(value, study="precision", quantity="sum", statistic="value", unit="", name="fp32 += fp32")
    assert one(tmp_path, row, precision_accumulation=sums).verdict == verdict


@pytest.mark.parametrize(
    ("warmup", "ms", "reason"),
    [(0, 6.0, "that mean holds the first step, which no GPU's rate foretells"), (2, 1.0, ""), (10, 1.0, "")],
)
def test_a_mean_after_warm_up_stands_beside_the_timing_studys(warmup, ms, reason, tmp_path):
    """The warm-up study has one process of each; the one whose first step was profiled is none of them."""
    ours = [made.timing(warmup=steps, forward_mean_ms=mean) for steps, mean in ((0, 6.0), (10, 7.0))]
    ours += [made.timing(warmup=0, forward_mean_ms=8.0, first="profiled")]
    found = one(tmp_path, made.figure(3.0, study="warmup", warmup=warmup), warmup=ours)
    assert (found.partner.value, found.reason) == (ms, reason)
    assert found.verdict == (NOT_COMPARABLE if reason else EXPLAINED)


# In the papers' shapes our fastest reach 400 TFLOP/s; on the same GPU 320 to 500 are explained.
@pytest.mark.parametrize(
    ("tflops", "verdict"), [(499.0, EXPLAINED), (501.0, WORSE), (321.0, EXPLAINED), (319.0, BETTER)]
)
def test_a_rate_of_attention_stands_beside_our_fastest(tflops, verdict, tmp_path):
    found = one(tmp_path, made.rate(tflops), attention=made.attention(), timing=[made.timing()])
    assert (found.verdict, found.ratio) == (verdict, pytest.approx(400 / tflops))
    assert found.partner.name == "triton, bf16"


def test_a_rate_of_attention_is_judged_by_the_peak_rates_alone(tmp_path):
    """An A100 has 312 TFLOP/s in fp16, an H100 989.4: 3.171 times; their bandwidths, 1.643 times, bear on no rate."""
    assert one(tmp_path, made.rate(400 / 2.55, gpu=made.A100), attention=made.attention()).verdict == EXPLAINED
    assert one(tmp_path, made.rate(400 / 2.52, gpu=made.A100), attention=made.attention()).verdict == WORSE


@pytest.mark.parametrize("other", [{"heads": 64}, {"batch": 8}, {"kv_heads": 8}])
def test_other_heads_or_sequences_stand_beside_ours_and_are_not_comparable(other, tmp_path):
    found = one(tmp_path, made.rate(400.0, **other), attention=made.attention())
    assert (found.verdict, found.reason) == (NOT_COMPARABLE, "the numbers of heads or of sequences differ")


def test_heads_that_share_keys_are_compared_with_as_many_of_ours(tmp_path):
    """Ours with 8 heads of K and V reach 300 TFLOP/s here; with a window more, which is another thing."""
    shared = [row | {"key_value_heads": 8, "mask": "causal", "tflops": 300.0} for row in made.attention()]
    window = [row | {"window": 64, "tflops": 900.0} for row in shared]
    found = one(tmp_path, made.rate(300.0, kv_heads=8), attention=[*made.attention(), *shared, *window])
    assert (found.verdict, found.ratio) == (EXPLAINED, 1.0)
    assert found.partner.value == 300.0


@pytest.mark.parametrize("other", [{"d_head": 128}, {"length": 2048}, {"causal": "no"}, {"precision": "fp32"}])
def test_attention_at_another_point_has_no_partner(other, tmp_path):
    assert beside(tmp_path, made.rate(60.0, **other), attention=made.attention()) == []


def test_an_implementation_that_is_ours_too_is_compared_with_itself(tmp_path):
    own = {"implementation": "naive", "causal": "no", "heads": None, "batch": 8, "d_head": 16, "precision": "fp32"}
    time = made.rate(8.0, **own, quantity="time", unit="ms", gpu=made.A100)  # ours: 4 ms in fp32
    held = made.rate(96.0, **own, quantity="memory before backward", unit="MiB") | {"direction": "backward"}
    found = beside(tmp_path, time, held, made.rate(8.0, **(own | {"batch": 4})), attention=made.attention())
    assert [(each.ratio, each.verdict) for each in found] == [(2.0, EXPLAINED), (1.0, SAME)]


def test_rates_of_a_gpu_that_no_data_sheet_lists_are_not_known():
    assert rate_ratios("NVIDIA H100 80GB HBM3", "Unheard", "fp32") == (None, None)
    assert rate_ratios("NVIDIA H200", "T4", "bf16") == (None, pytest.approx(4800 / 320))  # the T4 has no bf16


# A forward pass of the shape has 56,160 operations (roofline_maker.FORWARD): 2.88e-6 ms at 19.5 TFLOP/s, backward
# twice that.
@pytest.mark.parametrize(
    ("ms", "phase", "is_possible"),
    [(2.89e-6, "forward", True), (2.87e-6, "forward", False), (5.77e-6, "backward", True), (5.75e-6, "backward", False),
     (8.65e-6, "step", True), (8.63e-6, "step", False), (0.0, "forward", False), (0.0, "optimizer", True)],
)  # fmt: skip
def test_a_time_below_the_peak_rates_cannot_be_true(ms, phase, is_possible, tmp_path):
    untrue = Published(made.write(tmp_path, [made.figure(ms, phase=phase, vocab_size=11)])).untrue
    assert (untrue == []) == is_possible
    assert all("the data sheet of the A100-SXM4-80GB gives 19.5" in why for _, why in untrue)


# 4 x 8 sequences x 1024 x 1024 x 64 = 2.1475e9 operations: 0.26512 ms at the T4's 8.1 TFLOP/s, backward 2.5 times that.
@pytest.mark.parametrize(
    ("ms", "direction", "is_possible"),
    [(0.266, "forward", True), (0.265, "forward", False), (0.663, "backward", True), (0.662, "backward", False)],
)
def test_neither_can_attention_be_faster_than_the_peak(ms, direction, is_possible, tmp_path):
    of = {"implementation": "naive", "causal": "no", "heads": None, "batch": 8, "precision": "fp32", "gpu": "T4"}
    row = made.rate(ms, quantity="time", unit="ms", direction=direction, **of)
    assert (Published(made.write(tmp_path, [row])).untrue == []) == is_possible
