"""The rungs of the ladder: the same loss and gradients whatever the options, and what is counted."""

import csv
import json
import math

import pytest
import torch
from stepscope.measure import ladder_steps, ladder_workload
from stepscope.measure.telemetry import Telemetry
from stepscope.model.transformer import build_model, random_batch
from torch.nn import functional


def spec(tiny, **changes):
    return tiny | {"study": "ladder", "max_seconds": 60} | changes


def test_loss_and_gradients_are_those_of_plain_pytorch(tiny, one_thread):
    """Against the model by itself, PyTorch's own cross-entropy, and every gradient entry laid end to end."""
    from stepscope.model.shape import ModelShape

    rung = ladder_steps.measure(spec(tiny), Telemetry(None))
    assert [(outcome.mode, outcome.status) for outcome in rung.outcomes] == [("forward-backward", "ok"), ("step", "ok")]
    model = build_model(ModelShape(8, 16, 2, 2, 11), 6, "naive", "cpu", 0)
    tokens, targets = random_batch(11, 2, 6, "cpu", 0)
    loss = functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    loss.backward()
    entries = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    assert rung.about["loss"] == pytest.approx(float(loss.detach()), rel=1e-6)
    assert rung.about["gradient_norm"] == pytest.approx(float(entries.double().norm()), rel=1e-5)
    kept = entries[[index * len(entries) // 2048 for index in range(2048)]] if len(entries) > 2048 else entries
    assert torch.allclose(torch.tensor(rung.about["gradient_sample"]), kept, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [{"checkpoint": 1}, {"checkpoint": 2}, {"attention": "sdpa", "optimizer": "fused"}, {"optimizer": "torch"}],
)
def test_every_way_gives_the_same_loss_and_gradients(options, tiny, one_thread):
    plain, other = (ladder_steps.measure(spec(tiny, **each), Telemetry(None)) for each in ({}, options))
    assert other.about["loss"] == pytest.approx(plain.about["loss"], rel=1e-6)
    assert other.about["gradient_sample"] == pytest.approx(plain.about["gradient_sample"], abs=1e-6)


@pytest.mark.parametrize("every, saved", [(0, 3), (1, 3), (2, 2), (3, 1)])
def test_checkpointing_keeps_one_tensor_a_group_and_runs_each_block_twice(every, saved, tiny, one_thread):
    work = ladder_workload.workload(spec(tiny, num_layers=3, checkpoint=every))
    calls = []
    for name, module in work._model.named_modules():
        if name.endswith("feed_forward"):
            module.register_forward_pre_hook(lambda *_: calls.append(1))
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        work.phases("step")["forward"]()
    assert len(calls) == 3
    if every:
        residual = [x for x in kept if x.shape == (2, 6, 8)]
        assert len(work._model.blocks) == saved
        assert len(residual) < 12  # of the blocks nothing but what enters a group, and the final norm's
    work.phases("step")["backward"]()
    assert len(calls) == (6 if every else 3)


def test_what_a_step_takes_longer_first_is_compiling():
    rows = [{"seconds": 9.0}, {"seconds": 1.0}, {"seconds": 2.0}, {"seconds": 4.0}]
    assert ladder_steps._compiling(rows) == 9.0 - 2.0
    assert ladder_steps._compiling([{"seconds": 1.0}, {"seconds": 2.0}]) == 0.0


def test_samples_lie_at_even_distances():
    tensors = [torch.arange(4.0), torch.arange(4.0, 10.0).reshape(2, 3)]
    assert ladder_steps.sample(tensors, 5) == [0, 2, 4, 6, 8]
    assert ladder_steps.sample(tensors, 100) == list(range(10))


def test_kernels_and_launches_are_counted_in_a_trace():
    events = [
        *({"ph": "X", "cat": "kernel", "name": f"k{index}"} for index in range(5)),
        *({"ph": "X", "cat": "cuda_runtime", "name": name} for name in ("cudaLaunchKernel", "cudaLaunchKernelExC_v1")),
        {"ph": "X", "cat": "cuda_driver", "name": "cuLaunchKernelEx"},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch_v10000"},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync"},
        {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy"},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm"},
        {"ph": "f", "cat": "ac2g", "name": "ac2g"},
    ]
    assert ladder_steps.counts(events, "cuda") == {"kernels": 5, "launches": 4}
    assert ladder_steps.counts(events, "cpu") == {"operators": 1}


def test_a_step_that_runs_out_of_memory_leaves_what_ran_before(tiny, one_thread, monkeypatch):
    def fail(self):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.")

    monkeypatch.setattr(ladder_workload.OptimisedWorkload, "_optimize", fail)
    rung = ladder_steps.measure(spec(tiny), Telemetry(None))
    assert [(outcome.mode, outcome.status) for outcome in rung.outcomes] == [
        ("forward-backward", "ok"),
        ("step", "oom"),
    ]
    assert rung.about["counted"] == "forward-backward" and math.isfinite(rung.about["loss"])

    monkeypatch.setattr(ladder_workload.OptimisedWorkload, "_forward", fail)
    rung = ladder_steps.measure(spec(tiny), Telemetry(None))
    assert [outcome.status for outcome in rung.outcomes] == ["oom", "oom"]
    assert rung.about["loss"] is None


@pytest.mark.parametrize(
    "options, shown",
    [
        ({"compile": "graphs"}, "CUDA graphs need a GPU"),
        ({"attention": "flex"}, "flex trains on a GPU only"),
        ({"compile": "block"}, "torch.compile needs a C++ compiler on a CPU; install g++"),
        ({"attention": "sdpa", "optimizer": "fused", "checkpoint": 1}, None),
    ],
)
def test_what_a_cpu_cannot_do_is_said(options, shown, tiny, monkeypatch):
    monkeypatch.setattr(ladder_workload.shutil, "which", lambda name: None)
    assert ladder_workload.unsupported(spec(tiny, **options)) == shown


def test_the_programs_record_agrees_with_its_samples(run_program, tmp_path):
    shape = "--d-model 8 --d-ff 16 --num-layers 2 --num-heads 2 --vocab-size 11 --context 6 --batch 2"
    quick = "--device cpu --threads 1 --warmup 1 --steps 2 --max-steps 3 --max-seconds 0 --checkpoint 1"
    code, out, err = run_program("time_ladder.py", f"{shape} {quick} --out {tmp_path}/cell")
    assert code == 0, err
    record = json.loads((tmp_path / "cell/record.json").read_text())
    rows = list(csv.DictReader((tmp_path / "cell/samples.csv").read_text().splitlines()))
    assert record["spec"]["checkpoint"] == 1
    kinds = {(row["mode"], row["kind"], row["phase"]) for row in rows if row["warmup"] == "False"}
    assert kinds == {
        ("forward-backward", "free", "forward+backward"),
        ("step", "free", "step"),
        *(("step", "phased", phase) for phase in ("forward", "backward", "optimizer")),
    }
    assert record["summary"]["ladder"]["counted"] == "step"
    assert f"loss: {record['summary']['ladder']['loss']:.6g}" in out
    assert f"operators: {record['summary']['ladder']['operators']:,}" in out


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_replayed_steps_train_as_plain_ones_do(tiny):
    plain, graphed = (spec(tiny, device="cuda", compile=how, d_model=32, num_heads=2) for how in ("none", "graphs"))
    losses = []
    for each in (plain, graphed):
        work = ladder_workload.workload(each)
        if each is graphed:
            ladder_steps._whole(work, work.phases("forward-backward").values())
            work.capture()
        for _ in range(5):
            ladder_steps._whole(work, work.phases("step").values())
        work.phases("step")["forward"]()
        losses.append(float(work.loss.detach()))
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
