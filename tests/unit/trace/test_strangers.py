"""Traces of programs that are none of ours: names as people write them, several processes, what is
missing.

Every number is worked out by hand from the intervals beside it; times in nanoseconds.
"""

import gzip

import pytest
from nsys_exports import DEVICE_TO_DEVICE, HOST_TO_DEVICE, modules, thread, totals
from pytest import approx
from stepscope.recordings import names
from stepscope.trace import TraceError, analysis, attention, cautions

MAIN, OTHER = thread(1), thread(1, 5)
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"


def by(table, key, value):
    return dict(zip(table[key], table[value], strict=True))


def about(found):
    return by(found["warnings"], "about", "text")


MEANINGS = {
    "forward": (
        "forward pass",
        "Forward",
        "fwd",
        "model_forward",
        "forward + loss",
        "DataParallel.forward",
        "DistributedDataParallel.forward",
        "FullyShardedDataParallel.forward",
        "DeepSpeedEngine.forward",
        "[pl][profile][Strategy]DDPStrategy.training_step",
        "forward-compute",
    ),
    "backward": (
        "backward pass",
        "loss.backward()",
        "bwd_pass",
        "DeepSpeedEngine.backward",
        "Accelerator.backward",
        "[pl][profile][Strategy]DDPStrategy.backward",
    ),
    "optimizer": (
        "optimizer step",
        "Optimizer.step#AdamW.step",
        "opt_step",
        "Optimizer.step#RMSprop.step",
        "Optimizer.step#MyOwn.step",
        "DeepSpeedEngine.step",
        "BF16_Optimizer.step",
        "AcceleratedOptimizer.step",
    ),
    "loss": ("loss", "crossEntropy"),
    "inference": ("inference", "gpu_model_runner: forward"),
    "step": (
        "train_step",
        "iteration 3",
        "ProfilerStep#3",
        "batch 12",
        "PipelineEngine.train_batch",
        "[pl][profile]run_training_batch",
    ),
    "": ("optimizer.zero_grad()", "Optimizer.zero_grad#AdamW.zero_grad"),
    None: (
        "attention forward",
        "batch",
        "softmax",
        "layer 0 backward",
        "train",
        "epoch 1",
        "",
        "forward " * 99,
        "FullyShardedDataParallel._pre_forward",
        "FSDP::post_backward_reduce",
        "[pl][module]torch.nn.modules.linear.Linear: head",
        "forward_backward",
        "fwd_bwd",
        "forward/backward",
        "forward-backward-func",
        "backward_and_optimizer",
        "fwdBwd",
    ),
}


@pytest.mark.parametrize("meant", MEANINGS)
def test_what_names_of_people_and_libraries_mean(meant):
    expected = dict.fromkeys(MEANINGS[meant], meant)
    assert {name: names.meaning(name) for name in expected} == expected


@pytest.mark.parametrize(
    "name, together",
    [
        ("iteration 3", "iteration *"),
        ("layers.12.attention", "layers.*.attention"),
        ("block3", "block*"),
        ("fp16 matmul", "fp16 matmul"),
        ("conv 3x3", "conv 3x3"),
        ("step#07", "step#*"),
        ("a" * 300, "a" * 300),
    ],
)
def test_names_that_differ_in_a_number(name, together):
    assert names.family(name) == together


def spaced(export):
    """A step as many write it: forward of 2 kernels, loss of 1, backward by another thread of 3,
    optimizer of 1."""
    export.range("forward pass", 0, 100)
    export.range("loss", 80, 100)
    export.range("backward pass", 100, 200)
    export.range("optimizer step", 200, 300)
    for at, tid, length in ((10, MAIN, 10), (20, MAIN, 20), (85, MAIN, 1), (210, MAIN, 30)):
        export.launch("k", at, 1000 + at, 1000 + at + length, tid)
    for at in (110, 120, 130):
        export.launch("k", at, 2000 + at, 2000 + at + 5, OTHER)
    return export


def test_phases_by_names_with_spaces(export, analyse):
    found = analyse(spaced(export))
    kernels = totals(found, "kernels")
    assert kernels == {"forward": 3, "loss": 1, "backward": 3, "optimizer": 1}
    assert totals(found, "gpu_time")["backward"] == approx(15e-9) and "phases" not in about(found)


@pytest.mark.parametrize("name", ["Backward", "Model Backward", "Backward 0"])
def test_a_backward_pass_with_a_capital_is_no_function_of_autograd(export, analyse, name):
    export.range("Forward", 0, 100)
    export.range(name, 100, 200)
    export.range("MmBackward0", 100, 150, OTHER)
    for at in (10, 120, 130):
        export.launch("k", at, 1000 + at, 1001 + at, MAIN if at == 10 else OTHER)
    assert totals(analyse(export), "kernels") == {"forward": 1, "backward": 2}


def test_ranges_count_by_any_thread_beside_their_own(export, analyse):
    found = analyse(spaced(export), ["loss"])
    ranges = modules(found)
    assert ranges["kernels"].to_dict() == {
        "forward pass": 3,
        "backward pass": 0,
        "optimizer step": 1,
    }
    by_any = {"forward pass": 31e-9, "backward pass": 15e-9, "optimizer step": 30e-9}
    assert ranges["any_thread_gpu_time"].to_dict() == approx(by_any)


def test_what_ranges_of_one_name_on_two_threads_share_counts_once(export, analyse):
    export.range("step", 0, 200)
    export.range("replica", 0, 100)
    export.range("replica", 50, 150, OTHER)
    for at in (10, 60, 120, 160):
        export.launch("k", at, 1000 + at, 1001 + at)
    row = modules(analyse(export)).loc["replica"]
    assert (row["kernels"], row["any_thread_gpu_time"]) == (2, approx(3e-9))


@pytest.mark.parametrize("outside, warned", [(1, False), (2, True)])
def test_phases_that_hold_less_than_nine_tenths_are_told(export, analyse, outside, warned):
    export.range("loss", 0, 100)
    export.range("encode", 100, 200)
    export.launch("k", 10, 1000, 1009)
    for at in range(outside):
        export.launch("k", 110 + at, 2000 + at, 2001 + at)
    found = analyse(export)  # 9 of 10, and of 11 ns
    assert ("phases" in about(found)) == warned
    there = by(found["ranges"], "range", "share") if len(found["ranges"]) else {}
    assert there == (approx({"loss": 9 / 11, "encode": 2 / 11}) if warned else {})


def test_numbered_iterations_are_one_phase(export, analyse):
    for number in range(20):
        zero = 1000 * number
        export.range(f"iteration {number}", zero, zero + 1000)
        export.range(
            "step", zero + 100, zero + 900
        )  # a part of the iteration, and no step of its own
        export.launch("k", zero + 10, zero + 20, zero + 30)
    found = analyse(export)
    assert by(found["phases"], "phase", "count") == {"step": 20}
    assert totals(found, "kernels") == {"step": 20}


def test_outermost_ranges_are_those_of_the_process(export, analyse):
    """A DDP trace: another thread opens a range for each gradient within the main thread's only
    one."""
    export.range("distributed_training", 0, 1000)
    for number in range(15):
        export.range(
            f"all_reduce grad {'abcdefghijklmno'[number]}", 50 * number, 50 * number + 20, OTHER
        )
        export.launch(NCCL, 50 * number + 1, 2000 + number, 2001 + number, OTHER)
    found = analyse(export)
    assert totals(found, "kernels") == {"distributed_training": 15}


def test_blocks_that_are_numbered_are_one_range(export, analyse, attributed):
    export.range("forward", 0, 1000)
    for layer in range(3):
        export.range(f"layers.{layer}.self_attn", 100 * layer, 100 * layer + 50)
        export.launch("k", 100 * layer + 10, 2000 + 100 * layer, 2010 + 100 * layer)
    found = analyse(export)
    assert attention.layers(attributed(export)) == 3
    whole = modules(found).loc["layers.*.self_attn"]
    assert (whole["calls"], whole["attention"], whole["gpu_time"]) == (
        3,
        True,
        approx(30e-9),
    )


@pytest.mark.parametrize(
    "name, whole",
    [
        ("scaled dot product attention", True),
        ("attention sublayer", True),
        ("MultiHeadAttention", True),
        ("self_attn", True),
        ("attention scores", False),
        ("attention norm", False),
        ("attend", False),
    ],
)
def test_names_of_attention(name, whole):
    assert attention.is_attention(name) == whole


def test_copies_by_direction_apart_from_fills_and_kernels_that_fill(export, analyse):
    export.range("step", 0, 500)
    for at, (kind, start, end) in enumerate(
        ((HOST_TO_DEVICE, 0, 10), (HOST_TO_DEVICE, 20, 50), (DEVICE_TO_DEVICE, 60, 65))
    ):
        export.copy(kind, start, end, export.call(at, at + 1))
    export.fill(70, 75, export.call(10, 11))
    export.launch(FILL, 20, 80, 130)
    rows = analyse(export)["transfers"].set_index("what")
    assert rows["calls"].to_dict() == {
        "copy Host-to-Device": 2,
        "copy Device-to-Device": 1,
        "fill": 1,
        "fill by a kernel": 1,
    }
    assert rows["time"].to_dict() == approx(
        {
            "copy Host-to-Device": 40e-9,
            "copy Device-to-Device": 5e-9,
            "fill": 5e-9,
            "fill by a kernel": 50e-9,
        }
    )
    # 4 bytes each: 8 bytes in 40 ns are 0.2 GB/s
    assert rows.loc["copy Host-to-Device", ["bytes", "rate"]].tolist() == approx([8, 0.2e9])
    assert rows.loc["fill by a kernel", ["bytes", "rate"]].isna().all()


def test_calls_that_wait_are_told(export, analyse):
    export.range("step", 0, 500)
    export.launch("k", 10, 20, 30)
    for start, end in ((100, 150), (200, 230)):
        export.call(start, end, name="cudaStreamSynchronize_v3020")
    export.call(300, 310, name="cudaMemcpy_v3020")
    export.call(320, 330, name="cudaMemcpyAsync_v3020")
    rows = analyse(export)["transfers"].set_index("what")["time"]
    assert rows.to_dict() == approx(
        {"cudaStreamSynchronize_v3020": 80e-9, "cudaMemcpy_v3020": 10e-9}
    )


def test_the_profilers_own_warnings_are_repeated(export, analyse):
    lost = "Not all NVTX events might have been collected."
    for severity, text in ((1, "Profiling has started."), (2, lost), (2, lost), (3, 5)):
        export.add("DIAGNOSTIC_EVENT", severity=severity, text=text)
    found = analyse(spaced(export))["warnings"]
    assert found[found["about"] == "profiler"]["text"].tolist() == [lost, "5"]


def test_a_packed_file_that_is_a_bomb_is_refused(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b" " * (65 << 20)))
    with pytest.raises(TraceError, match="larger than 64 MB; if you trust it, gunzip it first"):
        analysis.read(path)


def test_a_trace_without_work_of_a_gpu_is_refused(export, tmp_path):
    export.range("step", 0, 500)
    trace = analysis.read(export.write(tmp_path / "trace.sqlite"))
    with pytest.raises(
        TraceError, match="it has no kernels, copies and graphs; record with `nsys profile"
    ):
        cautions.require_operations(trace, "trace.sqlite")


def test_a_trace_of_years_is_refused(export, tmp_path):
    export.range("step", 0, 500)
    export.range("step", 1000, 4 * 10**16)
    trace = analysis.read(export.write(tmp_path / "trace.sqlite"))
    with pytest.raises(TraceError, match="its events lie more than a year apart"):
        cautions.require_operations(trace, "trace.sqlite")
