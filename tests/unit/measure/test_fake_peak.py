"""Peaks of steps in shapes alone: against the closed form, sums by hand, and recorded peaks."""

from argparse import Namespace

import pytest
from common import one_line, picked
from pytest import approx
from stepscope.formulas import fits
from stepscope.formulas.footprint import Setup
from stepscope.formulas.footprint_peak import peak
from stepscope.measure import fake_peak
from stepscope.model.own import stepping
from stepscope.model.shape import ModelShape

SPEC = {
    "d_model": 64,
    "d_ff": 128,
    "num_layers": 6,
    "num_heads": 4,
    "vocab_size": 200,
    "context": 128,
    "batch": 2,
    "seed": 0,
    "device": "cpu",
}
OWN = {
    "model": "models/gpt.py:build",
    "model_keys": '{"layers":4}',
    "batch": 4,
    "context": 64,
    "precision": "fp32",
    "seed": 0,
    "device": "cpu",
}
# An hf:llama of tests of an H200 (report/example/llama), bytes with 64 MiB of cuBLAS.
LLAMA = (
    '{"hidden_size":2048,"intermediate_size":8192,"num_attention_heads":32,'
    '"num_hidden_layers":16,"num_key_value_heads":8,"vocab_size":32000}'
)
LIBRARIES = 64 * 2**20

STEP = """
import torch
from stepscope import Step, phase


def build(context, batch, device, seed, width=200):
    layer = torch.nn.Linear(300, width, bias=False, device=device)
    optimizer = torch.optim.SGD(layer.parameters())
    x = torch.ones(batch * context, 300, device=device)

    def run():
        with phase("forward"):
            loss = layer(x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return Step(run, module=layer, optimizer=optimizer)


def fails():
    raise RuntimeError("it\\nbroke")


def item():
    return Step(lambda: torch.ones(3).sum().item())


def huge():
    raise MemoryError


def card():
    return Step(torch.cuda.synchronize)
"""


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("attention", ["naive", "sdpa"])
@pytest.mark.parametrize("optimizer", ["own", "fused"])
def test_it_is_the_closed_form_of_a_size(precision, attention, optimizer):
    options = {"precision": precision, "attention": attention, "optimizer": optimizer}
    size, parts, _ = fake_peak.of_spec(SPEC | options)
    setup = Setup(ModelShape(64, 128, 6, 4, 200), 2, 128, precision, attention, optimizer)
    assert size == approx(peak(setup, "step").bytes, rel=0.004)
    of_bytes = dict(picked(parts, "category", "bytes"))
    assert sum(of_bytes.values()) == size
    # beside the two moments PyTorch's has a step count of each parameter
    assert of_bytes["optimizer state"] == approx(2 * of_bytes["parameters"], rel=1e-3)


def test_a_model_of_ones_own_against_its_recording(monkeypatch, request):
    monkeypatch.chdir(request.config.rootpath)
    size, _, modules = fake_peak.of_spec(OWN)
    # memory_summary.csv of the cell memory/mine/ctx64/fp32 in tests/data/cpu_own.zip
    assert size == approx(206_135_304, rel=1e-4)
    assert modules[0] == {"module": "GPT", "peak": size, "keeps": modules[0]["keeps"]}


def test_an_architecture_of_transformers_against_a_gpus_peak(monkeypatch, request):
    pytest.importorskip("transformers")
    monkeypatch.chdir(request.config.rootpath)
    spec = OWN | {"model": "hf:llama", "model_keys": LLAMA, "context": 128, "precision": "bf16"}
    size = fake_peak.of_spec(spec).bytes
    assert size + LIBRARIES == approx(17_996_747_016, rel=1e-6)


def asked(**flags):
    """The command's flags: what is usual, but for these."""
    usual = {name: value for name, (value, _) in fits.ASKED.items()}
    return Namespace(**usual | {"step": None, "model": None, "keys": {}} | flags)


def test_a_step_of_ones_own_by_hand(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(STEP)
    place = {"context": 250, "batch": 4, "keys": {"width": 100}}
    size, parts, modules = fake_peak.found(asked(step=f"{file}:build", **place))
    of_bytes = dict(picked(parts, "category", "bytes"))
    weight, inputs, output = 4 * 300 * 100, 4 * 1000 * 300, 4 * 1000 * 100
    assert of_bytes["parameters"] == weight
    # the sum's gradient is one number, expanded; the weight's gradient comes on top of x and y
    assert weight + inputs + weight <= size <= 2 * weight + inputs + 2 * output
    (layer,) = modules  # its result is what its forward pass leaves
    assert (layer["module"], layer["keeps"]) == ("Linear", output)


@pytest.mark.parametrize(
    "recorded, name",
    {
        159_592_640: "plain",
        176_919_200: "accumulation",
        84_467_816: "lora",
        145_434_752: "muon",
    }.items(),
)
def test_the_examples_against_their_recordings(name, recorded, monkeypatch, request):
    """Recorded by snapshot_memory.py on a CPU: what the snapshot's segments hold at its end, and
    the most that its events are above that. AdamW keeps two moments of what is trained, Muon one.
    """
    monkeypatch.chdir(request.config.rootpath)
    reference = f"models/step_{name}.py:build"
    keys = {"layers": 2}
    step = stepping.build(reference, keys, {"context": 64, "batch": 4, "device": "cpu", "seed": 0})
    numbers = [each.numel() for each in step.module.parameters()]
    kept = 2 * sum(each.numel() for each in step.module.parameters() if each.requires_grad)
    if name == "muon":  # of two blocks, of 12 width² each
        kept -= 2 * 12 * 384**2

    found = fake_peak.found(asked(step=reference, keys=keys, context=64, batch=4))
    of_bytes = {each["category"]: each["bytes"] for each in found.terms}
    assert found.bytes == pytest.approx(recorded, rel=1e-4)
    assert found.bytes == sum(of_bytes.values())
    assert of_bytes["parameters"] == 4 * sum(numbers)
    assert of_bytes["optimizer state"] == pytest.approx(4 * kept, rel=2e-3)  # with step counts


@pytest.mark.parametrize(
    "told, reference",
    {
        "write FILE.py:FUNCTION": "{}",
        r"fails\(\) fails: line \d+: RuntimeError: it broke": "{}:fails",
        r"in shapes alone.*line \d+: DataDependentOutputException": "{}:item",
        "in shapes alone": "{}:card",
        "own.py:huge: MemoryError": "{}:huge",
    }.items(),
)
def test_a_step_that_is_none_is_one_line(tmp_path, reference, told):
    file = tmp_path / "own.py"
    file.write_text(STEP)
    with pytest.raises(ValueError, match=told) as caught:
        fake_peak.found(asked(step=reference.format(file)))
    assert "\n" not in str(caught.value)


def test_keys_that_a_step_does_not_take_are_one_line(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(STEP)
    assert "does not take the keys depth: " in one_line(
        ValueError, fake_peak.found, asked(step=f"{file}:build", keys={"depth": 3})
    )
    assert "--attention naive: not with a model or step" in one_line(
        ValueError,
        fake_peak.found,
        asked(step=f"{file}:build", attention="naive"),
        ["--attention=naive"],
    )
    assert "--precision bf16: not with a model or step" in one_line(
        ValueError, fake_peak.found, asked(step=f"{file}:build"), ["--precision", "bf16"]
    )  # what is usual


def test_a_model_that_is_not_there_is_one_line(tmp_path):
    assert "nothing" in one_line(
        ValueError,
        fake_peak.found,
        asked(model="models/gpt.py:nothing", precision="fp32", context=8),
    )
