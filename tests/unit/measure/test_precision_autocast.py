"""Dtypes under autocast on a CPU, and what the program writes."""

import pytest
from stepscope.measure.precision_autocast import measure

SPEC = {"device": "cpu", "seed": 0}


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_linear_layers_give_16_bits_and_their_parameters_and_gradients_stay_fp32(name):
    toy = {row["role"]: row for row in measure(SPEC)["toy"] if row["autocast"] == name}
    assert list(toy) == ["linear_1", "relu", "layer_norm", "linear_2", "softmax", "loss"]
    first = toy["linear_1"]
    assert (first["parameter"], first["parameter_gradient"]) == ("fp32", "fp32")
    assert (first["input"], first["output"], first["output_gradient"]) == ("fp32", name, name)
    assert (toy["loss"]["input"], toy["loss"]["output"]) == (f"{name} + int64", "fp32")
    # A processor's list of operators that autocast to fp32 has neither softmax nor LayerNorm
    # (torch.amp's documentation).
    for role in ("layer_norm", "softmax"):
        assert (toy[role]["input"], toy[role]["output"]) == (name, name)
    assert toy["softmax"]["kind"] == "Softmax"
