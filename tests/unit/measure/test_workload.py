"""The training step in all the ways in which it runs: the same numbers, and what a machine cannot
do."""

import pytest
import torch
from common import TINY_TIMING
from pytest import approx
from stepscope.measure import steps, workload
from stepscope.measure.workload import Workload
from stepscope.model.chosen import load
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model, random_batch
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("one_thread")


def test_loss_and_gradients_are_those_of_plain_pytorch():
    """Against the model by itself, PyTorch's own cross-entropy, and every gradient entry laid end
    to end."""
    found = steps.computed(Workload(TINY_TIMING))
    model = build_model(ModelShape(8, 16, 2, 2, 11), 6, "naive", "cpu", 0)
    tokens, targets = random_batch(11, 2, 6, "cpu", 0)
    loss = functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    loss.backward()
    entries = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    assert found["loss"] == approx(float(loss.detach()), rel=1e-6)
    assert found["gradient_norm"] == approx(float(entries.double().norm()), rel=1e-5)
    assert torch.allclose(torch.tensor(found["gradient_sample"]), entries, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_norm_of_gradients_of_any_type_is_that_in_float64(dtype):
    gradients = [torch.linspace(-1, 2, 40, dtype=dtype), torch.full((3, 3), 0.3, dtype=dtype)]
    squares = sum(float((each.double() ** 2).sum()) for each in gradients)
    assert steps.check_of(0.0, gradients)["gradient_norm"] == approx(squares**0.5, rel=1e-6)


def test_the_norm_of_a_large_gradient_is_not_rounded_away():
    """A sum in fp32 over so many squares ends some 0.1 % off on a processor."""
    made = torch.Generator().manual_seed(0)
    gradient = torch.randn(2**25, generator=made)
    exact = float(gradient.numpy().astype("float64") @ gradient.numpy().astype("float64")) ** 0.5
    assert steps.check_of(0.0, [gradient])["gradient_norm"] == approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    "options",
    [
        {"checkpoint": 1},
        {"checkpoint": 2},
        {"attention": "sdpa", "optimizer": "fused"},
        {"optimizer": "torch"},
    ],
)
def test_every_way_gives_the_same_loss_and_gradients(options):
    plain, other = (steps.computed(Workload(TINY_TIMING | each)) for each in ({}, options))
    assert other["loss"] == approx(plain["loss"], rel=1e-6)
    assert other["gradient_sample"] == approx(plain["gradient_sample"], abs=1e-6)


@pytest.mark.parametrize("every, groups", {0: 3, 1: 3, 2: 2, 3: 1}.items())
def test_checkpointing_keeps_one_tensor_a_group_and_runs_each_block_twice(every, groups):
    work = Workload(TINY_TIMING | {"num_layers": 3, "checkpoint": every})
    calls, kept = [], []
    for name, module in work.model.module.named_modules():
        if name.endswith("feed_forward"):
            module.register_forward_pre_hook(lambda *_: calls.append(1))
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        work.phases("step")["forward"]()
    assert len(calls) == 3
    if every:
        assert len(work.model.blocks) == groups
        assert (
            len([x for x in kept if x.shape == (2, 6, 8)]) < 12
        )  # what enters a group, and the final norm's
    work.phases("step")["backward"]()
    assert len(calls) == (6 if every else 3)


def test_the_model_is_the_specs():
    sdpa, naive = (
        Workload(TINY_TIMING | {"attention": "sdpa", "optimizer": "torch"}),
        Workload(TINY_TIMING),
    )
    assert isinstance(sdpa.optimizer, torch.optim.AdamW)
    assert sdpa.model.blocks[0].attention.attend is load("attention", "sdpa").attention
    assert naive.model.blocks[0].attention.attend is load("attention", "naive").attention


@pytest.mark.parametrize("name, autocast", [("fp32", False), ("bf16", True)])
def test_inference_keeps_no_graph_and_16_bits_run_under_autocast(name, autocast):
    work, seen = Workload(TINY_TIMING | {"precision": name}), []
    work.model.module.register_forward_pre_hook(
        lambda *_: seen.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))
    )
    work.phases("inference")["inference"]()
    work.phases("forward")["forward"]()
    assert seen == [(False, autocast), (True, autocast)]


def test_a_free_step_starts_without_gradients_and_changes_the_weights():
    work = Workload(TINY_TIMING)
    weight, before = work.parameters[0], work.parameters[0].detach().clone()
    weight.grad = torch.full_like(weight, 1e9)
    steps.free(work)()
    change = (weight.detach() - before).abs().max()
    assert 0 < change < 2e-3  # AdamW's first step is as large as its rate, 1e-3
    assert weight.grad.abs().max() < 1e3


def test_without_an_optimizers_state_a_step_is_the_first_again():
    work = Workload(TINY_TIMING)
    steps.free(work)()
    assert work.optimizer._steps
    work.renew_optimizer()
    assert not work.optimizer._steps


def test_samples_lie_at_even_distances():
    tensors = [torch.arange(4.0), torch.arange(4.0, 10.0).reshape(2, 3)]
    assert steps.sample(tensors, 5) == [0, 2, 4, 6, 8]
    assert steps.sample(tensors, 100) == list(range(10))


@pytest.mark.parametrize(
    "shown, options",
    {
        "CUDA graphs need a GPU": {"compile": "graphs"},
        "flex trains on a GPU only": {"attention": "flex"},
        "torch.compile needs a C++ compiler on a CPU; install g++": {"compile": "block"},
        "TF32 is a format of NVIDIA's tensor cores; a CPU has none": {"precision": "tf32"},
        None: {"attention": "sdpa", "optimizer": "fused", "checkpoint": 1},
    }.items(),
)
def test_what_a_cpu_cannot_do_is_said(options, shown, monkeypatch):
    monkeypatch.setattr(workload.shutil, "which", lambda name: None)
    assert workload.unsupported(TINY_TIMING | options) == shown


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA graphs need a GPU")
def test_replayed_steps_train_as_plain_ones_do():
    losses = []
    for how in ("none", "graphs"):
        work = workload.workload(TINY_TIMING | {"device": "cuda", "compile": how, "d_model": 32})
        steps.free(work, "forward-backward")()
        work.capture()
        for _ in range(5):
            steps.free(work)()
        work.phases("step")["forward"]()
        losses.append(float(work.loss.detach()))
    assert losses[1] == approx(losses[0], rel=1e-4)
