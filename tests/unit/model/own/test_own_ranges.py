"""Ranges of the parts of a model, by hooks: which, in which order, and that they change no
number."""

import pytest
import torch
from examples import GPT_FILE, make, step
from stepscope.model import ranges

GPT = {"layers": 2, "width": 16, "heads": 2}
FORWARD_OF_A_BLOCK = [
    "block",
    " norm",
    " attention",
    "  QKV projection",
    "  output projection",
    " norm",
    " FFN",
]


def indented(opened):
    return [" " * depth + name for depth, name in opened]


def test_each_part_is_named_in_its_order(opened):
    step(make(GPT_FILE, GPT))
    assert indented(opened) == [
        *["embedding"] * 2,
        *FORWARD_OF_A_BLOCK * 2,
        "final norm",
        "LM head",
        "loss",
    ]


@pytest.mark.parametrize("reference", ["gpt", "vit", "hf:llama"])
def test_hooks_change_no_number(request, reference):
    keys = {"gpt": GPT, "vit": {"layers": 1, "width": 12, "heads": 2}}.get(reference)
    plain = step(make(reference, keys))
    log = request.getfixturevalue("opened")
    named = step(make(reference, keys))
    assert log
    torch.testing.assert_close(tuple(plain), tuple(named), rtol=0, atol=0)


def test_hooks_are_there_only_while_ranges_are_on():
    model = make(GPT_FILE, GPT)
    hooks = lambda: sum(len(part._forward_hooks) for part in model.module.modules())  # noqa: E731
    step(model)
    assert hooks() == 0
    ranges.turn_on(lambda name: torch.profiler.record_function(name))
    try:
        step(model)
        assert hooks() == 2 + 2 * 7 + 2
    finally:
        ranges.turn_on(None)
    step(model)
    assert hooks() == 0


def test_inference_has_forward_ranges_alone(opened):
    model = make(GPT_FILE, GPT)
    with torch.no_grad():
        model.outputs(model.make_batch())
    assert indented(opened) == [
        "embedding",
        "embedding",
        *FORWARD_OF_A_BLOCK * 2,
        "final norm",
        "LM head",
    ]


def test_recomputed_blocks_are_named_again(opened):
    step(make(GPT_FILE, GPT, checkpoint=1))
    names = [name for _, name in opened]
    assert names.count("attention") == 2 * 2


def test_the_user_names_parts(opened):
    chosen = {"blocks.1.*": "", "*.mlp.0": "up", "blocks.0.mlp": "MLP"}
    model = make(GPT_FILE, GPT | {"ranges": chosen})
    step(model)
    names = {name for _, name in opened}
    assert {"up", "MLP", "attention"} <= names
    assert "FFN" not in names
    assert [name for _, name in opened].count("attention") == 1
    assert model.description["keys"]["ranges"] == chosen


def test_compiled_code_has_no_ranges_and_says_so(opened, monkeypatch):
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda forward: compiled.append(forward) or forward)
    model = make(GPT_FILE, GPT, compile="block")
    step(model)
    assert len(compiled) == 2
    assert indented(opened) == ["loss"]
    assert model.description["ranges"] == []
    assert any(line.startswith("ranges inside the model") for line in model.description["unknown"])
