"""What is read from a trace, and what is noted where something cannot be had."""

from types import SimpleNamespace

import pytest
import torch
from common import TINY_TIMING, picked
from stepscope.measure import gpu_alone
from stepscope.measure.found import Found
from stepscope.measure.samples import Samples
from stepscope.measure.telemetry import Telemetry


def test_kernels_and_launches_are_counted_in_a_trace():
    events = [
        *({"ph": "X", "cat": "kernel", "name": f"k{index}"} for index in range(5)),
        *(
            {"ph": "X", "cat": "cuda_runtime", "name": name}
            for name in ("cudaLaunchKernel", "cudaLaunchKernelExC_v1")
        ),
        {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx"},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch_v10000"},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync"},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy"},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm"},
        {"ph": "f", "cat": "ac2g", "name": "ac2g"},
    ]
    assert gpu_alone.counts(events, "cuda") == {"kernels": 5, "launches": 4}
    assert gpu_alone.counts(events, "cpu") == {"operators": 1}


def kernels(*spans):
    return [{"ph": "X", "cat": "kernel", "ts": start, "dur": end - start} for start, end in spans]


def test_equal_steps_are_told_apart_by_their_number_of_kernels():
    spans = [(0, 2), (3, 5), (10, 13), (12, 15), (20, 21), (21, 22)]
    events = [*kernels(*reversed(spans)), {"ph": "X", "cat": "cuda_runtime", "ts": 0, "dur": 99}]
    assert gpu_alone.busy(events, 3) == pytest.approx([4e-6, 5e-6, 2e-6])
    # Seven do not divide by three: 4 + 5 + 2 + 1, over three steps.
    assert gpu_alone.busy(events + kernels((30, 31)), 3) == pytest.approx([12e-6 / 3])
    assert gpu_alone.busy([], 3) == []


def test_energy_is_the_counters_between_moves_less_what_the_idle_card_took(monkeypatch):
    """A card of 600 W that idles at 100 W, whose counter moves every 0.1 s and knows what was 0.03
    s before."""
    known = [0.0] * 100  # joules, one a millisecond

    def passes(seconds, watts=100.0):
        known.extend(
            [known[-1] + 1e-3 * watts * count for count in range(1, round(1e3 * seconds) + 1)]
        )

    def counter():
        passes(1e-3)
        return 7.0 + known[len(known) // 100 * 100 - 30]

    monkeypatch.setattr(
        gpu_alone, "time", SimpleNamespace(perf_counter=lambda: 1e-3 * len(known), sleep=passes)
    )
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    found = Found()
    gpu_alone.energy(lambda: passes(0.3, 600.0), "step", found, SimpleNamespace(energy=counter))
    (value,) = found.values
    assert [value[key] for key in ("unit", "mode", "value")] == [
        "J",
        "step",
        pytest.approx(0.3 * 600, rel=0.01),
    ]
    gpu_alone.energy(lambda: passes(0.3), "step", found, Telemetry(None))
    gpu_alone.energy(
        lambda: passes(0.3), "step", found, SimpleNamespace(energy=lambda: passes(1e-3) or 7.0)
    )
    assert len(found.values) == 1


@pytest.mark.parametrize(
    "error, status",
    [
        (torch.OutOfMemoryError("full\nof it"), "oom"),
        (RuntimeError("operation not permitted"), "unsupported"),
    ],
)
def test_what_cannot_be_captured_is_said_and_gradients_are_as_before(error, status, monkeypatch):
    parameter = SimpleNamespace(grad="gradient")
    work = SimpleNamespace(parameters=[parameter], _loss="loss", failed=None)

    def refuse(_work):
        parameter.grad = None
        raise error

    streams = []
    monkeypatch.setattr(gpu_alone, "_captured", refuse)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: "stream")
    monkeypatch.setattr(torch.cuda, "set_stream", streams.append)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    samples = Samples(Telemetry(None))
    gpu_alone.host_free(work, "step", samples, 1.0)
    found = samples.found
    assert picked(found.statuses, "mode", "status", "reason") == [
        ("host-free", status, str(error).splitlines()[0])
    ]
    assert parameter.grad == "gradient" and found.values == [] and streams == ["stream"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
@pytest.mark.parametrize("optimizer", ["own", "torch", "fused"])
def test_a_whole_step_is_replayed(optimizer):
    from stepscope.measure import steps
    from stepscope.measure.workload import workload

    work = workload(TINY_TIMING | {"device": "cuda", "optimizer": optimizer})
    for _ in range(2):
        steps.free(work)()
    samples = Samples(Telemetry(None))
    gpu_alone.host_free(work, "step", samples, 1.0)
    statuses = picked(samples.found.statuses, "mode", "status", "reason")
    assert statuses == [("host-free", "ok", "")]
    assert len(samples.of("step", kind="host-free")) == gpu_alone.REPLAYS
