"""Dtypes under autocast on a CPU, and what the program writes."""

import pytest
import torch
from common import TINY, picked
from stepscope.measure import precision_autocast
from stepscope.measure.precision_autocast import Watch, measure

SPEC = TINY | {"d_model": 16, "d_ff": 32}


@pytest.fixture(scope="module")
def tables():
    return measure(SPEC)


def by_role(rows, name):
    return {row["role"]: row for row in rows if row["autocast"] == name}


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_linear_layers_give_16_bits_and_their_parameters_and_gradients_stay_fp32(tables, name):
    toy, own = by_role(tables["toy"], name), by_role(tables["model"], name)
    assert list(toy) == ["linear_1", "relu", "layer_norm", "linear_2", "loss"]
    for row in (toy["linear_1"], own["blocks.*.attention.qkv"], own["head"]):
        assert (row["parameter"], row["parameter_gradient"]) == ("fp32", "fp32")
        assert (row["input"], row["output"], row["output_gradient"]) == ("fp32", name, name)
    assert own["blocks.*.attention.attend"]["input"] == name
    assert own["loss"]["output"] == toy["loss"]["output"] == "fp32"


def test_the_residual_stream_stays_fp32_and_norms_give_what_they_take(tables):
    own = by_role(tables["model"], "bf16")
    assert own["blocks.*"]["input"] == own["blocks.*"]["output"] == "fp32"
    assert own["blocks.*.attention_norm"]["output"] == "fp32"
    assert own["embedding"]["input"] == "int64"


def test_a_missing_operator_is_unsupported_with_its_reason(monkeypatch):
    def toy(spec, name, *_):
        if name == "fp16":
            raise RuntimeError("\"addmm\" not implemented for 'Half'\nmore")
        return [{"autocast": name, "status": "ok", "reason": ""}]

    monkeypatch.setattr(precision_autocast, "_toy", toy)
    rows = measure(SPEC)["toy"]
    assert picked(rows, "autocast", "status") == [
        ("fp16", "unsupported"),
        ("bf16", "ok"),
    ]
    assert rows[0]["reason"] == "\"addmm\" not implemented for 'Half'"


def test_any_other_error_is_not_taken_for_a_missing_operator(monkeypatch):
    monkeypatch.setattr(
        precision_autocast, "_toy", lambda *_: (_ for _ in ()).throw(RuntimeError("boom"))
    )
    with pytest.raises(RuntimeError, match="boom"):
        measure(SPEC)


def test_calls_that_differ_are_both_named():
    watch = Watch()
    call = watch.function("f", "identity", lambda x: x)
    for dtype in (torch.float32, torch.bfloat16, torch.float32):
        call(torch.zeros(1, dtype=dtype))
    (row,) = watch.table("bf16")
    assert (row["input"], row["output"]) == ("fp32 or bf16", "fp32 or bf16")
