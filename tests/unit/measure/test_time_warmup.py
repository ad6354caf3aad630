"""The warm-up program: nothing runs before the first step, nothing is discarded, and parts add up to the step."""

import csv
import json
import math

import pytest
import torch
from stepscope.measure import warmup_steps
from stepscope.measure.telemetry import Telemetry

SHAPE = "--d-model 8 --d-ff 16 --num-layers 2 --num-heads 2 --vocab-size 11 --context 6 --batch 2"
PHASES = ("forward", "backward", "optimizer")


def spec(tiny, **changes):
    keys = ("max_steps", "max_seconds")
    return {key: value for key, value in tiny.items() if key not in keys} | {"study": "warmup"} | changes


@pytest.mark.parametrize("warmup", [0, 3])
def test_exactly_so_many_steps_are_measured_after_so_many(warmup, tiny, one_thread):
    outcome, first = warmup_steps.measure(spec(tiny, warmup=warmup, steps=4), Telemetry(None))
    assert first is None and outcome.status == "ok"
    assert [(row["step"], row["phase"], row["warmup"]) for row in outcome.rows] == [
        (step, phase, step < warmup) for step in range(warmup + 4) for phase in PHASES
    ]


def test_running_out_of_memory_keeps_the_steps_before(tiny, one_thread, monkeypatch):
    calls = []

    def fail_third(self):
        calls.append(1)
        if len(calls) == 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(warmup_steps.Workload, "_optimize", fail_third)
    outcome, _ = warmup_steps.measure(spec(tiny, warmup=0, steps=5), Telemetry(None))
    assert (outcome.status, outcome.reason) == ("oom", "CUDA out of memory.")
    assert len(outcome.rows) == 2 * 3


@pytest.mark.parametrize(
    "name, part",
    [
        ("cudaLaunchKernel", "module loading"),
        ("cuLaunchKernelEx", "module loading"),
        ("cudaFuncGetAttributes", "module loading"),
        ("cuModuleLoadData", "module loading"),
        ("cuLibraryLoadData", "module loading"),
        ("Runtime Triggered Module Loading", "module loading"),
        ("Lazy Function Loading", "module loading"),
        ("Activity Buffer Request", "the profiler itself"),
        ("Command Buffer Full", "the profiler itself"),
        ("Buffer Flush", "the profiler itself"),
        ("cudaMalloc", "memory allocation"),
        ("cudaHostAlloc", "memory allocation"),
        ("cudaFree", "memory allocation"),
        ("aten::empty_strided", "memory allocation"),
        ("cudaDeviceSynchronize", "waiting for the device"),
        ("cudaStreamSynchronize", "waiting for the device"),
        ("cudaEventRecord", "other API calls"),
        ("cudaMemcpyAsync", "other API calls"),
        ("cudaStreamIsCapturing", "other API calls"),
        ("aten::mm", "matrix products"),
        ("aten::bmm", "matrix products"),
        ("TorchDynamo compile", "compiled code"),
        ("nvrtcCompileProgram", "compiled code"),
        ("triton_poi_fused_add_0", "compiled code"),
        ("aten::mul", "operators"),
        ("autograd::engine::evaluate_function: MmBackward0", "operators"),
        ("currency", "operators"),
    ],
)
def test_host_events_belong_to_parts(name, part):
    assert warmup_steps.part_of(name) == part


class Recorded:
    """A profile as it would be after its block."""

    def __init__(self, seconds, page_faults, **events):
        self.seconds, self.page_faults = seconds, page_faults
        self.events = {name.replace("__", "::"): value for name, value in events.items()}


def test_parts_add_up_to_the_step_and_the_largest_differences_come_first():
    first = Recorded(10.0, 700, cudaMalloc=(3.0, 6), cudaLaunchKernel=(4.0, 100), aten__mul=(0.5, 9))
    steady = Recorded(1.0, 20, cudaLaunchKernel=(0.25, 100), aten__mul=(0.5, 9))
    found = warmup_steps.compared(first, steady)
    parts = {part.pop("part"): part for part in found["parts"]}
    keys = ("first_seconds", "calls_first", "steady_seconds", "calls_steady")
    assert [parts["memory allocation"][key] for key in keys] == [3, 6, 0, 0]
    assert [parts["module loading"][key] for key in keys] == [4, 100, 0.25, 100]
    assert parts["operators"]["first_seconds"] == parts["operators"]["steady_seconds"] == 0.5
    assert parts["Python and the rest"]["first_seconds"] == 10 - 7.5
    assert parts["Python and the rest"]["steady_seconds"] == 0.25
    assert [event["name"] for event in found["largest"]] == ["cudaLaunchKernel", "cudaMalloc", "aten::mul"]
    assert found["page_faults"] == {"first": 700, "steady": 20}
    assert found["profiled"] == {"first_seconds": 10.0, "steady_seconds": 1.0}


def test_the_programs_record_holds_the_first_steps_parts(run_program, tmp_path):
    words = f"{SHAPE} --device cpu --threads 1 --warmup 2 --steps 3 --first profiled --out {tmp_path}/cell"
    code, out, err = run_program("time_warmup.py", words)
    assert code == 0, err
    record = json.loads((tmp_path / "cell/record.json").read_text())
    rows = list(csv.DictReader((tmp_path / "cell/samples.csv").read_text().splitlines()))
    assert record["spec"]["first"] == "profiled"
    assert [row["step"] for row in rows[::3]] == ["1", "2", "3", "4", "5"]  # step 0 is the profiler's
    first = record["summary"]["first"]
    for which in ("first", "steady"):
        total = math.fsum(part[f"{which}_seconds"] for part in first["parts"])
        assert total == pytest.approx(first["profiled"][f"{which}_seconds"], rel=1e-9)
    assert "module loading" in out
    products = next(part for part in first["parts"] if part["part"] == "matrix products")
    assert products["calls_first"] == products["calls_steady"] > 0
