"""Short names and what full names tell of tile and unit; expected values were read off the names
by hand."""

import csv
import json
from operator import itemgetter
from pathlib import Path

import pytest
from stepscope.trace.kernel_categories import category_of
from stepscope.trace.kernel_names import LONGEST, KernelName, describe

H100 = json.loads((Path(__file__).parent / "kernel_names_h100.json").read_text())
NAMES = list(H100["total_ns"])
# What was read off names by hand, with the category of what the code behind each does.
with Path(__file__).with_name("kernel_names.csv").open(encoding="utf-8", newline="") as file:
    READ_OFF = list(csv.DictReader(file))
ATEN = "void at::native::"


@pytest.mark.parametrize("row", READ_OFF, ids=itemgetter("name"))
def test_a_name_tells_what_a_kernel_computes_on_which_unit_in_which_tiles(row):
    assert category_of(row["name"]) == row["category"]
    if row["short"]:
        assert describe(row["name"])._asdict() | {"name": row["name"]} == row


def test_flash_attention_tells_head_size_blocks_and_causality():
    traits = (
        "Flash_fwd_kernel_traits<(int)64, (int)128, (int)128, (int)4, (bool)0, (bool)0,"
        " cutlass::bfloat16_t>"
    )
    for causal, word in ((0, ""), (1, " causal")):
        full = (
            f"void pytorch_flash::flash_fwd_kernel<{traits}, (bool)0, (bool){causal},"
            " (bool)0>(pytorch_flash::Params)"
        )
        short = f"flash fwd bf16 d64 128x128{word}"
        assert describe(full) == KernelName(short, "fused attention", "tensor core")


@pytest.mark.parametrize(
    "nsight_systems, torch_profiler",
    [
        (
            ATEN
            + "vectorized_elementwise_kernel<(int)4, at::native::BUnaryFunctor<float, float, float,"
            " at::native::binary_internal::MulFunctor<float>>, std::array<char *, (unsigned"
            " long)2>>(int, T2, T3)",
            ATEN + "vectorized_elementwise_kernel<4, at::native::BUnaryFunctor<float, float, float,"
            " at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int,"
            " std::array<char*, 2ul>)",
        ),
        (
            ATEN + "elementwise_kernel<(int)128, (int)2, void"
            " at::native::gpu_kernel_impl_nocast<at::native::addcmul_cuda_kernel(at:"
            ":TensorIteratorBase"
            " &, const c10::Scalar &)::[lambda() (instance 2)]::operator ()()"
            " const::[lambda(float, float, float) (instance 1)]>(at::TensorIteratorBase"
            " &)::[lambda(int) (instance 1)]>(int)",
            ATEN + "elementwise_kernel<128, 2,"
            " at::native::gpu_kernel_impl_nocast<at::native::addcmul_cuda_kernel(at:"
            ":TensorIteratorBase&,"
            " c10::Scalar const&)::{lambda()#2}::operator()() const::{lambda(float, float,"
            " float)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int, x)",
        ),
    ],
)
def test_both_profilers_spellings_give_one_name(nsight_systems, torch_profiler):
    assert describe(nsight_systems) == describe(torch_profiler)


def test_measured_kernels_have_names_of_their_own():
    shorts = {}
    for name in NAMES:
        shorts.setdefault(describe(name).short, []).append(name)
    assert {short: names for short, names in shorts.items() if len(names) > 1} == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_measured_kernels_name_is_short_and_says_something(name):
    short = describe(name).short
    assert len(short) <= LONGEST
    assert " ".join(short.split()) == short
    assert not any(
        word in short for word in ("Kernel2", "elementwise", "unnamed", "lambda", "::", "<")
    )


def test_measured_matmuls_show_the_units_of_their_run():
    """autocast and TF32 use tensor cores: of a run in fp32 no product does, of the rest all do."""
    for name, runs in H100["total_ns"].items():
        found = describe(name)
        if found.category != "matmul" or "splitKreduce" in name:
            continue
        assert found.tile
        assert {H100["precisions"][run] == "fp32" for run in runs} == {found.unit == "SIMT"}
        assert found.unit in ("SIMT", "tensor core")


@pytest.mark.parametrize("run", H100["precisions"])
def test_little_of_a_measured_steps_time_is_other(run):
    times = {name: runs[run] for name, runs in H100["total_ns"].items() if run in runs}
    other = sum(time for name, time in times.items() if category_of(name) == "other")
    assert other < 0.05 * sum(times.values())


def test_an_empty_name_still_has_a_label():
    assert describe("") == KernelName("unnamed", "other")


def test_long_triton_names_that_differ_in_the_middle_stay_apart():
    first, second = (
        f"triton_red_fused_add_{middle}_{'mul_' * 20}sum_17" for middle in ("div", "exp")
    )
    assert describe(first).short != describe(second).short
    assert describe(first).short.startswith("triton_red_fused_add_div_mul_")
    assert "_17" in describe(first).short
