"""Cells of models of one's own: what is measured of them, and how a bad one ends."""

import math

import pytest
import torch
from common import QUICK, picked
from stepscope.measure import ladder, memory_steps, timing
from stepscope.measure.memory_observed import Parts
from stepscope.measure.models.own import Model
from stepscope.measure.telemetry import Telemetry

SOURCE = """
from torch import nn


class Net(nn.Module):
    def __init__(self, width, dropout=0.0, freeze=False):
        super().__init__()
        self.embedding = nn.Embedding(9, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.dropout, self.head = nn.Dropout(dropout), nn.Linear(width, 9, bias=False)
        self.embedding.requires_grad_(not freeze)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(self.dropout(x))


def build(context, width=4, **keys):
    return Net(width, **keys)


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError


def speechless(context):
    raise Speechless
"""
LADDER = {"study": "ladder", "variants": [{"name": "fp32"}]}
PARAMETERS = 9 * 4 + 3 * (4 * 4 + 4) + 4 * 9
FLAGS = (
    "--device cpu --threads 1 --context 6 --batch 2 --warmup 1 --steps 2 --processes 1"
    " --max-seconds 0"
)


@pytest.fixture
def model(tmp_path, one_thread):
    """The text of a file of models, before the name of its function."""
    path = tmp_path / "net.py"
    path.write_text(SOURCE)
    return f"{path}:"


@pytest.fixture
def spec(model):
    """Spec of a cell of the model, of any study."""
    return QUICK | {"study": "timing", "model": f"{model}build", "precision": "fp32"}


def test_the_loss_and_the_gradients_of_a_rung_are_those_of_plain_pytorch(spec):
    found = ladder.measure(spec | LADDER, Telemetry(None), 1)
    assert picked(found.statuses, "status") == ["ok"]
    made = Model(spec)
    tokens, targets = (made._batch[name] for name in ("tokens", "targets"))
    x = made.module.embedding.weight[tokens]
    for layer in made.module.layers:
        x = torch.clamp(x @ layer.weight.T + layer.bias, min=0)
    logits = x @ made.module.head.weight.T
    loss = (logits.logsumexp(-1) - logits.gather(-1, targets[..., None])[..., 0]).mean()
    loss.backward()
    squares = sum(float((each.grad.double() ** 2).sum()) for each in made.module.parameters())
    assert found.checks["fp32"]["loss"] == pytest.approx(loss.item(), rel=1e-6)
    assert found.checks["fp32"]["gradient_norm"] == pytest.approx(math.sqrt(squares), rel=1e-5)


def test_a_loss_that_differs_from_pass_to_pass_is_not_taken(spec):
    found = ladder.measure(spec | LADDER | {"model_keys": '{"dropout":0.5}'}, Telemetry(None), 1)
    assert picked(found.statuses, "status") == ["ok"]
    assert found.checks == {}
    assert picked(found.values, "quantity") == ["operators"]


REFUSED = {"attention": "sdpa"}  # the model has no attention at all


def test_what_the_model_refuses_is_unsupported_in_every_study(spec):
    refused = {"variants": [LADDER["variants"][0] | REFUSED]}
    memory = memory_steps.measure(spec | REFUSED | {"study": "memory"}, Telemetry(None))
    found = [
        *timing.measure(spec | REFUSED, Telemetry(None), 1).statuses,
        *ladder.measure(spec | LADDER | refused, Telemetry(None), 1).statuses,
        *memory.found.statuses,
    ]
    assert len(found) == 4 + 1 + 1
    assert set(picked(found, "status")) == {"unsupported"}
    (reason,) = set(picked(found, "reason"))
    assert (
        reason.startswith("the model neither calls torch's scaled_dot_product_attention")
        and "\n" not in reason
    )
    assert memory.snapshot == {}


def test_a_model_without_that_attention_goes_without_it_up_the_ladder(spec):
    rungs = [
        {"name": "fp32"},
        {"name": "sdpa", "after": "fp32", **REFUSED},
        {"name": "fused", "after": "sdpa", **REFUSED, "optimizer": "fused"},
    ]
    found = ladder.measure(spec | {"study": "ladder", "variants": rungs}, Telemetry(None), 1)
    of = {one["variant"]: (one["status"], one["reason"]) for one in found.statuses}
    assert of["fp32"] == ("ok", "")
    assert of["sdpa"][0] == "unsupported"
    assert of["fused"] == ("ok", "without the attention sdpa, which it cannot have")


def test_memory_is_that_of_each_tensor_and_a_frozen_one_has_neither_gradient_nor_moments(spec):
    spec |= {"study": "memory", "model_keys": '{"freeze":true}'}
    known = memory_steps.measure(spec, Telemetry(None)).known["tensors"]
    held = dict.fromkeys(("parameters", "optimizer state"), 0)
    for each in known:
        if each["category"] in held:
            held[each["category"]] += each["bytes"]
    gradients = dict(picked(known, "name", "bytes", category="gradients"))
    trained = PARAMETERS - 9 * 4
    assert held == {"parameters": 4 * PARAMETERS, "optimizer state": 2 * 4 * trained}
    assert sum(gradients.values()) == 4 * trained
    assert {"blocks.0.weight", "blocks.2.bias", "head.weight"} <= set(gradients)


def test_parts_of_blocks_are_known_by_the_blocks_number():
    seen = []
    parts = Parts([torch.nn.Identity()], seen.append)
    with parts.open("block"), parts.open("attention"):
        pass
    assert seen == ["attention", ""]


def test_a_bad_model_is_one_line_and_a_failure(model, run_program, tmp_path):
    """Even one whose error cannot be told."""
    words = f"--model {model}speechless {FLAGS} --out {tmp_path}/cell"
    code, _, err = run_program("time_step.py", words)
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith(f"error: {model}speechless: speechless() fails: line ")
    assert not (tmp_path / "cell/record.json").exists()


ENDLESS = """
import resource
from pathlib import Path


def endless(context):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2**28
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    kept = []
    while True:
        kept.append(bytearray(2**24))
"""


def test_memory_without_end_is_out_of_memory(measured_cell, tmp_path):
    path = tmp_path / "hostile.py"
    path.write_text(ENDLESS)
    cell = measured_cell("time_step.py", f"--model {path}:endless {FLAGS}")
    assert set(picked(cell.record["summary"]["statuses"], "status")) == {"oom"}


def test_the_record_says_what_was_built(model, measured_cell):
    words = f'--model {model}build --model-keys {{"width":4}} {FLAGS} --mode forward'
    cell = measured_cell("time_step.py", words)
    assert f"{PARAMETERS} parameters\n" in cell.out
    record = cell.record
    assert (record["spec"]["model"], record["spec"]["model_keys"]) == (
        f"{model}build",
        '{"width":4}',
    )
    assert "d_model" not in record["spec"]
    about = record["summary"]["model"]
    assert (about["parameters"], about["blocks"]["count"], about["vocab_size"]) == (
        PARAMETERS,
        3,
        9,
    )


DOUBLE = """
from torch import nn

def build(context):
    return nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50)).double()
"""


def test_autocast_is_no_rung_of_a_model_in_float64(spec, tmp_path):
    (tmp_path / "double.py").write_text(DOUBLE)
    rungs = [{"name": "fp32"}, {"name": "bf16", "precision": "bf16", "after": "fp32"}]
    own = {"study": "ladder", "model": f"{tmp_path}/double.py:build", "variants": rungs}
    found = ladder.measure(spec | own, Telemetry(None), 1)
    of = {one["variant"]: (one["status"], one["reason"]) for one in found.statuses}
    assert of["fp32"] == ("ok", "")
    assert of["bf16"][0] == "unsupported" and "float64" in of["bf16"][1]
