"""The tables of synthetic exports; expected numbers are worked out by hand. Times in nanoseconds."""

import io
import json
import statistics

import numpy as np
import pandas as pd
import pytest
from nsys_exports import DEVICE_TO_DEVICE, HOST_TO_DEVICE, MARK, thread
from stepscope.recordings.tables import write_tables
from stepscope.trace import analysis, kernel_names, summary
from stepscope.trace.device_tables import covered_within, union
from stepscope.trace.table_names import COLUMNS, TABLES

MAIN, AUTOGRAD = thread(1), thread(1, 9)
GEMM, ADD, EXP = "void gemm<float>(int)", "void add<float>(int)", "void exp<float>(int)"
# Block → part → kernels (name, nanoseconds).
BLOCK = {
    "attention": {
        "QKV projection": [(GEMM, 30)],
        "attention scores": [(GEMM, 10), (ADD, 2)],
        "softmax": [(EXP, 6), (ADD, 4)],
        "output projection": [(GEMM, 20)],
    },
    "FFN": {"": [(GEMM, 40), (GEMM, 50), (ADD, 5)]},
}


def model(export, steps=2, layers=3, extra=0, head=1):
    """Steps of a model: blocks and an LM head of so many kernels; `extra` in the first block's FFN of the last step."""
    now = 0

    def launch(name, length, tid=MAIN):
        nonlocal now
        export.launch(name, now, now + 5, now + 5 + length, tid)
        now += 100

    for step in range(steps):
        begin = now
        now += 10
        forward = now
        now += 10
        for layer in range(layers):
            for module, parts in BLOCK.items():
                start = now
                now += 10
                for part, kernels in parts.items():
                    inner = now
                    now += 10
                    for name, length in kernels:
                        launch(name, length + layer)
                    if part:
                        export.range(part, inner, now, MAIN)
                    now += 10
                if module == "FFN" and step == steps - 1 and layer == 0:
                    for _ in range(extra):
                        launch(ADD, 1)
                export.range(module, start, now, MAIN, registered=True)
        start = now
        for _ in range(head):
            launch(GEMM, 70)
        export.range("LM head", start, now, MAIN)
        export.range("forward", forward, now, MAIN)
        export.range("step", begin, now + 10, MAIN)
        now += 20


def test_instances_are_layers_times_k_plus_r(export, analyse):
    model(export)
    tables = analyse(export)
    kernels = tables["kernels"].set_index(["phase", "full_name"])
    gemm = kernels.loc["forward", GEMM]
    # 5 in each of 3 blocks (QKV, scores, output, 2 in FFN) and the LM head: 16 = 3 x 5 + 1.
    assert gemm[["instances", "instances_per_step", "layers", "per_layer", "remainder"]].tolist() == [32, 16, 3, 5, 1]
    assert gemm["layer_modules"] == "2 FFN, 1 QKV projection, 1 attention scores, 1 output projection"
    assert gemm["remainder_modules"] == "1 LM head"
    lengths = [length + layer for layer in range(3) for length in (30, 10, 20, 40, 50)] + [70]
    total = sum(lengths) + sum(length + layer for layer in range(3) for length in (2, 6, 4, 5))
    assert gemm["total_ms"] == pytest.approx(2 * sum(lengths) / 1e6)
    assert gemm["share_of_phase_gpu_time"] == pytest.approx(sum(lengths) / total)
    assert gemm["mean_us"] == pytest.approx(statistics.mean(lengths) / 1e3)
    assert gemm["median_us"] == pytest.approx(statistics.median(lengths) / 1e3)
    assert gemm["std_us"] == pytest.approx(statistics.stdev(lengths * 2) / 1e3)
    assert (gemm["min_us"], gemm["max_us"]) == pytest.approx((0.010, 0.070))
    assert gemm["name"] == kernel_names.describe(GEMM).short
    assert list(tables["kernels"][tables["kernels"]["phase"] == "forward"]["full_name"]) == [GEMM, ADD, EXP]
    assert "16 = 3 × 5 + 1 (1 LM head)" in summary.markdown(tables, "x")


def test_what_is_not_in_every_layer_is_the_remainder(export, analyse):
    model(export, head=7)  # 7 = 3 x 2 + 1 would put two of the head's into each layer
    gemm = analyse(export)["kernels"].set_index(["phase", "full_name"]).loc["forward", GEMM]
    assert gemm[["instances_per_step", "per_layer", "remainder"]].tolist() == [22, 5, 7]
    assert (gemm["layer_modules"].count("LM head"), gemm["remainder_modules"]) == (0, "7 LM head")


def test_a_phase_inside_another_is_named_as_a_module(export, analyse):
    for step in (0, 1000):
        export.range("step", step, step + 900, MAIN)
        export.range("forward", step + 10, step + 500, MAIN)
        export.range("loss", step + 300, step + 400, MAIN)
        for at in (100, 200, 310, 600):
            export.launch(ADD, step + at, step + at + 5, step + at + 7)
    kernels = analyse(export, layers=2)["kernels"].set_index("phase")
    assert kernels.loc["forward", ["per_layer", "remainder", "remainder_modules"]].tolist() == [1, 1, "1 loss"]
    assert kernels.loc["step", ["per_layer", "remainder", "remainder_modules"]].tolist() == [1, 2, "1 loss"]
    assert kernels.loc["loss", ["per_layer", "remainder", "remainder_modules"]].tolist() == [0, 1, ""]


def test_no_composition_where_steps_differ(export, analyse):
    model(export, extra=2)  # 9 and 11 additions: 20 / 2 would look like 10 in each
    kernels = analyse(export)["kernels"].set_index(["phase", "full_name"])
    assert np.isnan(kernels.loc[("forward", ADD), "layers"])
    assert kernels.loc[("forward", EXP), ["layers", "per_layer", "remainder"]].tolist() == [3, 1, 0]


def test_layers_may_be_given(export, analyse):
    for at in range(7):
        export.launch(GEMM, 10 * at, 10 * at + 100, 10 * at + 105)
    kernels = analyse(export, layers=3)["kernels"]
    assert kernels[["phase", "layers", "per_layer", "remainder"]].to_numpy().tolist() == [["all", 3, 2, 1]]


def test_attention_and_its_parts(export, analyse):
    model(export)
    table = analyse(export)["attention"].set_index("part")
    gpu = table["gpu_ms_per_step"] * 1e6
    # Of three layers; each kernel is longer by the layer's number: 30, 31, 32 and so on.
    parts = {"QKV projection": 93, "attention scores": 42, "softmax": 36, "output projection": 63}
    assert gpu[list(parts)].to_dict() == pytest.approx(parts)
    assert gpu["attention"] == pytest.approx(234) and gpu["outside these parts"] == pytest.approx(0)
    assert list(table.index)[:6] == ["attention", *parts, "outside these parts"]
    matmul = table["gpu_matmul_ms_per_step"] * 1e6
    assert matmul[list(parts)].to_dict() == pytest.approx({**parts, "attention scores": 33, "softmax": 0})
    linear = "linear (QKV projection + output projection)"
    assert gpu[linear] == pytest.approx(156) and gpu["attention without linear"] == pytest.approx(78)
    forward = 234 + (40 + 50 + 5) * 3 + 3 * 3 + 70
    assert gpu["forward without attention"] == pytest.approx(forward - 234)
    assert table.loc["softmax", "share_of_attention_gpu_time"] == pytest.approx(36 / 234)
    assert table.loc["softmax", "share_of_forward_gpu_time"] == pytest.approx(36 / forward)
    assert (
        table.loc["attention", "kernels_per_step"] == 18 and table.loc["attention", "kernels_exclusive_per_step"] == 0
    )
    assert table.loc["attention", "gpu_exclusive_ms_per_step"] == 0
    # Host: 6 calls of 100 ns and 10 for each of the 9 borders; each part's range is 10 and its calls.
    host = table["host_ms_per_step"] * 1e6
    assert host["attention"] == pytest.approx(3 * (600 + 10 + 4 * 20)) and host["softmax"] == pytest.approx(3 * 210)
    assert host["outside these parts"] == pytest.approx(3 * 50)
    assert table.loc["attention", "host_exclusive_ms_per_step"] == pytest.approx(150e-6)
    assert table.loc["softmax", "top_kernel"] == kernel_names.describe(EXP).short
    assert table.loc["softmax", "top_kernel_share_of_range_gpu_time"] == pytest.approx((6 + 7 + 8) / 36)
    spread = table.loc["softmax", [f"gpu_{key}_us" for key in ("mean", "median", "min", "max", "std")]].tolist()
    assert spread == pytest.approx([0.012, 0.012, 0.010, 0.014, statistics.stdev([10, 12, 14] * 2) / 1e3])


def test_recomputed_attention_counts_for_the_backward_pass_only(export, analyse):
    for step in (0, 1000):
        export.range("step", step, step + 1000, MAIN)
        export.range("forward", step, step + 400, MAIN)
        export.range("attention", step + 100, step + 200, MAIN)
        export.launch(GEMM, step + 150, step + 160, step + 170)
        export.range("attention", step + 500, step + 600, AUTOGRAD)
        export.launch(GEMM, step + 550, step + 560, step + 590, AUTOGRAD)
    tables = analyse(export)
    assert dict(tables["checks"].to_numpy().tolist())["layers"] == 1
    whole = tables["attention"].iloc[0]
    assert whole["gpu_ms_per_step"] == pytest.approx(10e-6) and whole["kernels_per_step"] == 1
    assert tables["ranges"].set_index("range").loc["attention", "kernels_per_step"] == 2


def test_categories_add_up_to_the_phases_time(export, analyse):
    model(export)
    export.copy(HOST_TO_DEVICE, 5, 25, export.call(1, 2, MAIN))
    export.copy(DEVICE_TO_DEVICE, 5, 15, export.call(3, 4, MAIN))
    tables = analyse(export)
    table = tables["categories"]
    shares = table.groupby("phase")["share_of_phase_gpu_time"].sum()
    assert shares.to_dict() == pytest.approx({"all": 1, "step": 1, "forward": 1})
    phases = tables["phases"].set_index("phase")["gpu_ms_total"]
    assert table.groupby("phase")["total_ms"].sum()[phases.index].to_dict() == pytest.approx(phases.to_dict())
    moved = table[(table["phase"] == "step") & (table["category"] == "memory set/copy")].iloc[0]
    assert moved["instances"] == 2 and moved["total_ms"] == pytest.approx(30e-6)


def test_busy_idle_gaps_and_queue_delay(export, analyse):
    # Two streams of one GPU, 30 ns busy together within the step (0 to 100), and 20 ns after it.
    export.range("step", 0, 100, MAIN)
    export.launch(GEMM, 1, 10, 30)
    export.launch(GEMM, 3, 20, 35, stream=8)
    export.copy(HOST_TO_DEVICE, 60, 65, export.call(5, 7, MAIN))
    export.launch(ADD, 40, 100, 120)
    table = analyse(export)["busy"].set_index("phase")
    step = table.loc["step"]
    assert step["wall_ms_per_step"] == pytest.approx(100e-6)
    assert step["busy_ms_per_step"] == pytest.approx(30e-6) and step["idle_ms_per_step"] == pytest.approx(70e-6)
    assert step["busy_share_of_wall"] == pytest.approx(0.3)
    assert step["compute_ms_per_step"] == pytest.approx(45e-6) and step["memory_ms_per_step"] == pytest.approx(5e-6)
    assert step["compute_share_of_operations_time"] == pytest.approx(0.9)
    # Gaps: 35 to 60, 65 to 100. Delays: 10 - 2, 20 - 4, 60 - 7, 100 - 41.
    assert step["gaps_per_step"] == 2 and step["gap_ms_per_step"] == pytest.approx(60e-6)
    assert step["gap_median_us"] == pytest.approx(0.030) and step["gap_max_us"] == pytest.approx(0.035)
    assert step["queue_delay_mean_us"] == pytest.approx((8 + 16 + 53 + 59) / 4 / 1e3)
    everything = table.loc["all"]
    assert everything["wall_ms_per_step"] == pytest.approx(120e-6)
    assert everything["busy_ms_per_step"] == pytest.approx(50e-6)


def test_union_and_cover_agree_with_counting_every_nanosecond():
    draw = np.random.default_rng(1)
    for _ in range(50):
        one, two = (np.sort(draw.integers(0, 60, (draw.integers(0, 8), 2)), axis=1) for _ in range(2))
        nanoseconds = [{t for start, end in part for t in range(start, end)} for part in (one, two)]
        joined = [union(part[:, 0], part[:, 1]) for part in (one, two)]
        for (start, end), each in zip(joined, nanoseconds, strict=True):
            assert (end - start).sum() == len(each)
        assert covered_within(joined[0], joined[1]) == len(nanoseconds[0] & nanoseconds[1])


def test_gaps_between_cuda_calls_are_each_threads_own(export, analyse):
    export.range("step", 0, 100, MAIN)
    export.range("step", 100, 200, MAIN)
    for start, end, tid in ((10, 20, MAIN), (12, 15, MAIN), (40, 50, MAIN), (45, 60, AUTOGRAD), (90, 95, AUTOGRAD)):
        export.call(start, end, tid, driver=start == 12)  # a driver's call inside the runtime's
    export.call(110, 130, MAIN, name="cudaMalloc_v3020")
    export.call(210, 215, MAIN)
    export.call(230, 235, MAIN)
    tables = analyse(export)
    table = tables["api_gaps"].set_index("phase")
    # MAIN 20 to 40 and, in `all`, 50 to 110, 130 to 210 and 215 to 230; AUTOGRAD 60 to 90.
    assert table.loc["step", ["calls_per_step", "gaps_per_step"]].tolist() == [3, 1]
    assert table.loc["step", "gap_ms_per_step"] == pytest.approx(25e-6)
    assert table.loc["all", "gap_max_us"] == pytest.approx(0.080) and table.loc["all", "gaps_per_step"] == 2.5
    calls = tables["api_calls"].set_index("name")
    assert calls["calls_per_step"].to_dict() == {"cudaLaunchKernel_v7000": 3.5, "cudaMalloc_v3020": 0.5}
    assert calls.loc["cudaMalloc_v3020", "share_of_api_time"] == pytest.approx(20 / (10 + 3 + 10 + 15 + 5 + 20 + 5 + 5))


def backward(export, tid, start, function, sequence, length, name="aten::mm", kernel=GEMM):
    """A backward function with one kernel, as torch.autograd.profiler.emit_nvtx names its ranges."""
    export.range(f"autograd::engine::evaluate_function: {function}, op_id = 90", start, start + 50, tid)
    export.range(f"{function}, seq = {sequence}, op_id = 91", start + 5, start + 45, tid)
    export.range(f"{name}, op_id = 92", start + 10, start + 40, tid)
    export.launch(kernel, start + 20, start + 22, start + 22 + length, tid)


def test_a_look_up_before_a_launch_is_no_call_with_a_gap(export, analyse):
    for at in (0, 100):
        export.call(at, at + 1, MAIN, name="cuKernelGetName", driver=True)
        export.launch(ADD, at + 2, at + 10, at + 12)
    gaps = analyse(export)["api_gaps"].set_index("phase").loc["all"]
    assert (gaps["calls_per_step"], gaps["gaps_per_step"]) == (2, 1)
    assert gaps["gap_median_us"] == pytest.approx(0.099)  # from 3, where the first launch ends, to 102


def test_backward_kernels_belong_to_the_modules_of_their_sequence_numbers(export, analyse):
    export.range("step", 0, 1000, MAIN)
    export.range("forward", 0, 400, MAIN)
    for number, (module, start) in enumerate((("attention", 10), ("FFN", 100), ("LM head", 200))):
        export.range(module, start, start + 80, MAIN)
        export.range(f"aten::linear, seq = {number}, op_id = {number}, sizes = [[2, 3]]", start + 10, start + 70, MAIN)
        export.range(f"aten::mm, seq = {number}, op_id = 7", start + 20, start + 60, MAIN)
        export.launch(GEMM, start + 30, start + 31, start + 36)
    export.range("backward", 400, 900, MAIN)
    backward(export, AUTOGRAD, 410, "MmBackward0", 2, 7)
    backward(export, AUTOGRAD, 510, "torch::autograd::CppNode<ffn::Multiplied>", 1, 5)
    # Run by the backward function of FFN, with a number of its own thread's: no forward operator of this pass.
    export.range("aten::add, seq = 0, op_id = 8", 530, 540, AUTOGRAD)
    backward(export, AUTOGRAD, 610, "_CrossEntropyBackward", 0, 3)
    export.range("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 99", 700, 800, AUTOGRAD)
    export.launch(ADD, 710, 711, 713, AUTOGRAD)
    tables = analyse(export)
    modules = tables["modules"].set_index("module")
    assert modules["gpu_ms_per_step"].to_dict() == pytest.approx(
        {"LM head": 7e-6, "FFN": 5e-6, "attention": 3e-6, "no module (gradients added up)": 2e-6}
    )
    assert modules.loc["FFN", "share_of_backward_gpu_time"] == pytest.approx(5 / 17)
    assert (modules["kernels_per_step"] == 1).all()
    ranges = tables["ranges"].set_index("range")
    assert ranges.loc["aten::mm", "count"] == 6 and ranges.loc["aten::mm", "operator"]
    assert not ranges.loc["attention", "operator"]
    kernels = tables["kernels"].set_index(["phase", "full_name"])
    assert kernels.loc[("backward", GEMM), "layer_modules"] == "1 FFN, 1 LM head, 1 attention"


def test_the_elementwise_kernels_of_a_modules_backward_pass_are_told_apart(export, analyse):
    export.range("step", 0, 2000, MAIN)
    export.range("forward", 0, 400, MAIN)
    for number, module in enumerate(("softmax", "FFN")):
        export.range(module, 100 * number, 100 * number + 90, MAIN)
        export.range(f"aten::exp, seq = {number}, op_id = {number}", 100 * number + 10, 100 * number + 80, MAIN)
    export.range("backward", 400, 1900, MAIN)
    scale = "void at::native::elementwise_kernel<(int)128, (int)2>(int)"
    backward(export, AUTOGRAD, 410, "ExpBackward0", 0, 7, "aten::mul", scale)
    backward(export, AUTOGRAD, 510, "ExpBackward0", 0, 6, "aten::mul", scale)
    backward(export, AUTOGRAD, 610, "MmBackward0", 1, 9)
    backward(export, AUTOGRAD, 710, "MmBackward0", 1, 4, "aten::mul", scale)
    modules = analyse(export)["modules"].set_index("module")
    assert modules["elementwise_per_step"].to_dict() == {"softmax": 2, "FFN": 1}
    assert modules["elementwise_ms_per_step"].to_dict() == pytest.approx({"softmax": 13e-6, "FFN": 4e-6})
    assert modules["gpu_ms_per_step"].to_dict() == pytest.approx({"softmax": 13e-6, "FFN": 13e-6})


FILL = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int)"


def test_copies_stand_by_direction_and_memsets_apart_from_kernels_that_fill(export, analyse):
    for step in range(2):
        start = 1000 * step
        export.range("step", start, start + 900, MAIN)
        export.range("forward", start + 10, start + 800, MAIN)
        for at, length in ((20, 3), (40, 5)):
            call = export.call(start + at, start + at + 1, MAIN)
            export.copy(HOST_TO_DEVICE, start + at, start + at + length, call)
        export.copy(DEVICE_TO_DEVICE, start + 60, start + 67, export.call(start + 60, start + 61, MAIN))
        export.fill(start + 80, start + 82, export.call(start + 80, start + 81, MAIN))
        export.launch(FILL, start + 100, start + 101, start + 105, MAIN)
        export.launch(GEMM, start + 120, start + 121, start + 121 + 79, MAIN)
    table = analyse(export)["memory_operations"]
    own = table[table["phase"] == "forward"]
    found = [(row.kind, row.instances_per_step, row.instances) for row in own.itertuples()]
    # A step: 3 + 5 ns of the host's two copies, 7 on the device, 2 of a memset, 4 of a kernel that fills, 79 of others.
    assert found == [("copy", 2, 4), ("copy", 1, 2), ("fill", 1, 2), ("memset", 1, 2)]
    assert own["name"].tolist()[:2] == ["Host-to-Device", "Device-to-Device"]
    assert own["ms_per_step"].tolist() == pytest.approx([8e-6, 7e-6, 4e-6, 2e-6])
    assert own["total_ms"].tolist() == pytest.approx([16e-6, 14e-6, 8e-6, 4e-6])
    assert own["share_of_phase_gpu_time"].tolist() == pytest.approx([0.08, 0.07, 0.04, 0.02])
    assert set(table["phase"]) == {"all", "step", "forward"}


def test_a_number_used_again_means_the_latest_before_the_backward_function(export, analyse):
    for zero, module in ((0, "attention"), (1000, "FFN")):
        export.range("step", zero, zero + 1000, MAIN)
        export.range(module, zero + 10, zero + 100, MAIN)
        export.range("aten::mm, seq = 3, op_id = 1", zero + 20, zero + 90, MAIN)
        backward(export, AUTOGRAD, zero + 500, "MmBackward0", 3, 5 if zero else 4)
    modules = analyse(export)["modules"].set_index("module")["gpu_ms_per_step"]
    assert modules.to_dict() == pytest.approx({"FFN": 2.5e-6, "attention": 2e-6})


def stack(export, at, frames):
    """A mark as nsys makes one with --python-backtrace=cuda; a frame is (file, line), the innermost first."""
    frames = [{"Function": export.string("f"), "File": export.string(file), "Line": line} for file, line in frames]
    payload = json.dumps({"Python Backtrace on CUDA": {"Frames count": len(frames), "Frames": frames}})
    row = {"start": at, "end": None, "eventType": MARK, "globalTid": MAIN, "domainId": 1}
    export.add("NVTX_EVENTS", **row, text=None, textId=None, jsonText=payload)


def test_gpu_time_by_the_innermost_line_of_python_outside_packages(export, analyse):
    package = ("/env/lib/python3.12/site-packages/torch/nn/functional.py", 2567)
    model, train = ("/x/model.py", 12), ("/x/train.py", 80)
    stack(export, 9_900, [package, model, train])
    stack(export, 19_950, [train])
    stack(export, 30_000, [package])
    lengths = {10_000: 10, 20_000: 20, 30_100: 30, 32_000: 40}  # the last call has no stack near it
    for number, (at, length) in enumerate(lengths.items()):
        called = export.call(at, at + 5, MAIN)
        export.kernel(GEMM, 100_000 + 100 * number, 100_000 + 100 * number + length, called)
    backward = export.call(10_050, 10_060, AUTOGRAD)  # another thread at the same time
    export.kernel(GEMM, 200_000, 200_100, backward)
    table = analyse(export)["lines"].set_index(["file", "line"])
    assert table["operations_per_step"].to_dict() == {package: 1, train: 1, model: 1}
    assert table["gpu_ms_per_step"].to_dict() == pytest.approx({package: 30e-6, train: 20e-6, model: 10e-6})
    assert table["share_of_gpu_time"].to_dict() == pytest.approx({package: 0.15, train: 0.10, model: 0.05})


@pytest.mark.parametrize("payload", ["no JSON", "{}", '{"a": 1}', '{"a": {"Frames": []}}', '{"a": {"Frames": [{}]}}'])
def test_other_payloads_of_marks_are_no_stacks(export, analyse, payload):
    called = export.call(10, 15, MAIN)
    export.kernel(GEMM, 100, 110, called)
    row = {"start": 10, "end": None, "eventType": MARK, "globalTid": MAIN, "domainId": 1, "text": None, "textId": None}
    export.add("NVTX_EVENTS", **row, jsonText=payload)
    assert analyse(export)["lines"].empty


def test_calls_into_the_operating_system(export, analyse):
    for number, length in enumerate((10, 20)):
        called = export.call(10 * number, 10 * number + 5, MAIN)
        export.kernel(GEMM, 100 * number, 100 * number + length, called)
    for start, end, name in ((0, 50, "poll"), (60, 70, "poll"), (0, 5, "read")):
        export.add("OSRT_API", start=start, end=end, globalTid=MAIN, nameId=export.string(name))
    tables = analyse(export)
    calls = tables["os_calls"].set_index("name")
    assert calls["total_ms"].to_dict() == pytest.approx({"poll": 60e-6, "read": 5e-6})
    assert calls.loc["poll", "max_us"] == pytest.approx(0.050)


def test_timeline_of_a_step_with_and_without_gpu_work(export, analyse):
    export.range("step", 0, 12_000, MAIN)
    export.range("attention", 1_000, 4_000, MAIN)
    export.range("aten::mm, op_id = 4", 1_000, 3_900, MAIN)
    tables = analyse(export)
    table = tables["timeline"]
    assert table[["view", "label", "start_us", "end_us"]].to_numpy().tolist() == [
        ["step", "step", 0, 12],
        ["step", "attention", 1, 4],
        ["attention", "attention", 0, 3],
    ]
    export.launch("void at::native::exp_kernel", 2_000, 2_500, 3_500)
    table = analyse(export)["timeline"]
    work = table[table["lane"] == "GPU 0, stream 7"].set_index("view")
    assert (work.loc["step", "start_us"], work.loc["step", "end_us"]) == (2.5, 3.5)  # 100 of 1200 pixels
    assert (work.loc["attention", "start_us"], work.loc["attention", "end_us"]) == (1.5, 2.5)


def test_timelines_of_short_and_early_steps(export, analyse):
    export.range("step", 50, 50, MAIN)
    assert analyse(export)["timeline"].empty
    export = type(export)(export.layout)
    export.range("step", -9_000, -3_000, MAIN)
    export.range("attention", -8_000, -7_000, MAIN)
    export.range("attention", -6_000, -5_000, AUTOGRAD)
    export.launch(GEMM, -7_500, -7_000, -6_500)
    table = analyse(export)["timeline"]
    assert table.groupby("view")["span_us"].first().to_dict() == {"attention": 1.5, "step": 6}
    assert table["start_us"].min() == 0 and (table["end_us"] <= table["span_us"]).all()


def test_strange_names_reach_every_table_whole(export, analyse, tmp_path):
    names = ["k<a, b<c>>|d", "say \"x\", 'y'", "line\nbreak\ttab", "long" * 500, "back\\slash|`code`*_", "Straße → 核"]
    export.range("a|b <c>", 0, 1000, MAIN)
    for number, name in enumerate(names):
        export.launch(name, 10 * number, 10 * number + 100, 10 * number + 105)
    tables = analyse(export)
    folder = tmp_path / "out"
    write_tables(tables, folder)
    read = pd.read_csv(folder / "kernels.csv")
    assert set(read["full_name"]) == set(names)
    assert read["name"].str.len().max() <= 60 and read[read["phase"] == "all"]["name"].nunique() == len(names)
    text = summary.markdown(tables, "x|y")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    plain = [line.replace("\\\\", "").replace("\\|", "") for line in rows]
    widths = {line.count("|") for line in plain if "long" in line or "Straße" in line or "slash" in line}
    assert len(widths) == 1 and "a\\|b &lt;c&gt;" in text


def test_every_table_has_its_header_also_without_rows(export, analyse, tmp_path):
    model(export)
    export.add("META_DATA_CAPTURE", name="x", value="y")
    for number, tables in enumerate((analyse(export), analyse(type(export)(export.layout)), analysis.empty())):
        write_tables(tables, tmp_path / str(number))
        assert {path.name for path in (tmp_path / str(number)).iterdir()} == {f"{name}.csv" for name in TABLES}
        for name in TABLES:
            text = (tmp_path / str(number) / f"{name}.csv").read_text()
            read = pd.read_csv(io.StringIO(text))
            assert tuple(read.columns) == COLUMNS[name] and len(read) == len(tables[name])
        assert summary.markdown(tables, "title").startswith("# title")
