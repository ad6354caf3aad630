"""Traces of torch.profiler: a real one of the CPU, and small ones with a GPU's events written by
hand."""

import gzip
import json

import pytest
from common import one_line, picked
from kineto_events import event
from pytest import approx
from stepscope.trace import TraceError, analysis, attention
from stepscope.trace.attribution import attribute

STEPS = 3


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """(trace file, its complete events) of a tiny training step on the CPU."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    path = tmp_path_factory.mktemp("kineto") / "trace.json"
    torch.manual_seed(0)
    weight = torch.randn(
        300, 300, requires_grad=True
    )  # large: next to no time outside the operators

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
        own = picked(events, cat="user_annotation", name=name)
        assert phases.loc[name, "count"] == len(own) == STEPS
        assert STEPS * phases.loc[name, "host_time"] == approx(sum(picked(own, "dur")) / 1e6)
    found = attribute(analysis.read(path))
    assert found.trace.device_is_host and attention.layers(found) == 1 and found.steps == STEPS
    assert (found.launch >= 0).all()


def test_operators_of_a_cpu_trace_stand_where_kernels_would(recorded):
    path, events = recorded
    tables = analysis.analyse(analysis.read(path))
    kernels = tables["kernels"].set_index(["phase", "full_name"])
    for name, phase in (
        ("aten::mm", "forward"),
        ("aten::exp", "forward"),
        ("aten::mm", "backward"),
    ):
        ranges = picked(events, cat="user_annotation", name=phase)
        own = [
            event["dur"]
            for event in events
            if event["cat"] == "cpu_op"
            and event["name"] == name
            and any(around["ts"] <= event["ts"] < around["ts"] + around["dur"] for around in ranges)
        ]
        assert STEPS * kernels.loc[(phase, name), "calls"] == len(own) >= STEPS
        assert STEPS * kernels.loc[(phase, name), "time"] == approx(sum(own) / 1e6)
    # No operator counts twice: together they take no longer than their thread was there.
    assert (tables["gaps"]["busy"] <= tables["gaps"]["wall"]).all()
    modules = tables["modules"].set_index("module")
    assert "call" not in set(modules["kind"]) and tables["gaps"]["host_gap_max"].isna().all()
    assert modules.loc["attention", "attention"] and modules.loc["attention", "kernels"] >= 3


def test_operators_that_call_others(analyse_json):
    events = [
        event("cpu_op", "aten::to", 0, 10),
        event("cpu_op", "aten::to", 20, 100),
        event("cpu_op", "aten::copy_", 25, 90),
        event("cpu_op", "aten::linear", 200, 100),  # does 80 of 100 itself
        event("cpu_op", "aten::mm", 210, 20),
    ]
    kernels = analyse_json({"traceEvents": events})["kernels"].query("phase == 'all'")
    total = dict(zip(kernels["full_name"], kernels["time"], strict=True))
    assert total == approx({"aten::to": 10e-6, "aten::copy_": 90e-6, "aten::linear": 100e-6})


def test_an_operator_without_a_namespace_is_no_module(analyse_json):
    events = [
        event("user_annotation", "softmax", 0, 100),
        event("cpu_op", "aten::detach", 10, 20),
        event("cpu_op", "detach", 12, 15),
    ]
    tables = analyse_json({"traceEvents": events}, ["softmax"])
    assert tables["modules"].set_index("module")["kind"].to_dict() == {
        "aten::detach": "operator",
        "detach": "operator",
    }
    assert "detach" not in set(tables["timeline"]["label"])


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
    for name, raw in (
        ("a.json", content),
        ("b.json.gz", gzip.compress(content)),
        ("c.json.gz", content),
    ):
        (tmp_path / name).write_bytes(raw)
        assert name in one_line(TraceError, analysis.read, tmp_path / name)
