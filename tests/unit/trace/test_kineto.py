"""Traces of torch.profiler: a real one of the CPU, and small ones with a GPU's events written by
hand."""

import gzip
import json

import pytest
from common import one_line, picked
from kineto_events import analyse_json, event
from nsys_exports import by_phase, kernels_by_name, modules
from pytest import approx
from stepscope.trace import TraceError, analysis
from stepscope.trace.attribution import attribute

STEPS = 3


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(trace file, its complete events) of a tiny training step on the CPU."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    path = tmp_path_factory.mktemp("kineto") / "trace.json"
    torch.manual_seed(0)
    # large: next to no time outside the operators
    weight = torch.randn(300, 300, requires_grad=True)

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
    found = attribute(analysis.read(path))
    tables = analysis.analyse(found.trace)
    phases = by_phase(tables)
    assert list(phases.index) == ["step", "forward", "backward", "optimizer"]
    for name, row in phases.iterrows():
        own = picked(events, "dur", cat="user_annotation", name=name)
        assert row["count"] == len(own) == STEPS
        assert STEPS * row["host_time"] == approx(sum(own) / 1e6)
    assert found.trace.device_is_host and found.steps == STEPS
    assert (found.launch >= 0).all()
    # No operator counts twice: together they take no longer than their thread was there.
    gaps, whole = tables["gaps"], modules(tables).loc["attention"]
    assert (gaps["busy"] <= gaps["wall"]).all() and gaps["host_gap_max"].isna().all()
    assert whole["attention"] and whole["kernels"] >= 3


def test_operators_that_call_others():
    """One that only calls another has no time of its own; one that works itself keeps its whole
    time."""
    events = [
        event("cpu_op", "aten::to", 0, 10),
        event("cpu_op", "aten::to", 20, 100),
        event("cpu_op", "aten::copy_", 25, 90),
        event("cpu_op", "aten::linear", 200, 100),  # does 80 of 100 itself
        event("cpu_op", "aten::mm", 210, 20),
    ]
    total = kernels_by_name(analyse_json(events)).loc["all", "time"].to_dict()
    assert total == approx({"aten::to": 10e-6, "aten::copy_": 90e-6, "aten::linear": 100e-6})


def test_an_operator_without_a_namespace_is_no_module():
    events = [
        event("user_annotation", "softmax", 0, 100),
        event("cpu_op", "aten::detach", 10, 20),
        event("cpu_op", "detach", 12, 15),
    ]
    tables = analyse_json(events, ["softmax"])
    assert set(modules(tables, "operator").index) == {"aten::detach", "detach"}
    assert "module" not in set(tables["modules"]["kind"])
    assert "detach" not in set(tables["timeline"]["label"])


def test_a_sequence_number_joins_a_backward_function_to_its_module():
    number = {"Sequence number": 5}
    events = [
        event("user_annotation", "forward", 10, 40),
        event("user_annotation", "FFN", 12, 35),
        event("cpu_op", "aten::mm", 15, 20, **number),
        event("user_annotation", "backward", 50, 40),
        event("cpu_op", "MmBackward0", 55, 10, tid=2, **number),
        event("cuda_driver", "cuLaunchKernel", 56, 2, tid=2, correlation=3),
        event("kernel", "gemm", 60, 7.25, tid=7, device=0, stream=7, correlation=3),
    ]
    row = modules(analyse_json(events)).loc["FFN"]
    assert row[["backward_kernels", "backward_time"]].tolist() == approx([1, 7.25e-6])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b"\xff\xfe\x00",
        b'{"traceEvents": 3}',
        b'{"traceEvents": [3]}',
        b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm"}]}',
        b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "soon"}]}',
    ],
)
def test_damaged_json_is_one_line(content, tmp_path):
    """As it is, packed, and with a name that says packed."""
    packed = gzip.compress(content)
    for name, raw in (("a.json", content), ("b.json.gz", packed), ("c.json.gz", content)):
        (tmp_path / name).write_bytes(raw)
        assert name in one_line(TraceError, analysis.read, tmp_path / name)
