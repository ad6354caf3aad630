"""What fits: named models against their published numbers of parameters, sharding and optimizers
against sums by hand, searches against trying."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from common import ROOT, picked
from pytest import approx
from stepscope.formulas import fits
from stepscope.formulas.footprint import Setup, group, total
from stepscope.model.shape import ModelShape

TINY = "d_model=8,d_ff=8,num_layers=1"
# Billions, as the models' cards and papers state them.
PARAMETERS = {
    "Llama 3.2 1B": 1.24,
    "Llama 3.2 3B": 3.21,
    "Llama 3.1 8B": 8.03,
    "Llama 3.1 70B": 70.6,
    "Llama 2 7B": 6.74,
    "Llama 2 13B": 13.0,
    "TinyLlama 1.1B": 1.1,
    "Mistral 7B": 7.24,
    "Qwen3 0.6B": 0.596,
    "Qwen3 4B": 4.02,
    "Qwen3 8B": 8.19,
    "Qwen3 14B": 14.8,
    "Qwen3 32B": 32.8,
    "Qwen2.5 7B": 7.61,
    "Gemma 2B": 2.51,
    "SmolLM2 135M": 0.1345,
    "SmolLM2 1.7B": 1.71,
    "GPT-2 124M": 0.1244,
    "GPT-2 355M": 0.355,
    "GPT-2 774M": 0.774,
    "GPT-2 1.5B": 1.558,
}
LLAMA = Setup(fits.model("Llama 3.2 1B", {}), 1, 4096, "bf16", "sdpa", "fused", "torch")


@pytest.mark.parametrize("name, billions", PARAMETERS.items())
def test_parameters_of_well_known_models(name, billions):
    setup = Setup(fits.model(name, {}), 1, 1)
    assert setup.sizes["parameters"] / 1e9 == approx(billions, rel=0.006)


def bytes_of(setup, name):
    return total(group(setup, name))


def test_weights_gradients_and_moments_by_strategy():
    """Rajbhandari et al. 2020, figure 1, in fp32: of 4 + 4 + 8 bytes a parameter stage 1 divides
    the last, stage 2 the last two, stage 3 all."""
    shape = ModelShape(64, 128, 2, 4, 99)
    count, devices = shape.parameters, 4
    divided = {"ddp": "", "zero-1": "s", "zero-2": "gs", "fsdp": "wgs"}
    for strategy, parts in divided.items():
        setup = Setup(shape, 1, 8, strategy=strategy, devices=devices)
        for key, name, each in (
            ("w", "parameters", 4),
            ("g", "gradients", 4),
            ("s", "optimizer state", 8),
        ):
            expected = each * count / (devices if key in parts else 1)
            assert bytes_of(setup, name) == approx(expected, abs=8)
    assert bytes_of(Setup(shape, 1, 8, strategy="ddp", devices=devices), "buckets") == 4 * count


@pytest.mark.parametrize(
    "optimizer, precision, each",
    [
        ("fused", "bf16", 8),
        ("fused", "pure-bf16", 4),
        ("fused", "bf16-masters", 12),
        ("8-bit", "bf16", 2 + 8 / 256),
        ("sgd", "bf16", 0),
        ("momentum", "bf16", 4),
    ],
)
def test_bytes_of_state_a_parameter(optimizer, precision, each):
    setup = replace(LLAMA, optimizer=optimizer, precision=precision)
    size = bytes_of(setup, "optimizer state") / setup.sizes["parameters"]
    assert size == approx(each, abs=1e-6)


def test_muon_keeps_one_moment_of_matrices_and_two_of_the_rest():
    shape = ModelShape(64, 128, 2, 4, 99)
    matrices = 2 * (4 * 64 * 64 + 3 * 64 * 128)
    expected = 4 * (matrices + 2 * (shape.parameters - matrices))
    assert bytes_of(Setup(shape, 1, 8, optimizer="muon"), "optimizer state") == expected


def test_accumulated_gradients_are_there_all_the_time():
    before = fits.peak_of(LLAMA)
    assert before.part == "loss"
    after = fits.peak_of(replace(LLAMA, gradients="accumulated"))
    assert after.bytes - before.bytes == 4 * LLAMA.sizes["parameters"]


def test_the_largest_batch_and_context_are_the_last_that_fit():
    setup = replace(LLAMA, optimizer="8-bit", checkpoint=1)
    capacity = fits.memory("24GB")
    for field in ("batch", "context"):
        found = fits.largest(setup, field, capacity)
        assert 0 < found[fits.FITS] < found[fits.DOUBTFUL]
        for verdict, last in found.items():
            there, after = (
                fits.verdict_of(replace(setup, **{field: number}), capacity)
                for number in (last, last + 1)
            )
            assert there == verdict != after
    assert fits.largest(LLAMA, "batch", 2**30) == {fits.FITS: 0, fits.DOUBTFUL: 0}


def test_no_context_is_longer_than_the_positions():
    setup = Setup(fits.model("GPT-2", {}), 1, 64)
    assert set(fits.largest(setup, "context", fits.memory("H200")).values()) == {1024}


def test_operations_of_a_step_by_hand():
    """Forward and twice as many backward; checkpoints run blocks forward again, not the head;
    selective ones the products of K, of the output and of one of three matrices of the FFN. In fp8
    blocks' linear layers run at its rate, attention and head at bf16's."""
    setup = Setup(ModelShape(64, 128, 2, 4, 99, key_value_heads=2), 3, 32, "bf16", "sdpa")
    tokens = 3 * 32
    linear = 2 * tokens * 2 * (64 * (64 + 2 * 32) + 64 * 64 + 3 * 64 * 128)
    attention = 2 * tokens * 2 * 2 * 32 * 64
    head = tokens * 2 * 64 * 99
    whole = 3 * (linear + attention + head)
    again = {
        "checkpoint": (1, linear + attention),
        "recompute": ("selective", 2 * tokens * 2 * (64 * 32 + 64 * 64 + 64 * 128)),
    }
    assert sum(count for count, _ in fits.operations(setup)) == whole
    for option, (chosen, more) in again.items():
        found = fits.operations(replace(setup, **{option: chosen}))
        assert sum(count for count, _ in found) == whole + more
    of_fp8 = fits.operations(replace(setup, precision="fp8", compile="block"))
    assert sorted(of_fp8) == sorted(
        [(3 * linear, "fp8"), (3 * attention, "bf16"), (3 * head, "bf16")]
    )
    rates = fits.KNOWN["machines"]["NVIDIA H200"]["rates"]
    seconds = 3 * linear / rates["fp8"] + 3 * (attention + head) / rates["bf16"]
    fp8 = replace(setup, precision="fp8", compile="block")
    assert fits.tokens_a_second(fp8, "NVIDIA H200") == approx(
        [tokens / seconds * share for share in (0.24, 0.72)]
    )
    assert fits.tokens_a_second(fp8, "NVIDIA H100 80GB HBM3") is None


def test_graphs_are_not_said_to_fit_what_their_pools_may_not():
    """2.7B in fp8 at context 512, replayed: 72.49 GiB were reserved where 50.85 are asked for."""
    flags = frozenset({"compiled", "graphs"})
    size, reserved = 54_597_000_000, 72.49 * 2**30
    assert fits.taken(size)[1] < reserved <= fits.taken(size, flags)[1] - fits.CARD["context"]


def test_parameters_of_qwen3_with_its_norms_of_heads():
    """8,190,735,360: of the checkpoint that its authors published."""
    assert Setup(fits.model("Qwen3 8B", {}), 1, 1).sizes["parameters"] == 8_190_735_360


def test_what_makes_room_is_sorted_and_true():
    found = fits.room(replace(LLAMA, batch=4))
    saved = [each.saved for each in found]
    assert saved == sorted(saved, reverse=True)
    assert min(saved) > 0
    before = fits.peak_of(replace(LLAMA, batch=4)).bytes
    for each in found:
        assert before - fits.peak_of(each.setup).bytes == each.saved


def test_verdicts_are_by_what_the_allocator_takes():
    peak = fits.peak_of(LLAMA).bytes
    least, most = fits.taken(peak)
    verdicts = [fits.verdict(peak, size) for size in (least - 1, least, most - 1, most)]
    assert verdicts == [fits.FAILS, fits.DOUBTFUL, fits.DOUBTFUL, fits.FITS]


@pytest.mark.parametrize(
    "text, size", {"24GB": 23.52, "24 GiB": 24, "24": 23.52, "rtx 4090": 23.52}.items()
)
def test_memory_by_number_or_card(text, size):
    assert fits.memory(text) == int(size * 2**30)


def test_cards_have_what_messages_of_pytorch_say():
    """ "GPU 0 has a total capacity of 79.11 GiB" of an H100, 139.80 of an H200, 14.56 of a T4."""
    for card, size in (("H100", 79.11), ("H200", 139.80), ("T4", 14.56)):
        assert fits.memory(card) == approx(size * 2**30, rel=1e-3)


def test_the_command_says_whether_by_its_exit_code(run_script):
    fails = run_script("fits.py", "--size", "8B", "--memory", "24GB", "--json")
    assert fails.returncode == 1
    found = json.loads(fails.stdout)
    assert found["peak"] == sum(picked(found["terms"], "bytes"))
    fits_in = "--size nano --memory 24GB --context 64"
    assert run_script("fits.py", *fits_in.split()).returncode == 0


WRONG = {  # what is typed → what is said
    "--size 9Z": "no model '9Z'; there are: nano",
    "--size d_model=4,foo=1": "foo",
    "--size d_model=10": "'d_model=10': the first four are needed",
    "--size d_model=8,d_ff=x": "'x'",
    f"--size {TINY},num_heads=0": "num_heads 0: a number from 1",
    f"--size {TINY},num_heads=3": "d_model 8 is not divisible by num_heads 3",
    f"--size {TINY},num_heads=4,head_width=-3": "head_width -3",
    f"--size {TINY},num_heads=4,key_value_heads=3": "by key_value_heads 3",
    "--size GPT-2": "context 4096: the model has 1024 positions",
    "--memory much": "say 24GB, or a card",
    "--memory -5GB": "--memory",
    "--reserve 24GB": "memory 24GB, reserve 24GB: nothing is left",
    "--memory 0": "nothing is left",
    "--reserve H100": "reserve 'H100': a number",
    "--batch 0": "batch 0: a number from 1",
    "--model own.py:build --step own.py:step": "not allowed with",
    "--model own.py:build --precision pure-bf16": "--precision pure-bf16: not",
    "--model own.py:build --size 8B": "--size 8B: not",
    "--model own.py:build --keys {bad": "argument --keys",
    "--step own.py": "step 'own.py': write FILE.py:FUNCTION",
    "--step own.py:step --precision bf16": "--precision bf16: not",
    "--checkpoint -1": "checkpoint -1",
    "--precision fp8": "say compile block",
    "--devices 2": "devices 2: say a strategy",
    "--machine abacus": "argument --machine",
}


@pytest.mark.parametrize("words, told", WRONG.items())
def test_what_is_wrong_is_said_in_one_line(words, told, run_script):
    done = run_script("fits.py", *words.split())
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert told in line


@pytest.mark.parametrize(
    "module, flags",
    [("yaml", []), ("torch", ["--model", "own.py:build"]), ("torch", ["--hf", "x"])],
)
def test_a_module_that_is_not_installed_is_one_line(tmp_path, monkeypatch, module, flags):
    text = f"raise ModuleNotFoundError(\"No module named '{module}'\")"
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = [sys.executable, ROOT / "scripts/fits.py", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"No module named '{module}'; pip install -r requirements.txt" in line
