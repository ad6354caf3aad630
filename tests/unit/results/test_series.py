"""series.csv: medians, intervals, and what follows from them, against closed forms."""

import math

import numpy as np
import pytest
from pytest import approx
from scipy import stats
from stepscope.results import cells as reading
from stepscope.results import data_sheets, series

from tests.unit.results.cells import SHAPE, attention, sample, value

TIMING = "lab/timing/nano/ctx32/fp32"
GPU = {"device": "cuda"}


def series_of(results, missing=()):
    found, samples, refused = reading.read(results.plan(missing), results.folder)
    assert not refused
    return series.of(found, samples)


def row(frame, quantity, **where):
    for name, wanted in {"quantity": quantity, **where}.items():
        frame = frame[frame[name] == wanted]
    (one,) = frame.to_dict("records")
    return one


def median(frame, quantity, **where):
    return row(frame, quantity, **where)["median"]


@pytest.fixture
def timing(results):
    """The series of a timing cell of these samples, and of what is there."""

    def made(*rows, device="cpu", **summary):
        results.add(TIMING, SHAPE | {"precision": "fp32", "device": device}, rows, summary)
        return series_of(results)

    return made


def burst(seconds, process=1, operation="matmul", kind="burst"):
    """A sample of the ceilings."""
    return sample(kind, process, seconds, kind=kind, mode=None, phase=operation)


PRODUCT = {"operation": "matmul", "order": 100}


def test_a_time_is_the_geometric_mean_of_the_processes_medians_with_students_interval(timing):
    medians = [0.10, 0.11, 0.13]
    rows = [
        sample(process=p, seconds=s * f, sm_clock_mhz=1000 * s)
        for p, s in enumerate(medians, 1)
        for f in (0.9, 1.0, 1.3)
    ]
    found = timing(sample(seconds=5.0, warmup=True), *rows)
    assert median(found, "sm_clock", phase="step") == approx(1000 * stats.gmean(medians))
    got = row(found, "time", phase="step")
    expected = stats.ttest_1samp(np.log(medians), 0).confidence_interval(0.95)
    assert got["median"] == approx(stats.gmean(medians))
    assert (got["low"], got["high"]) == approx((math.exp(expected.low), math.exp(expected.high)))
    assert got["mean"] == approx(np.mean(medians) * 3.2 / 3)
    within = [np.var(np.array([0.9, 1.0, 1.3]) * each, ddof=1) for each in medians]
    assert got["std"] == approx(math.sqrt(np.mean(within)))
    assert (got["processes"], got["samples"], got["limits"], got["status"]) == (3, 9, "cpu", "ok")


def test_phases_are_of_phased_steps_and_the_whole_of_free_ones(timing):
    phased = [
        sample(kind="phased", phase=name, seconds=1.0)
        for name in ("forward", "backward", "optimizer")
    ]
    inference = sample(mode="inference", phase="inference", seconds=0.5)
    found = timing(*phased, sample(seconds=2.5), inference)
    times = found.query("quantity == 'time'").set_index("phase")["median"].to_dict()
    whole = {"step": 2.5, "inference": 0.5}
    assert times == {"forward": 1.0, "backward": 1.0, "optimizer": 1.0} | whole


def test_rates_follow_from_the_time_with_their_ends_the_other_way_round(timing):
    got = timing(sample(process=1, seconds=0.1), sample(process=2, seconds=0.2))
    time, tokens, flops = (row(got, name) for name in ("time", "tokens_per_second", "flops"))
    assert tokens["median"] * time["median"] == approx(4 * 32)
    assert tokens["low"] * time["high"] == approx(4 * 32)
    # Of a block QKV, output and SwiGLU's three products, and attention in full; the head; times 2,
    # and 3 with backward.
    block = 128 * 64 * (3 * 64 + 64) + 3 * 128 * 64 * 128 + 2 * 4 * 32 * 32 * 64
    assert flops["median"] * time["median"] == approx(3 * 2 * (2 * block + 128 * 64 * 100))


def test_the_share_of_the_ceiling_is_of_the_least_time_of_a_burst(results, timing):
    products = [burst(2e-3), burst(1e-3, 2)]
    products += [burst(4e-3, process, kind="sustained") for process in (1, 2)]
    results.add("lab/ceilings/matmul/fp32", PRODUCT | {"precision": "fp32"}, products)
    got = timing(sample(seconds=0.1))
    assert median(got, "rate", variant="burst") == approx(2 * 100**3 / 1e-3)
    assert median(got, "rate", variant="sustained") == approx(2 * 100**3 / 4e-3)
    assert median(got, "share_of_ceiling") == approx(median(got, "flops") / 2e9)
    assert not row(got, "share_of_ceiling")["across_cards"]  # a processor is no card


def on_card(uuid, gpu="NVIDIA H100 80GB HBM3"):
    """Provenance of a cell that ran on a GPU."""
    hardware = {"device": "cuda", "gpu": gpu, "gpu_uuid": uuid}
    times = {"started": "2026-01-01T00:00:00+00:00", "duration_s": 1.0}
    about = {"command": "python there.py", "versions": {}, "settings": {}}
    return about | times | {"hardware": hardware}


@pytest.mark.parametrize("precision, peak", [("bf16", 989.4e12), ("tf32", 494.7e12)])
def test_mfu_is_the_share_of_the_data_sheets_peak(results, precision, peak):
    spec = SHAPE | GPU | {"precision": precision}
    results.add(TIMING, spec, [sample(seconds=0.1)], provenance=on_card("a"))
    got = series_of(results)
    assert median(got, "mfu") == approx(median(got, "flops") / peak)


def test_mfu_of_fp8_is_of_the_peak_in_bf16_and_of_an_unknown_gpu_there_is_none(timing):
    assert data_sheets.peak_for_mfu("NVIDIA H100 80GB HBM3", "fp8") == 989.4e12
    assert math.isnan(data_sheets.peak_for_mfu("a GPU of tomorrow", "bf16"))
    assert "mfu" not in set(timing(sample())["quantity"])


@pytest.mark.parametrize("dtype, is_known", [("float32", True), ("bfloat16", False)])
def test_what_is_built_in_another_type_is_no_share_of_fp32s_rates(results, dtype, is_known):
    """500 TFLOP/s in bfloat16, of which fp32's data sheet has 67."""
    about = {"class": "Net", "parameters": 1, "dtype": f"torch.{dtype}"}
    about |= {"flops": {"counter": 1e12 if dtype == "bfloat16" else 1e11}}
    spec = {"model": "mine.py:build", "context": 6, "batch": 3, "precision": "fp32"} | GPU
    steps = [sample(seconds=2e-3)]
    cell = "lab/timing/mine/ctx6/fp32"
    results.add(cell, spec, steps, {"model": about}, provenance=on_card("a"))
    product = PRODUCT | {"precision": "fp32"} | GPU
    results.add("lab/ceilings/matmul/fp32", product, [burst(1e-3)], provenance=on_card("a"))
    got = series_of(results)
    assert len(got.query("quantity == 'flops'")) == 1
    shares = set(got["quantity"]) & {"mfu", "share_of_ceiling"}
    assert len(shares) == (2 if is_known else 0)


@pytest.mark.parametrize("card, is_marked", [("a", False), ("b", True)])
def test_a_share_of_what_another_card_reached_is_marked(results, card, is_marked):
    spec = SHAPE | GPU | {"precision": "bf16"}
    results.add(TIMING, spec, [sample()], provenance=on_card("a"))
    product = PRODUCT | {"precision": "bf16"} | GPU
    results.add("lab/ceilings/matmul/bf16", product, [burst(1e-3)], provenance=on_card(card))
    assert row(series_of(results), "share_of_ceiling")["across_cards"] == is_marked


def test_a_copy_reads_and_writes(results):
    copy = {"operation": "copy", "mebibytes": 1, "precision": "fp32"}
    results.add("lab/ceilings/copy/fp32", copy, [burst(0.5, operation="copy")])
    got = row(series_of(results), "rate")
    assert (got["median"], got["unit"], got["size"]) == (2 * 2**20 / 0.5, "B/s", "copy")


def test_values_of_a_record_are_series_and_energy_is_a_tokens_too(timing):
    values = [value("energy", "J", 2.0, process) for process in (1, 2, 3)]
    values += [value("peak_reserved", "B", 0.0), value("kernels", "1", 611, None)]
    got = timing(sample(), values=values)
    assert median(got, "energy_token") == approx(2 / 128)
    assert (row(got, "energy")["processes"], row(got, "energy")["unit"]) == (3, "J")
    assert median(got, "peak_reserved") == 0  # of which there is no logarithm
    assert median(got, "kernels") == 611  # exactly
    assert row(got, "kernels")["phase"] == "step"


def test_energy_of_several_devices_is_of_all_their_tokens(results):
    spec = SHAPE | {"precision": "fp32", "device": "cuda", "devices": 4}
    summary = {"values": [value("energy", "J", 2.0)]}
    results.add("lab/parallel/nano/ctx32/fp32/devices=4", spec, [sample()], summary)
    assert median(series_of(results), "energy_token") == approx(2 / (4 * 128))


@pytest.mark.parametrize("reserved, known", [(5.0, []), (9.0, [9.0])])
def test_what_is_less_than_allocated_was_not_reserved_by_the_rung_alone(timing, reserved, known):
    peaks = [value("peak_reserved", "B", reserved), value("peak_allocated", "B", 7.0)]
    got = timing(sample(), values=peaks).set_index("quantity")["median"]
    assert got["peak_allocated"] == 7
    assert got[got.index == "peak_reserved"].to_list() == known


def test_what_ran_out_of_memory_has_a_row_without_numbers(timing):
    oom = {"variant": "step", "mode": "step", "length": None, "direction": None}
    oom |= {"status": "oom", "reason": "full"}
    no_graph = oom | {"mode": "host-free"}
    inference = sample(mode="inference", phase="inference")
    got = timing(inference, statuses=[oom, no_graph]).query("status != 'ok'")
    assert got[["mode", "phase", "status"]].to_numpy().tolist() == [["step", "step", "oom"]]
    assert got["median"].isna().all()


def test_a_rung_that_computes_something_else_is_said(results):
    far = {"fp32": 0.0, "close": 1e-5, "far": 0.5}
    same = {
        name: {"loss": 1.0, "gradient_norm": 2.0 + 2 * each, "gradient_sample": [1.0]}
        for name, each in far.items()
    }
    spec = SHAPE | {"variants": [{"name": name} for name in far]}
    results.add("lab/ladder/nano/ctx32", spec, [sample(name) for name in far], {"checks": same})
    found, samples, _ = reading.read(results.plan(), results.folder)
    got = series.of(found, samples).query("quantity == 'difference'").set_index("variant")["median"]
    assert got.to_dict() == approx(far)


def test_a_rung_has_its_own_precision_and_attention_its_batch_by_tokens(results):
    rungs = [{"name": "fp32", "precision": "fp32"}, {"name": "bf16", "precision": "bf16"}]
    steps = [sample("fp32"), sample("bf16")]
    results.add("lab/ladder/nano/ctx32", SHAPE | {"variants": rungs}, steps)
    passes = [attention("naive", 1, 1, 0.5, length=length) for length in (256, 1024)]
    spec = {"d_head": 16, "precision": "fp32", "tokens": 2048, "heads": 2, "mask": "causal"}
    spec |= {"variants": [{"name": "naive"}]} | GPU
    results.add("lab/attention/d16/fp32/tokens=2048/heads=2/mask=causal", spec, passes)
    got = series_of(results)
    assert row(got, "time", variant="bf16")["precision"] == "bf16"
    time = row(got, "time", length=1024)
    assert (time["batch"], time["limits"]) == (2, "gpu")
    assert time["options"] == "tokens=2048 heads=2 mask=causal"
    # FlashAttention-2, section 4.1: 4 · length² · d · heads, of a causal mask half.
    assert median(got, "rate", length=1024) == approx(2 * 4 * 1024**2 * 16 * 2 / 2 / 0.5)


def test_spread_is_lent_within_a_study_on_a_machine_and_by_what_limits_alike(results):
    """Eight cells that spread alike, each in three processes: half as wide as each would be
    alone."""
    draw, alone = np.random.default_rng(3), []
    for context in range(1, 9):
        logs = draw.normal(0, 0.01, 3)
        expected = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
        alone.append(expected.high - expected.low)
        rows = [sample(process=p, seconds=math.exp(log)) for p, log in enumerate(logs, 1)]
        spec = SHAPE | {"context": context, "precision": "fp32"}
        results.add(f"lab/timing/nano/ctx{context}/fp32", spec, rows)
    got = series_of(results).query("quantity == 'time'")
    assert np.log(got["high"] / got["low"]).mean() < 0.6 * np.mean(alone)
