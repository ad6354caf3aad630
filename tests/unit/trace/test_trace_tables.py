"""The tables of synthetic exports; expected numbers are worked out by hand. Times in
nanoseconds."""

import numpy as np
from nsys_exports import (
    HOST_TO_DEVICE,
    Export,
    analyse,
    attributed,
    by_phase,
    kernels_by_name,
    modules,
    thread,
)
from pytest import approx
from stepscope.trace import kernel_names
from stepscope.trace.device_tables import host_gaps
from stepscope.trace.nesting import covered, union

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


def model(export, extra=0, head=1):
    """Two steps of a model: three blocks and an LM head of so many kernels; `extra` in the first
    block's FFN of the last step."""
    now = 0

    def launch(name, length):
        nonlocal now
        export.launch(name, now, now + 5, now + 5 + length)
        now += 100

    for step in range(2):
        begin = now
        now += 10
        forward = now
        now += 10
        for layer in range(3):
            for module, parts in BLOCK.items():
                start = now
                now += 10
                for part, kernels in parts.items():
                    inner = now
                    now += 10
                    for name, length in kernels:
                        launch(name, length + layer)
                    if part:
                        export.range(part, inner, now)
                    now += 10
                if (module, step, layer) == ("FFN", 1, 0):
                    for _ in range(extra):
                        launch(ADD, 1)
                export.range(module, start, now, registered=True)
        start = now
        for _ in range(head):
            launch(GEMM, 70)
        export.range("LM head", start, now)
        export.range("forward", forward, now)
        export.range("step", begin, now + 10)
        now += 20


def test_instances_are_layers_times_k_plus_r(export):
    model(export)
    kernels = kernels_by_name(analyse(export, layers=3)).loc["forward"]
    assert list(kernels.index) == [GEMM, ADD, EXP]
    gemm = kernels.loc[GEMM]
    # 5 in each of 3 blocks (QKV, scores, output, 2 in FFN) and the LM head: 16 = 3 x 5 + 1.
    assert gemm[["calls", "layers", "per_layer"]].tolist() == [16, 3, 5]
    assert (
        gemm["layer_modules"] == "2 FFN, 1 QKV projection, 1 attention scores, 1 output projection"
    )
    assert gemm["remainder_modules"] == "1 LM head"
    lengths = [length + layer for layer in range(3) for length in (30, 10, 20, 40, 50)] + [70]
    total = sum(lengths) + sum(length + layer for layer in range(3) for length in (2, 6, 4, 5))
    numbers = [sum(lengths), np.median(lengths), np.std(lengths * 2, ddof=1), 10, 70]
    found = gemm[["time", "median", "std", "min", "max"]].astype(float)
    assert (1e9 * found).tolist() == approx(numbers)
    assert gemm["share"] == approx(sum(lengths) / total)
    assert gemm["name"] == kernel_names.describe(GEMM).short


def test_what_is_not_in_every_layer_is_the_remainder(export):
    """Seven calls of a head are no two in each of three layers."""
    model(export, head=7)  # 7 = 3 x 2 + 1 would put two of the head's into each layer
    gemm = kernels_by_name(analyse(export, layers=3)).loc["forward", GEMM]
    assert gemm[["calls", "per_layer", "remainder_modules"]].tolist() == [22, 5, "7 LM head"]
    assert "LM head" not in gemm["layer_modules"]


def test_no_composition_where_steps_differ(export):
    """Of numbers that are means over steps no layer can be told."""
    model(export, extra=2)  # 9 and 11 additions: 20 / 2 would look like 10 in each
    kernels = kernels_by_name(analyse(export, layers=3)).loc["forward"]
    assert np.isnan(kernels.loc[ADD, "layers"])
    assert kernels.loc[EXP, ["calls", "layers", "per_layer"]].tolist() == [3, 3, 1]


def test_attention_and_its_parts(export):
    """Times on the GPU and on the host, of the whole and of its ranges."""
    model(export)
    table = modules(analyse(export))
    assert table.index[table["attention"]].tolist() == ["attention"]
    whole, softmax = table.loc["attention"], table.loc["softmax"]
    parts = table[table["parent"] == "attention"]
    assert parts.index.tolist() == [*BLOCK["attention"]]
    # Of three layers; each kernel is longer by the layer's number: 30, 31, 32 and so on.
    assert parts["gpu_time"].tolist() == approx([93e-9, 42e-9, 36e-9, 63e-9])
    assert whole[["kernels", "calls", "gpu_time"]].tolist() == approx([18, 3, 234e-9])
    # Host: 6 calls of 100 ns and 10 for each of the 9 borders; each part's range is 10 and its
    # calls.
    host = [3 * (600 + 10 + 4 * 20) / 1e9, 150e-9]
    assert whole[["host_time", "host_exclusive"]].tolist() == approx(host)
    assert softmax["host_time"] == approx(3 * 210e-9)
    assert softmax["top_kernel"] == kernel_names.describe(EXP).short
    assert softmax[["top_share", "top_calls"]].tolist() == approx([(6 + 7 + 8) / 36, 3])
    # Of a call of two kernels: 6 + 4, 7 + 5 and 8 + 6 ns in the layers, in each of two steps.
    spread = softmax[["gpu_min", "gpu_max", "gpu_std"]].astype(float) * 1e9
    assert spread.tolist() == approx([10, 14, np.std([10, 12, 14] * 2, ddof=1)])


def test_recomputed_attention_is_none_of_the_forward_pass(export):
    for step in (0, 1000):
        export.range("step", step, step + 1000)
        export.range("forward", step, step + 400)
        export.range("attention", step + 100, step + 200)
        export.launches(step + 150, length=10)
        export.range("attention", step + 500, step + 600, AUTOGRAD)
        export.launches(step + 550, length=30, tid=AUTOGRAD)
    whole = modules(analyse(export)).loc["attention"]
    assert whole[["gpu_time", "kernels"]].tolist() == approx([10e-9, 1])


def test_busy_idle_gaps_and_queue_delay(export):
    # Two streams of one GPU, 30 ns busy together within the step (0 to 100), and 20 ns after it.
    export.range("step", 0, 100)
    export.launch(GEMM, 1, 10, 30)
    export.launch(GEMM, 3, 20, 35, stream=8)
    export.copy(HOST_TO_DEVICE, 60, 65, export.call(5, 7))
    export.launch(ADD, 40, 100, 120)
    table = by_phase(analyse(export), "gaps")
    step = table.loc["step"]
    assert step[["wall", "busy", "idle"]].tolist() == approx([100e-9, 30e-9, 70e-9])
    # Gaps: 35 to 60, 65 to 100. Delays: 10 - 2, 20 - 4, 60 - 7, 100 - 41.
    assert step[["gaps", "gap_median", "gap_max"]].tolist() == approx([2, 30e-9, 35e-9])
    assert step["queue_delay_median"] == approx((16 + 53) / 2e9)
    # The whole capture from the first to the last operation (10 to 120), beside it from the host's
    # start on (0 to 120).
    whole = table.loc["all", ["wall", "busy", "idle", "idle_with_host"]]
    assert whole.tolist() == approx([110e-9, 50e-9, 60e-9, 70e-9])


def test_union_and_cover_agree_with_counting_every_nanosecond():
    """Random intervals, of which many touch, lie in each other or are empty."""
    draw = np.random.default_rng(1)
    for _ in range(50):
        one, two = (
            np.sort(draw.integers(0, 60, (draw.integers(0, 8), 2)), axis=1) for _ in range(2)
        )
        nanoseconds = [{t for start, end in part for t in range(start, end)} for part in (one, two)]
        start, end = union(two[:, 0], two[:, 1])
        assert (end - start).sum() == len(nanoseconds[1])
        before = covered(one[:, 0], one[:, 1], (start, end))
        assert (before[1] - before[0]).sum() == len(nanoseconds[0] & nanoseconds[1])


def test_gaps_between_cuda_calls_are_each_threads_own(export):
    export.range("step", 0, 100)
    export.range("step", 100, 200)
    export.call(10, 20)
    export.call(12, 15, driver=True)  # inside the runtime's
    export.call(40, 50)
    export.call(45, 60, AUTOGRAD)
    export.call(90, 95, AUTOGRAD)
    export.call(110, 130, name="cudaMalloc_v3020")
    export.call(210, 215)
    export.call(230, 235)
    # MAIN 20 to 40 and, in `all`, 50 to 110, 130 to 210 and 215 to 230; AUTOGRAD 60 to 90.
    found = attributed(export)
    assert sorted(host_gaps(found, "step")) == [20, 30]
    assert sorted(host_gaps(found, "all")) == [15, 20, 30, 60, 80]
    calls = modules(analyse(export), "call")
    assert calls["calls"].to_dict() == {"cudaLaunchKernel_v7000": 3.5, "cudaMalloc_v3020": 0.5}
    assert calls.loc["cudaMalloc_v3020", "host_time"] == approx(10e-9)


def test_calls_of_libraries_stand_apart_from_those_of_cuda(export):
    """As `--trace=cublas,cudnn,osrt` records them: they hold the CUDA calls that they make."""
    for start, end in ((0, 40), (50, 80)):
        name = export.string("cublasGemm")
        export.add("CUBLAS_EVENTS", start=start, end=end, globalTid=MAIN, nameId=name)
        export.launches(start + 10)
    export.add("OSRT_API", start=5, end=9, globalTid=MAIN, nameId=export.string("ioctl"))
    tables = analyse(export)
    own, system = (modules(tables, kind)[["calls", "host_time"]] for kind in ("library", "system"))
    assert own.T.to_dict("list") == {"cublasGemm": [2, 70e-9]}
    assert system.T.to_dict("list") == {"ioctl": [1, 4e-9]}
    assert modules(tables, "call")["calls"].tolist() == [2]


def test_ranges_of_a_library_are_its_calls(export):
    """As `--trace=cublas-verbose` records them (Nsight Systems 2025.3): a domain of NVTX for each
    library, named by an event of type 75, and numbered by each process anew."""
    named = {"start": -5, "end": None, "eventType": 75, "globalTid": MAIN}
    export.add("NVTX_EVENTS", text="cuBLAS", textId=None, domainId=3, **named)
    export.range("step", 0, 100)
    for start in (10, 30):
        export.range("cublasSgemm_v2", start, start + 15, domain=3, registered=True)
        export.launches(start + 5)
    export.range("attention", 0, 60, domain=2)
    export.range("another program's", 0, 60, tid=thread(9), domain=3)
    tables = analyse(export)
    calls = modules(tables, "library")
    assert calls[["calls", "host_time"]].to_numpy().tolist() == [[2, 30e-9]]
    assert "cublasSgemm_v2" not in modules(tables).index and "attention" in modules(tables).index


def backward(export, start, function, sequence, length, name="aten::mm", kernel=GEMM):
    """A backward function with one kernel, as torch.autograd.profiler.emit_nvtx names its
    ranges."""
    whole = f"autograd::engine::evaluate_function: {function}, op_id = 90"
    export.range(whole, start, start + 50, AUTOGRAD)
    export.range(f"{function}, seq = {sequence}, op_id = 91", start + 5, start + 45, AUTOGRAD)
    export.range(f"{name}, op_id = 92", start + 10, start + 40, AUTOGRAD)
    export.launches(start + 20, name=kernel, length=length, tid=AUTOGRAD)


def test_a_look_up_before_a_launch_is_no_call_with_a_gap(export):
    for at in (0, 100):
        export.call(at, at + 1, name="cuKernelGetName", driver=True)
        export.launches(at + 2)
    # from 3, where the first launch ends, to 102
    assert host_gaps(attributed(export), "all").tolist() == [99]


def test_backward_kernels_belong_to_the_modules_of_their_sequence_numbers(export):
    export.range("step", 0, 1000)
    export.range("forward", 0, 400)
    for number, (module, start) in enumerate((("attention", 10), ("FFN", 100), ("LM head", 200))):
        export.range(module, start, start + 80)
        linear = f"aten::linear, seq = {number}, op_id = {number}, sizes = [[2, 3]]"
        export.range(linear, start + 10, start + 70)
        export.range(f"aten::mm, seq = {number}, op_id = 7", start + 20, start + 60)
        export.launches(start + 30, name=GEMM, length=5)
    export.range("backward", 400, 900)
    backward(export, 410, "MmBackward0", 2, 7)
    backward(export, 510, "torch::autograd::CppNode<ffn::Multiplied>", 1, 5)
    # Run by the backward function of FFN, with a number of its own thread's: no forward operator of
    # this pass.
    export.range("aten::add, seq = 0, op_id = 8", 530, 540, AUTOGRAD)
    backward(export, 610, "_CrossEntropyBackward", 0, 3)
    accumulate = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 99"
    export.range(accumulate, 700, 800, AUTOGRAD)
    export.launches(710, length=2, tid=AUTOGRAD)
    tables = analyse(export, layers=1)
    own = modules(tables)
    assert own["backward_time"].to_dict() == approx(
        {"LM head": 7e-9, "FFN": 5e-9, "attention": 3e-9, "no module (gradients added up)": 2e-9}
    )
    assert (own["backward_kernels"] == 1).all() and own.loc["attention", "gpu_time"] == approx(5e-9)
    assert modules(tables, "operator").loc["aten::mm", "calls"] == 3  # of the forward pass
    kernels = kernels_by_name(tables)
    assert kernels.loc[("backward", GEMM), "layer_modules"] == "1 FFN, 1 LM head, 1 attention"


def test_the_elementwise_kernels_of_a_modules_backward_pass_are_told_apart(export):
    export.range("step", 0, 2000)
    export.range("forward", 0, 400)
    for number, module in enumerate(("softmax", "FFN")):
        start = 100 * number
        export.range(module, start, start + 90)
        export.range(f"aten::exp, seq = {number}, op_id = {number}", start + 10, start + 80)
    export.range("backward", 400, 1900)
    scale = "void at::native::elementwise_kernel<(int)128, (int)2>(int)"
    backward(export, 410, "ExpBackward0", 0, 7, "aten::mul", scale)
    backward(export, 510, "ExpBackward0", 0, 6, "aten::mul", scale)
    backward(export, 610, "MmBackward0", 1, 9)
    backward(export, 710, "MmBackward0", 1, 4, "aten::mul", scale)
    own = modules(analyse(export))
    assert own["backward_elementwise"].to_dict() == {"softmax": 2, "FFN": 1}
    assert own["backward_elementwise_time"].to_dict() == approx({"softmax": 13e-9, "FFN": 4e-9})
    assert own["backward_time"].to_dict() == approx({"softmax": 13e-9, "FFN": 13e-9})


def test_a_number_used_again_means_the_latest_before_the_backward_function(export):
    """Number 3 stands for an operator in each of two steps."""
    for zero, module, length in ((0, "attention", 4), (1000, "FFN", 5)):
        export.range("step", zero, zero + 1000)
        export.range(module, zero + 10, zero + 100)
        export.range("aten::mm, seq = 3, op_id = 1", zero + 20, zero + 90)
        backward(export, zero + 500, "MmBackward0", 3, length)
    times = modules(analyse(export))["backward_time"]
    assert times.to_dict() == approx({"FFN": 2.5e-9, "attention": 2e-9})


def drawn(tables, view, *lane):
    """Label, start and end of what a view of the timeline has, in one lane or all."""
    table = tables["timeline"]
    own = (table["view"] == view) & table["lane"].isin(lane or table["lane"])
    return table.loc[own, ["label", "start", "end"]].to_numpy().tolist()


def test_timeline_of_a_step_with_and_without_gpu_work(export):
    export.range("step", 0, 12_000)
    export.range("attention", 1_000, 4_000)
    export.range("aten::mm, op_id = 4", 1_000, 3_900)
    tables = analyse(export)
    assert drawn(tables, "step") == [["step", 0, 12e-6], ["attention", 1e-6, 4e-6]]
    assert drawn(tables, "one attention") == [["attention", 0, 3e-6]]
    export.launch(GEMM, 2_000, 2_500, 3_500)  # 100 of 1200 pixels
    tables = analyse(export)
    ((_, *when),) = drawn(tables, "step", "GPU 0, stream 7")
    assert when == [2.5e-6, 3.5e-6]
    ((_, *when),) = drawn(tables, "one attention", "GPU 0, stream 7")
    assert when == [0, 1e-6]  # it begins as if with the range


def test_one_attention_holds_its_own_work_alone_under_its_ranges_names(export):
    export.range("step", 0, 40_000)
    export.launch(GEMM, 500, 8_000, 10_000)  # launched before it, and still running in it
    export.range("attention", 1_000, 4_000)
    export.range("softmax", 1_500, 2_000)
    export.range("mask", 2_500, 3_500)
    export.launch(GEMM, 1_600, 10_000, 12_000)
    export.launch(GEMM, 2_600, 13_000, 14_000)
    export.launch(GEMM, 3_000, 15_000, 16_000)
    export.launch(GEMM, 5_000, 17_000, 19_000)  # after it
    tables = analyse(export)
    names = drawn(tables, "one attention", "their work")
    assert names == [["softmax", 0, 2e-6], ["mask", 3e-6, 6e-6]]
    kernels = np.array([when for _, *when in drawn(tables, "one attention", "GPU 0, stream 7")])
    assert 1e6 * kernels == approx(np.array([[0, 2], [3, 4], [5, 6]]), abs=5e-3)
    assert max(end for *_, end in drawn(tables, "one attention")) == 6e-6


def test_timelines_of_short_and_early_steps(export):
    """A step without a length has no picture; one before time 0 begins at 0."""
    export.range("step", 50, 50)
    assert analyse(export)["timeline"].empty
    export = Export(export.layout)
    export.range("step", -9_000, -3_000)
    export.range("attention", -8_000, -7_000)
    export.range("attention", -6_000, -5_000, AUTOGRAD)
    export.launch(GEMM, -7_500, -7_000, -6_500)
    table = analyse(export)["timeline"]
    assert table.groupby("view")["end"].max().to_dict() == {"one attention": 1e-6, "step": 6e-6}
    assert table["start"].min() == 0
