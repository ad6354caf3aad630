"""Traces of programs that are none of ours: names as people write them, several processes, what is
missing.

Every number is worked out by hand from the intervals beside it; times in nanoseconds.
"""

import pytest
from nsys_exports import (
    DEVICE_TO_DEVICE,
    HOST_TO_DEVICE,
    analyse,
    by_phase,
    modules,
    thread,
    totals,
)
from pytest import approx
from stepscope.recordings import names
from stepscope.trace import TraceError, analysis, attention, cautions

MAIN, OTHER = thread(1), thread(1, 5)
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"


def about(found):
    """What is warned of → the warning."""
    return found["warnings"].set_index("about")["text"]


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
    {
        "iteration 3": "iteration *",
        "layers.12.attention": "layers.*.attention",
        "block3": "block*",
        "fp16 matmul": "fp16 matmul",
        "conv 3x3": "conv 3x3",
        "step#07": "step#*",
        "a" * 300: "a" * 300,
    }.items(),
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
    for at, length in ((10, 10), (20, 20), (85, 1), (210, 30)):
        export.launches(at, length=length)
    export.launches(110, 120, 130, length=5, later=2000, tid=OTHER)
    return export


def test_phases_by_names_with_spaces(export):
    found = analyse(spaced(export))
    kernels = totals(found, "kernels")
    assert kernels == {"forward": 3, "loss": 1, "backward": 3, "optimizer": 1}
    assert totals(found, "gpu_time")["backward"] == approx(15e-9) and "phases" not in about(found)


@pytest.mark.parametrize("name", ["Backward", "Model Backward", "Backward 0"])
def test_a_backward_pass_with_a_capital_is_no_function_of_autograd(export, name):
    export.range("Forward", 0, 100)
    export.range(name, 100, 200)
    export.range("MmBackward0", 100, 150, OTHER)
    export.launches(10)
    export.launches(120, 130, tid=OTHER)
    assert totals(analyse(export), "kernels") == {"forward": 1, "backward": 2}


def test_ranges_count_by_any_thread_beside_their_own(export):
    ranges = modules(analyse(spaced(export), ["loss"]))
    ranges = ranges.loc[["forward pass", "backward pass", "optimizer step"]]
    assert ranges["kernels"].tolist() == [3, 0, 1]
    assert ranges["any_thread_gpu_time"].tolist() == approx([31e-9, 15e-9, 30e-9])


def test_what_ranges_of_one_name_on_two_threads_share_counts_once(export):
    """By any thread: three of four launches, one of which lies in both."""
    export.range("step", 0, 200)
    export.range("replica", 0, 100)
    export.range("replica", 50, 150, OTHER)
    export.launches(10, 60, 120, 160)
    row = modules(analyse(export)).loc["replica"]
    assert (row["kernels"], row["any_thread_gpu_time"]) == (2, approx(3e-9))


@pytest.mark.parametrize("outside, warned", [(1, False), (2, True)])
def test_phases_that_hold_less_than_nine_tenths_are_told(export, outside, warned):
    export.range("loss", 0, 100)
    export.range("encode", 100, 200)
    export.launches(10, length=9)
    export.launches(*range(110, 110 + outside))
    found = analyse(export)  # 9 of 10, and of 11 ns
    assert ("phases" in about(found)) == warned
    shares = found["ranges"].to_dict("list").get("share", [])
    assert shares == approx([9 / 11, 2 / 11] if warned else [])


def test_numbered_iterations_are_one_phase(export):
    for number in range(20):
        zero = 1000 * number
        export.range(f"iteration {number}", zero, zero + 1000)
        # a part of the iteration, and no step of its own
        export.range("step", zero + 100, zero + 900)
        export.launches(zero + 10)
    phases = by_phase(analyse(export))
    assert phases[["count", "kernels"]].T.to_dict("list") == {"step": [20, 1]}


def test_outermost_ranges_are_those_of_the_process(export):
    """A DDP trace: another thread opens a range for each gradient within the main thread's only
    one."""
    export.range("distributed_training", 0, 1000)
    for number, letter in enumerate("abcdefghijklmno"):
        export.range(f"all_reduce grad {letter}", 50 * number, 50 * number + 20, OTHER)
        export.launches(50 * number + 1, tid=OTHER, name=NCCL)
    assert totals(analyse(export), "kernels") == {"distributed_training": 15}


def test_blocks_that_are_numbered_are_one_range(export):
    export.range("forward", 0, 1000)
    for layer in range(3):
        export.range(f"layers.{layer}.self_attn", 100 * layer, 100 * layer + 50)
        export.launches(100 * layer + 10)
    whole = modules(analyse(export)).loc["layers.*.self_attn"]
    assert whole[["calls", "attention", "gpu_time"]].tolist() == approx([3, True, 3e-9])


@pytest.mark.parametrize(
    "name, whole",
    {
        "scaled dot product attention": True,
        "attention sublayer": True,
        "MultiHeadAttention": True,
        "self_attn": True,
        "attention scores": False,
        "attention norm": False,
        "attend": False,
    }.items(),
)
def test_names_of_attention(name, whole):
    assert attention.is_attention(name) == whole


def test_copies_by_direction_apart_from_fills_without_kernels_that_fill(export):
    export.range("step", 0, 500)
    for kind, start, end in ((HOST_TO_DEVICE, 0, 10), (HOST_TO_DEVICE, 20, 50)):
        export.copy(kind, start, end, export.call(0, 1))
    export.copy(DEVICE_TO_DEVICE, 60, 65, export.call(2, 3))
    export.fill(70, 75, export.call(10, 11))
    export.launch(FILL, 20, 80, 130)
    rows = analyse(export)["transfers"].set_index("what")
    kinds = ["copy Host-to-Device", "copy Device-to-Device", "fill"]
    assert rows.loc[kinds, "calls"].tolist() == [2, 1, 1] and len(rows) == 3
    assert rows.loc[kinds, "time"].tolist() == approx([40e-9, 5e-9, 5e-9])
    # 4 bytes each: 8 bytes in 40 ns are 0.2 GB/s
    assert rows.loc["copy Host-to-Device", ["bytes", "rate"]].tolist() == approx([8, 0.2e9])


def test_calls_that_wait_are_told(export):
    """An asynchronous copy is none of them."""
    export.range("step", 0, 500)
    export.launches(10)
    export.call(100, 150, name="cudaStreamSynchronize_v3020")
    export.call(200, 230, name="cudaStreamSynchronize_v3020")
    export.call(300, 310, name="cudaMemcpy_v3020")
    export.call(320, 330, name="cudaMemcpyAsync_v3020")
    rows = analyse(export)["transfers"].set_index("what")["time"]
    assert rows.to_dict() == approx(
        {"cudaStreamSynchronize_v3020": 80e-9, "cudaMemcpy_v3020": 10e-9}
    )


def test_the_profilers_own_warnings_are_repeated(export):
    """Once each, and not what is no warning."""
    lost = "Not all NVTX events might have been collected."
    for severity, text in ((1, "Profiling has started."), (2, lost), (2, lost), (3, 5)):
        export.add("DIAGNOSTIC_EVENT", severity=severity, text=text)
    found = analyse(spaced(export))["warnings"]
    assert found[found["about"] == "profiler"]["text"].tolist() == [lost, "5"]


@pytest.mark.parametrize(
    "last, told",
    [
        (1100, "it has no kernels, copies and graphs; record with `nsys profile"),
        (4 * 10**16, "its events lie more than a year apart"),
    ],
)
def test_a_trace_without_work_of_a_gpu_or_of_years_is_refused(export, tmp_path, last, told):
    export.range("step", 0, 500)
    export.range("step", 1000, last)
    trace = analysis.read(export.write(tmp_path / "trace.sqlite"))
    with pytest.raises(TraceError, match=told):
        cautions.require_operations(trace, "trace.sqlite")
