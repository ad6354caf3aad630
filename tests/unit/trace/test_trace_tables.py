"""The tables of synthetic exports; expected numbers are worked out by hand. Times in
nanoseconds."""

import statistics

import numpy as np
import pandas as pd
from nsys_exports import HOST_TO_DEVICE, modules, thread
from pytest import approx
from stepscope.recordings.tables import write_tables
from stepscope.trace import attention, kernel_names, summary
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


def model(export, steps=2, layers=3, extra=0, head=1):
    """Steps of a model: blocks and an LM head of so many kernels; `extra` in the first block's FFN
    of the last step."""
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
                        export.range(part, inner, now)
                    now += 10
                if module == "FFN" and step == steps - 1 and layer == 0:
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


def test_instances_are_layers_times_k_plus_r(export, analyse):
    model(export)
    tables = analyse(export)
    kernels = tables["kernels"].set_index(["phase", "full_name"])
    gemm = kernels.loc["forward", GEMM]
    # 5 in each of 3 blocks (QKV, scores, output, 2 in FFN) and the LM head: 16 = 3 x 5 + 1.
    assert gemm[["calls", "layers", "per_layer"]].tolist() == [16, 3, 5]
    assert (
        gemm["layer_modules"] == "2 FFN, 1 QKV projection, 1 attention scores, 1 output projection"
    )
    assert gemm["remainder_modules"] == "1 LM head"
    lengths = [length + layer for layer in range(3) for length in (30, 10, 20, 40, 50)] + [70]
    total = sum(lengths) + sum(length + layer for layer in range(3) for length in (2, 6, 4, 5))
    assert gemm["time"] == approx(sum(lengths) / 1e9)
    assert gemm["share"] == approx(sum(lengths) / total)
    assert gemm["median"] == approx(statistics.median(lengths) / 1e9)
    assert gemm["std"] == approx(statistics.stdev(lengths * 2) / 1e9)
    assert (gemm["min"], gemm["max"]) == approx((10e-9, 70e-9))
    assert gemm["name"] == kernel_names.describe(GEMM).short
    assert list(tables["kernels"][tables["kernels"]["phase"] == "forward"]["full_name"]) == [
        GEMM,
        ADD,
        EXP,
    ]
    assert "16 = 3 × 5 + 1 (1 LM head)" in summary.markdown(tables, "x")


def test_what_is_not_in_every_layer_is_the_remainder(export, analyse):
    model(export, head=7)  # 7 = 3 x 2 + 1 would put two of the head's into each layer
    gemm = analyse(export)["kernels"].set_index(["phase", "full_name"]).loc["forward", GEMM]
    assert gemm[["calls", "per_layer"]].tolist() == [22, 5]
    assert (gemm["layer_modules"].count("LM head"), gemm["remainder_modules"]) == (0, "7 LM head")


def test_no_composition_where_steps_differ(export, analyse):
    model(export, extra=2)  # 9 and 11 additions: 20 / 2 would look like 10 in each
    kernels = analyse(export)["kernels"].set_index(["phase", "full_name"])
    assert np.isnan(kernels.loc[("forward", ADD), "layers"])
    assert kernels.loc[("forward", EXP), ["calls", "layers", "per_layer"]].tolist() == [3, 3, 1]


def test_attention_and_its_parts(export, analyse):
    model(export)
    table = modules(analyse(export))
    parts = table[table["parent"] == "attention"]
    # Of three layers; each kernel is longer by the layer's number: 30, 31, 32 and so on.
    gpu = {
        "QKV projection": 93e-9,
        "attention scores": 42e-9,
        "softmax": 36e-9,
        "output projection": 63e-9,
    }
    assert parts["gpu_time"].to_dict() == approx(gpu) and list(parts.index) == list(gpu)
    assert parts["matmul_time"].to_dict() == approx(
        {**gpu, "attention scores": 33e-9, "softmax": 0}
    )
    assert table.loc["attention", ["kernels", "calls", "attention"]].tolist() == [18, 3, True]
    assert table["attention"].sum() == 1 and table.loc["attention", "gpu_time"] == approx(234e-9)
    # Host: 6 calls of 100 ns and 10 for each of the 9 borders; each part's range is 10 and its
    # calls.
    assert table.loc["attention", "host_time"] == approx(3 * (600 + 10 + 4 * 20) / 1e9)
    assert table.loc["attention", "host_exclusive"] == approx(150e-9)
    assert table.loc["softmax", "host_time"] == approx(3 * 210e-9)
    assert table.loc["softmax", "top_kernel"] == kernel_names.describe(EXP).short
    assert table.loc["softmax", "top_share"] == approx((6 + 7 + 8) / 36)
    assert table.loc["softmax", "top_calls"] == 3
    # Of a call of two kernels: 6 + 4, 7 + 5 and 8 + 6 ns in the layers, in each of two steps.
    spread = table.loc["softmax", ["gpu_min", "gpu_max", "gpu_std"]].astype(float) * 1e9
    assert spread.tolist() == approx([10, 14, np.std([10, 12, 14] * 2, ddof=1)])


def test_recomputed_attention_is_none_of_the_forward_pass(export, analyse, attributed):
    for step in (0, 1000):
        export.range("step", step, step + 1000)
        export.range("forward", step, step + 400)
        export.range("attention", step + 100, step + 200)
        export.launch(GEMM, step + 150, step + 160, step + 170)
        export.range("attention", step + 500, step + 600, AUTOGRAD)
        export.launch(GEMM, step + 550, step + 560, step + 590, AUTOGRAD)
    assert attention.layers(attributed(export)) == 1
    whole = modules(analyse(export)).loc["attention"]
    assert whole["gpu_time"] == approx(10e-9) and whole["kernels"] == 1


def test_busy_idle_gaps_and_queue_delay(export, analyse):
    # Two streams of one GPU, 30 ns busy together within the step (0 to 100), and 20 ns after it.
    export.range("step", 0, 100)
    export.launch(GEMM, 1, 10, 30)
    export.launch(GEMM, 3, 20, 35, stream=8)
    export.copy(HOST_TO_DEVICE, 60, 65, export.call(5, 7))
    export.launch(ADD, 40, 100, 120)
    table = analyse(export)["gaps"].set_index("phase")
    step = table.loc["step"]
    assert step[["wall", "busy", "idle"]].tolist() == approx([100e-9, 30e-9, 70e-9])
    # Gaps: 35 to 60, 65 to 100. Delays: 10 - 2, 20 - 4, 60 - 7, 100 - 41.
    assert step[["gaps", "gap_median", "gap_max"]].tolist() == approx([2, 30e-9, 35e-9])
    assert step["queue_delay_median"] == approx(statistics.median([8, 16, 53, 59]) / 1e9)
    # The whole capture from the first to the last operation (10 to 120), beside it from the host's
    # start on (0 to 120).
    whole = table.loc["all", ["wall", "busy", "idle", "idle_with_host"]]
    assert whole.tolist() == approx([110e-9, 50e-9, 60e-9, 70e-9])


def test_union_and_cover_agree_with_counting_every_nanosecond():
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


def test_gaps_between_cuda_calls_are_each_threads_own(export, analyse, attributed):
    export.range("step", 0, 100)
    export.range("step", 100, 200)
    for start, end, tid in (
        (10, 20, MAIN),
        (12, 15, MAIN),
        (40, 50, MAIN),
        (45, 60, AUTOGRAD),
        (90, 95, AUTOGRAD),
    ):
        export.call(start, end, tid, driver=start == 12)  # a driver's call inside the runtime's
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


def test_calls_of_libraries_stand_apart_from_those_of_cuda(export, analyse):
    """As `--trace=cublas,cudnn,osrt` records them: they hold the CUDA calls that they make."""
    for start, end in ((0, 40), (50, 80)):
        row = {"start": start, "end": end, "globalTid": MAIN, "nameId": export.string("cublasGemm")}
        export.add("CUBLAS_EVENTS", **row)
        export.launch(GEMM, start + 10, start + 20, start + 30)
    export.add("OSRT_API", start=5, end=9, globalTid=MAIN, nameId=export.string("ioctl"))
    tables = analyse(export)
    for kind, name, calls, time in (
        ("library", "cublasGemm", 2, 70e-9),
        ("system", "ioctl", 1, 4e-9),
    ):
        assert modules(tables, kind).loc[name, ["calls", "host_time"]].tolist() == [calls, time]
    assert modules(tables, "call")["calls"].tolist() == [2]


def test_ranges_of_a_library_are_its_calls(export, analyse):
    """As `--trace=cublas-verbose` records them (Nsight Systems 2025.3): a domain of NVTX for each
    library, named by an event of type 75, and numbered by each process anew."""
    named = {"start": -5, "end": None, "eventType": 75, "globalTid": MAIN}
    export.add("NVTX_EVENTS", text="cuBLAS", textId=None, domainId=3, **named)
    export.range("step", 0, 100)
    for start in (10, 30):
        export.range("cublasSgemm_v2", start, start + 15, domain=3, registered=True)
        export.launch(GEMM, start + 5, start + 20, start + 25)
    export.range("attention", 0, 60, domain=2)
    export.range("another program's", 0, 60, tid=thread(9), domain=3)
    tables = analyse(export)
    calls = modules(tables, "library")
    assert calls[["calls", "host_time"]].to_numpy().tolist() == [[2, 30e-9]]
    assert "cublasSgemm_v2" not in modules(tables).index and "attention" in modules(tables).index


def backward(export, tid, start, function, sequence, length, name="aten::mm", kernel=GEMM):
    """A backward function with one kernel, as torch.autograd.profiler.emit_nvtx names its
    ranges."""
    export.range(
        f"autograd::engine::evaluate_function: {function}, op_id = 90", start, start + 50, tid
    )
    export.range(f"{function}, seq = {sequence}, op_id = 91", start + 5, start + 45, tid)
    export.range(f"{name}, op_id = 92", start + 10, start + 40, tid)
    export.launch(kernel, start + 20, start + 22, start + 22 + length, tid)


def test_a_look_up_before_a_launch_is_no_call_with_a_gap(export, attributed):
    for at in (0, 100):
        export.call(at, at + 1, name="cuKernelGetName", driver=True)
        export.launch(ADD, at + 2, at + 10, at + 12)
    assert host_gaps(attributed(export), "all").tolist() == [
        99
    ]  # from 3, where the first launch ends, to 102


def test_backward_kernels_belong_to_the_modules_of_their_sequence_numbers(export, analyse):
    export.range("step", 0, 1000)
    export.range("forward", 0, 400)
    for number, (module, start) in enumerate((("attention", 10), ("FFN", 100), ("LM head", 200))):
        export.range(module, start, start + 80)
        export.range(
            f"aten::linear, seq = {number}, op_id = {number}, sizes = [[2, 3]]",
            start + 10,
            start + 70,
        )
        export.range(f"aten::mm, seq = {number}, op_id = 7", start + 20, start + 60)
        export.launch(GEMM, start + 30, start + 31, start + 36)
    export.range("backward", 400, 900)
    backward(export, AUTOGRAD, 410, "MmBackward0", 2, 7)
    backward(export, AUTOGRAD, 510, "torch::autograd::CppNode<ffn::Multiplied>", 1, 5)
    # Run by the backward function of FFN, with a number of its own thread's: no forward operator of
    # this pass.
    export.range("aten::add, seq = 0, op_id = 8", 530, 540, AUTOGRAD)
    backward(export, AUTOGRAD, 610, "_CrossEntropyBackward", 0, 3)
    export.range(
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 99",
        700,
        800,
        AUTOGRAD,
    )
    export.launch(ADD, 710, 711, 713, AUTOGRAD)
    tables = analyse(export)
    own = modules(tables)
    assert own["backward_time"].to_dict() == approx(
        {"LM head": 7e-9, "FFN": 5e-9, "attention": 3e-9, "no module (gradients added up)": 2e-9}
    )
    assert (own["backward_kernels"] == 1).all() and own.loc["attention", "gpu_time"] == approx(5e-9)
    assert modules(tables, "operator").loc["aten::mm", "calls"] == 3  # of the forward pass
    kernels = tables["kernels"].set_index(["phase", "full_name"])
    assert kernels.loc[("backward", GEMM), "layer_modules"] == "1 FFN, 1 LM head, 1 attention"


def test_the_elementwise_kernels_of_a_modules_backward_pass_are_told_apart(export, analyse):
    export.range("step", 0, 2000)
    export.range("forward", 0, 400)
    for number, module in enumerate(("softmax", "FFN")):
        export.range(module, 100 * number, 100 * number + 90)
        export.range(
            f"aten::exp, seq = {number}, op_id = {number}",
            100 * number + 10,
            100 * number + 80,
        )
    export.range("backward", 400, 1900)
    scale = "void at::native::elementwise_kernel<(int)128, (int)2>(int)"
    backward(export, AUTOGRAD, 410, "ExpBackward0", 0, 7, "aten::mul", scale)
    backward(export, AUTOGRAD, 510, "ExpBackward0", 0, 6, "aten::mul", scale)
    backward(export, AUTOGRAD, 610, "MmBackward0", 1, 9)
    backward(export, AUTOGRAD, 710, "MmBackward0", 1, 4, "aten::mul", scale)
    own = modules(analyse(export))
    assert own["backward_elementwise"].to_dict() == {"softmax": 2, "FFN": 1}
    assert own["backward_elementwise_time"].to_dict() == approx({"softmax": 13e-9, "FFN": 4e-9})
    assert own["backward_time"].to_dict() == approx({"softmax": 13e-9, "FFN": 13e-9})


def test_a_number_used_again_means_the_latest_before_the_backward_function(export, analyse):
    for zero, module in ((0, "attention"), (1000, "FFN")):
        export.range("step", zero, zero + 1000)
        export.range(module, zero + 10, zero + 100)
        export.range("aten::mm, seq = 3, op_id = 1", zero + 20, zero + 90)
        backward(export, AUTOGRAD, zero + 500, "MmBackward0", 3, 5 if zero else 4)
    assert modules(analyse(export))["backward_time"].to_dict() == approx(
        {"FFN": 2.5e-9, "attention": 2e-9}
    )


def test_timeline_of_a_step_with_and_without_gpu_work(export, analyse):
    export.range("step", 0, 12_000)
    export.range("attention", 1_000, 4_000)
    export.range("aten::mm, op_id = 4", 1_000, 3_900)
    tables = analyse(export)
    table = tables["timeline"]
    assert table[["view", "label", "start", "end"]].to_numpy().tolist() == [
        ["step", "step", 0, 12e-6],
        ["step", "attention", 1e-6, 4e-6],
        ["one attention", "attention", 0, 3e-6],
    ]
    export.launch("void at::native::exp_kernel", 2_000, 2_500, 3_500)
    table = analyse(export)["timeline"]
    work = table[table["lane"] == "GPU 0, stream 7"].set_index("view")
    assert (work.loc["step", "start"], work.loc["step", "end"]) == (
        2.5e-6,
        3.5e-6,
    )  # 100 of 1200 pixels
    one = work.loc["one attention"]
    assert (one["start"], one["end"]) == (0, 1e-6)  # it begins as if with the range


def test_one_attention_holds_its_own_work_alone_under_its_ranges_names(export, analyse):
    export.range("step", 0, 40_000)
    export.launch(GEMM, 500, 8_000, 10_000)  # launched before it, and still running in it
    export.range("attention", 1_000, 4_000)
    for name, start, end in (("softmax", 1_500, 2_000), ("mask", 2_500, 3_500)):
        export.range(name, start, end)
    export.launch(GEMM, 1_600, 10_000, 12_000)
    export.launch(GEMM, 2_600, 13_000, 14_000)
    export.launch(GEMM, 3_000, 15_000, 16_000)
    export.launch(GEMM, 5_000, 17_000, 19_000)  # after it
    table = analyse(export)["timeline"]
    table = table[table["view"] == "one attention"]
    names = table[table["lane"] == "their work"]
    assert names[["label", "start", "end"]].to_numpy().tolist() == [
        ["softmax", 0, 2e-6],
        ["mask", 3e-6, 6e-6],
    ]
    kernels = table[table["lane"] == "GPU 0, stream 7"]
    assert kernels["start"].to_numpy() == approx([0, 3e-6, 5e-6], abs=5e-9)
    assert kernels["end"].to_numpy() == approx([2e-6, 4e-6, 6e-6], abs=5e-9)
    assert table["end"].max() == 6e-6


def test_timelines_of_short_and_early_steps(export, analyse):
    export.range("step", 50, 50)
    assert analyse(export)["timeline"].empty
    export = type(export)(export.layout)
    export.range("step", -9_000, -3_000)
    export.range("attention", -8_000, -7_000)
    export.range("attention", -6_000, -5_000, AUTOGRAD)
    export.launch(GEMM, -7_500, -7_000, -6_500)
    table = analyse(export)["timeline"]
    assert table.groupby("view")["end"].max().to_dict() == {"one attention": 1e-6, "step": 6e-6}
    assert table["start"].min() == 0


def test_strange_names_reach_every_table_whole(export, analyse, tmp_path):
    names = [
        "k<a, b<c>>|d",
        "say \"x\", 'y'",
        "line\nbreak\ttab",
        "long" * 500,
        "back\\slash|`code`*_",
        "Straße → 核",
    ]
    export.range("a|b <c>", 0, 1000)
    for number, name in enumerate(names):
        export.launch(name, 10 * number, 10 * number + 100, 10 * number + 105)
    tables = analyse(export)
    folder = tmp_path / "out"
    write_tables(tables, folder)
    read = pd.read_csv(folder / "kernels.csv")
    assert set(read["full_name"]) == set(names)
    shown = read[read["phase"] == "all"]["name"]
    assert shown.str.len().max() <= 60 and shown.nunique() == len(names)
