"""The four precisions: TF32 switches, autocast types, and what a device cannot run."""

import pytest
import torch
from stepscope.measure import precision


@pytest.fixture(autouse=True)
def restored():
    """Leave torch's switches as they were."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    yield
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]


@pytest.mark.parametrize(
    "name, tf32", {"fp32": False, "tf32": True, "bf16": False, "fp16": False}.items()
)
@pytest.mark.parametrize("before", ["fp32", "tf32"])
def test_tf32_is_on_for_tf32_only(before, name, tf32):
    precision.configure(before)
    precision.configure(name)
    assert torch.backends.cuda.matmul.allow_tf32 == tf32
    assert torch.backends.cudnn.allow_tf32 == tf32
    assert torch.get_float32_matmul_precision() == ("high" if tf32 else "highest")


TYPES = {
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


@pytest.mark.parametrize("name", TYPES)
def test_a_matrix_product_under_autocast_has_the_type_and_its_operands_stay_fp32(name):
    assert precision.dtype(name) == TYPES[name]
    weight = torch.ones(4, 4, requires_grad=True)
    with precision.autocast(name, "cpu"):
        product = weight @ weight
    assert product.dtype == TYPES[name]
    product.sum().backward()
    assert weight.dtype == weight.grad.dtype == torch.float32
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("has", [True, False])
@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_a_cpu_runs_16_bits_if_it_has_instructions_for_them(name, has, monkeypatch):
    other = {"bf16": "fp16", "fp16": "bf16"}[name]
    monkeypatch.setattr(
        precision, "has_instructions", lambda asked: has if asked == name else not has
    )
    assert precision.unsupported(name, "cpu") == (None if has else f"no {name} instructions")
    assert (precision.unsupported(other, "cpu") is None) != has


@pytest.mark.parametrize(
    "line, found",
    {
        "flags\t\t: fpu avx512f avx512_bf16 sse2": {"bf16"},
        "flags\t\t: fpu avx512_fp16 amx_bf16": {"bf16", "fp16"},
        # for which torch says yes, and computes in fp32
        "flags\t\t: fpu avx2 avx512f avx512bw": set(),
        "Features\t: fp asimd bf16 asimdhp": {"bf16", "fp16"},
    }.items(),
)
def test_instructions_are_read_from_what_linux_shows(line, found, tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\n{line}\n")
    monkeypatch.setattr(precision, "CPUINFO", tmp_path / "cpuinfo")
    # fp32 needs none
    assert {name for name in TYPES if precision.has_instructions(name)} == {"fp32", *found}
    monkeypatch.setattr(precision, "CPUINFO", tmp_path / "missing")
    assert not precision.has_instructions("bf16")


@pytest.mark.parametrize(
    "capability, unsupported", [((7, 5), {"tf32", "bf16"}), ((8, 0), set()), ((12, 0), set())]
)
def test_a_gpu_runs_what_its_compute_capability_allows(capability, unsupported, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla V100")
    reasons = {name: precision.unsupported(name, "cuda") for name in TYPES}
    assert {name for name, reason in reasons.items() if reason} == unsupported
    for name in unsupported:
        major, minor = capability
        assert (
            reasons[name]
            == f"{name} needs compute capability 8.0 or more; Tesla V100 has {major}.{minor}"
        )
