"""Traces of torch.profiler: a real one of the CPU, and small ones with a GPU's events written by hand."""

import gzip
import json

import pytest
from stepscope.trace import TraceError, analysis, summary

STEPS = 3


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(trace file, its complete events) of a tiny training step on the CPU."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    path = tmp_path_factory.mktemp("kineto") / "trace.json"
    torch.manual_seed(0)
    weight = torch.randn(300, 300, requires_grad=True)  # large: next to no time outside the operators

    def step():
        with record_function("step"):
            with record_function("forward"), record_function("attention"):
                loss = (torch.randn(300, 300) @ weight).exp().sum()
            with record_function("backward"):
                loss.backward()
            with record_function("optimizer"), torch.no_grad():
                weight.sub_(weight.grad, alpha=0.1)

    step()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(STEPS):
            step()
    profiler.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    return path, [event for event in events if event.get("ph") == "X"]


def test_phases_of_a_cpu_trace_agree_with_the_files_own_events(recorded):
    path, events = recorded
    tables = analysis.analyse(analysis.read(path))
    phases = tables["phases"].set_index("phase")
    assert list(phases.index) == ["step", "forward", "backward", "optimizer"]
    for name in phases.index:
        own = [event for event in events if event["cat"] == "user_annotation" and event["name"] == name]
        assert phases.loc[name, "count"] == len(own) == STEPS
        assert phases.loc[name, "host_ms_total"] == pytest.approx(sum(event["dur"] for event in own) / 1e3, rel=1e-6)
    checks = dict(tables["checks"].to_numpy().tolist())
    assert checks["device_is_host"] is True and checks["layers"] == 1 and checks["steps"] == STEPS
    assert checks["operations_not_linked_to_a_launch"] == 0


def test_operators_of_a_cpu_trace_stand_where_kernels_would(recorded):
    path, events = recorded
    tables = analysis.analyse(analysis.read(path))
    kernels = tables["kernels"].set_index(["phase", "full_name"])
    for name, phase in (("aten::mm", "forward"), ("aten::exp", "forward"), ("aten::mm", "backward")):
        ranges = [event for event in events if event["cat"] == "user_annotation" and event["name"] == phase]
        own = [
            event["dur"]
            for event in events
            if event["cat"] == "cpu_op"
            and event["name"] == name
            and any(around["ts"] <= event["ts"] < around["ts"] + around["dur"] for around in ranges)
        ]
        assert kernels.loc[(phase, name), "instances"] == len(own) >= STEPS
        assert kernels.loc[(phase, name), "total_ms"] == pytest.approx(sum(own) / 1e3, rel=1e-6)
    # No operator counts twice: together they take no longer than their thread was there.
    assert tables["busy"]["busy_share_of_wall"].max() <= 1
    assert tables["api_calls"].empty and tables["api_gaps"].empty
    assert tables["attention"].iloc[0]["kernels_per_step"] >= 3


def event(category, name, start, length, tid=1, **args):
    """Times in microseconds."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": length, "args": args}


def test_operators_that_call_others(tmp_path):
    events = [
        event("cpu_op", "aten::to", 0, 10),
        event("cpu_op", "aten::to", 20, 100),
        event("cpu_op", "aten::copy_", 25, 90),
        event("cpu_op", "aten::linear", 200, 100),  # does 80 of 100 itself
        event("cpu_op", "aten::mm", 210, 20),
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    kernels = analysis.analyse(analysis.read(tmp_path / "trace.json"))["kernels"].query("phase == 'all'")
    total = dict(zip(kernels["full_name"], kernels["total_ms"], strict=True))
    assert total == pytest.approx({"aten::to": 0.01, "aten::copy_": 0.09, "aten::linear": 0.1})


def test_an_operator_without_a_namespace_is_no_module(tmp_path):
    events = [
        event("user_annotation", "softmax", 0, 100),
        event("cpu_op", "aten::detach", 10, 20),
        event("cpu_op", "detach", 12, 15),
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    tables = analysis.analyse(analysis.read(tmp_path / "trace.json"), ["softmax"])
    assert tables["ranges"].set_index("range")["operator"].to_dict() == {"aten::detach": True, "detach": True}
    assert "detach" not in set(tables["timeline"]["label"])


def test_the_summary_of_a_cpu_trace_speaks_of_operators(recorded):
    said = summary.markdown(analysis.analyse(analysis.read(recorded[0])), "x")
    assert "## Operators by phase" in said and "share of the phase's time in operators" in said
    assert "GPU" not in said and "ernel" not in said.split("## What the trace holds")[0]


def with_gpu():
    """A forward pass with a copy and a kernel, a backward pass with a kernel that another thread launches."""
    events = [
        event("user_annotation", "ProfilerStep#4", 0, 100),
        event("user_annotation", "forward", 10, 40),
        event("user_annotation", "FFN", 12, 35),
        event("cpu_op", "aten::mm", 15, 20, **{"Sequence number": 5}),
        event("cuda_runtime", "cudaMemcpyAsync", 14, 0.5, correlation=1),
        event("cuda_runtime", "cudaLaunchKernel", 20, 2, correlation=2),
        event("user_annotation", "backward", 50, 40),
        event("cpu_op", "MmBackward0", 55, 10, tid=2, **{"Sequence number": 5}),
        event("cuda_driver", "cuLaunchKernel", 56, 2, tid=2, correlation=3),
        event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 15, 2, tid=7, device=0, stream=7, correlation=1),
        event("kernel", "void gemm<float, 4>(int)", 30, 12.5, tid=7, device=0, stream=7, correlation=2),
        event("kernel", "void gemm<float, 4>(int)", 60, 7.25, tid=7, device=0, stream=7, correlation=3),
        event("ac2g", "ac2g", 60, 0),
        {"ph": "M", "name": "process_name", "args": {"name": "python"}},
    ]
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Made-up GPU"}], "traceEvents": events}


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_with_a_gpu(packed, tmp_path):
    path = tmp_path / ("trace.json.gz" if packed else "trace.json")
    raw = json.dumps(with_gpu()).encode()
    path.write_bytes(gzip.compress(raw) if packed else raw)
    tables = analysis.analyse(analysis.read(path))
    phases = tables["phases"].set_index("phase")
    assert phases["gpu_ms_total"].to_dict() == pytest.approx({"step": 0.02175, "forward": 0.0145, "backward": 0.00725})
    assert phases["kernels_total"].to_dict() == {"step": 2, "forward": 1, "backward": 1}
    assert phases["kernels_by_thread_rule_total"].to_dict() == {"step": 1, "forward": 1, "backward": 0}
    assert tables["modules"].to_dict("records") == [
        {"module": "FFN", "kernels_per_step": 1, "gpu_ms_per_step": 0.00725, "share_of_backward_gpu_time": 1}
        | {"elementwise_per_step": 0, "elementwise_ms_per_step": 0}
    ]
    moved = tables["memory_operations"].query("phase == 'step'").to_dict("records")
    assert [(row["kind"], row["name"], row["instances_per_step"]) for row in moved] == [("copy", "Host-to-Device", 1)]
    names = set(tables["kernels"]["full_name"])
    assert names == {"void gemm<float, 4>(int)"}
    busy = tables["busy"].set_index("phase").loc["step"]
    assert busy["device_name"] == "Made-up GPU"
    assert busy["memory_ms_per_step"] == pytest.approx(0.002) and busy["compute_ms_per_step"] == pytest.approx(0.01975)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"traceEvents": 3}',
        b'{"traceEvents": [3]}',
        b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm"}]}',
        b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "soon"}]}',
        b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "args": {"stream": "x"}}]}',
        b"\xff\xfe\x00",
    ],
)
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_damaged_json_is_one_line(content, name, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    if name.endswith(".gz") and content:
        path.write_bytes(gzip.compress(content))
    with pytest.raises(TraceError) as raised:
        analysis.read(path)
    assert str(path) in str(raised.value) and "\n" not in str(raised.value)


def test_a_cut_off_gzip_is_one_line(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(with_gpu()).encode())[:100])
    with pytest.raises(TraceError, match="damaged"):
        analysis.read(path)
