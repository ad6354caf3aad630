"""Short names and what full names tell of tile, data type and unit; expected values were read off
the names by hand."""

import json
from pathlib import Path

import pytest
from stepscope.trace.cpp_names import KernelName
from stepscope.trace.kernel_names import LONGEST, describe

H100 = json.loads((Path(__file__).parent / "kernel_names_h100.json").read_text())
NAMES = list(H100["total_ns"])
ATEN = "void at::native::"
XMMA = "_aligna4_alignc4_execute_kernel__5x_cublas"

MATMULS = {
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(T1::Params)": (
        "cutlass simt sgemm 128x256 8x4 nt",
        "128x256x8",
        "fp32",
        "SIMT",
    ),
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align4>(T1::Params)": (
        "cutlass tensorop s1688gemm 128x64 32x6 nt align4",
        "128x64x32",
        "tf32",
        "tensor core",
    ),
    "void cutlass::Kernel2<cutlass_75_tensorop_f16_s1688gemm_f16_256x128_nn_align8>(T1::Params)": (
        "cutlass 75 tensorop f16 s1688gemm 256x128 nn align8",
        "256x128",
        "fp16",
        "tensor core",
    ),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_32x3_tn"
        "_align8>(T1::Params)"
    ): (
        "cutlass tensorop bf16 s16816gemm 256x128 32x3 tn align8",
        "256x128x32",
        "bf16",
        "tensor core",
    ),
    "void cutlass::Kernel2<cutlass_80_tensorop_d884gemm_64x64_16x4_nt_align1>(T1::Params)": (
        "cutlass tensorop d884gemm 64x64 16x4 nt",
        "64x64x16",
        "fp64",
        "tensor core",
    ),
    "_ZN7cutlass7Kernel2I45cutlass_80_simt_sgemm_128x256_8x4_nt_align1EEvNT_6ParamsE": (
        "cutlass simt sgemm 128x256 8x4 nt",
        "128x256x8",
        "fp32",
        "SIMT",
    ),
    f"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma{XMMA}": (
        "xmma gemm fp32 128x128 8x3 tn",
        "128x128x8",
        "fp32",
        "SIMT",
    ),
    (
        f"sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x32_stage4_warpsize2x2x1"
        f"_tensor16x8x16{XMMA}"
    ): ("xmma gemm bf16 128x64 32x4 tn", "128x64x32", "bf16", "tensor core"),
    (
        "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32_warpgroupsize1x1x1_execute"
        "_segment_k_on_kernel"
    ): ("xmma gemm tf32 128x128x32 nn segment k", "128x128x32", "tf32", "tensor core"),
    "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NTT": (
        "nvjet bf16 320x128 64x3 1x2 h coopB NTT",
        "320x128x64",
        "bf16",
        "tensor core",
    ),
    "nvjet_sm90_hsh_64x96_64x8_4x2_h_bz_NTT": (
        "nvjet fp16 64x96 64x8 4x2 h NTT",
        "64x96x64",
        "fp16",
        "tensor core",
    ),
    "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NTN": (
        "nvjet bf16 128x256 64x4 2x1 v coopA NTN",
        "128x256x64",
        "bf16",
        "tensor core",
    ),
    "nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN": (
        "nvjet bf16 64x64 128x3 32x32x128 tmaAB alignCD4 TNNN sm120",
        "64x64x128",
        "bf16",
        "tensor core",
    ),
    "ampere_sgemm_128x64_tn": ("ampere sgemm 128x64 tn", "128x64", "fp32", "SIMT"),
    "volta_sgemm_128x64_nn": ("volta sgemm 128x64 nn", "128x64", "fp32", "SIMT"),
    "volta_h884gemm_256x64_ldg8_tn": (
        "volta h884gemm 256x64 ldg8 tn",
        "256x64",
        "fp16",
        "tensor core",
    ),
    "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nn": (
        "ampere bf16 s16816gemm bf16 256x128 ldg8 f2f stages 32x3 nn",
        "256x128x32",
        "bf16",
        "tensor core",
    ),
    "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn": (
        "turing fp16 s1688gemm fp16 128x128 ldg8 f2f tn",
        "128x128",
        "fp16",
        "tensor core",
    ),
}

OTHERS = {
    ATEN + "vectorized_elementwise_kernel<(int)4, at::native::BinaryFunctor<float, float, float, at"
    "::native::binary_internal::MulFunctor<float>>, std::array<char *, (unsigned"
    " long)3>>(int, T2, T3)": ("mul fp32 (vectorized x4)", "elementwise", "fp32"),
    ATEN + "vectorized_elementwise_kernel<(int)8, at::native::AUnaryFunctor<c10::BFloat16, c10:"
    ":BFloat16, c10::BFloat16, at::native::binary_internal::MulFunctor<float>>, std::array"
    "<char *, (unsigned long)2>>(int)": (
        "mul by left scalar bf16 (vectorized x8)",
        "elementwise",
        "bf16",
    ),
    ATEN + "vectorized_elementwise_kernel<(int)8, at::native::bfloat16_copy_kernel_cuda(at:"
    ":TensorIteratorBase &)::[lambda(float) (instance 1)], std::array<char *, (unsigned"
    " long)2>>(int, T2, T3)": ("copy fp32 → bf16 (vectorized x8)", "copy/cast", "fp32"),
    ATEN + "unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase"
    " &)::[lambda() (instance 3)]::operator ()() const::[lambda() (instance 7)]::operator"
    " ()() const::[lambda(float) (instance 1)], std::array<char *, (unsigned long)2>, (int)4"
    ", TrivialOffsetCalculator<(int)1, unsigned int>, at::native::memory::LoadWithCast"
    "<(int)1>, at::native::memory::StoreWithCast<(int)1>>(int, T1)": (
        "copy to fp32 (unrolled, cast)",
        "copy/cast",
        "fp32",
    ),
    ATEN + "vectorized_elementwise_kernel<(int)4, void at::native::<unnamed>::pow_tensor_scalar"
    "_kernel_impl<float, float>(at::TensorIteratorBase &, T2)::[lambda(float) (instance 2)],"
    " std::array<char *, 2>>(int, T2, T3)": ("cube fp32 (vectorized x4)", "elementwise", "fp32"),
    ATEN + "reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::func_wrapper_t"
    "<float, at::native::sum_functor<float, float, float>::operator ()(at::TensorIterator &)"
    "::[lambda(float, float) (instance 1)]>, unsigned int, float, (int)4, (int)4>>(T3)": (
        "sum fp32 (reduce 512x1)",
        "reduction",
        "fp32",
    ),
    ATEN + "reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, at::native::MeanOps<c10:"
    ":BFloat16, float, float, float>, unsigned int, float, 4, 4> >(x)": (
        "mean bf16 → fp32 (reduce 128x4)",
        "reduction",
        "bf16",
    ),
    ATEN + "index_elementwise_kernel<(int)128, (int)4, void at::native::flip_kernel_impl<at::native"
    "::OpaqueType<(int)2>>(at::TensorIterator &)::[lambda(int) (instance 1)]>(long, T3)": (
        "flip 2-byte (indexed)",
        "copy/cast",
        "",
    ),
    ATEN + "_scatter_gather_elementwise_kernel<(int)128, (int)8, void at::native::_cuda_scatter"
    "_gather_internal_kernel<(bool)1, float, long>::operator ()<at::native::ReduceAdd>(at:"
    ":TensorIterator &, long)::[lambda(int) (instance 1)]>(int, T3)": (
        "scatter add fp32",
        "reduction",
        "fp32",
    ),
    ATEN + "(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace):"
    ":FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace):"
    ":FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float const*>(x)": (
        "fused adamw fp32 (multi tensor)",
        "optimizer",
        "fp32",
    ),
    (
        "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, float, float, 9, true,"
        " false>(float*)"
    ): ("log softmax warp forward bf16 fp32 9", "softmax forward", "bf16"),
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": (
        "nccl all reduce sum fp32 ring ll",
        "communication",
        "fp32",
    ),
    "[CUDA memcpy Host-to-Device]": ("memcpy host-to-device", "memory set/copy", ""),
    "Memcpy HtoD (Pageable -> Device)": ("Memcpy HtoD (Pageable -> Device)", "memory set/copy", ""),
    "triton_poi_fused__to_copy_mul_silu_3": (
        "triton_poi_fused__to_copy_mul_silu_3",
        "elementwise",
        "",
    ),
    "flash_attention_forward_kernel": ("flash_attention_forward_kernel", "fused attention", ""),
    "aten::mm": ("aten::mm", "matmul", ""),
}


@pytest.mark.parametrize("name", MATMULS)
def test_a_matmul_tells_its_tile_data_type_and_unit(name):
    short, tile, data_type, unit = MATMULS[name]
    assert describe(name) == KernelName(short, data_type, unit, tile, "matmul")


@pytest.mark.parametrize("name", OTHERS)
def test_other_kernels_are_named_after_what_they_compute(name):
    short, category, data_type = OTHERS[name]
    assert describe(name) == KernelName(short, data_type, category=category)


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
        assert describe(full) == KernelName(short, "bf16", "tensor core", "", "fused attention")


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


def test_measured_matmuls_show_the_precision_of_their_run():
    """autocast and TF32 choose the input type: a run in fp32 must show no other, the rest their own
    and fp32's."""
    for name, runs in H100["total_ns"].items():
        found = describe(name)
        if found.category != "matmul" or "splitKreduce" in name:
            continue
        assert found.tile
        assert {H100["precisions"][run] for run in runs} == {found.data_type}
        assert found.unit == ("SIMT" if found.data_type == "fp32" else "tensor core")


def test_an_empty_name_still_has_a_label():
    assert describe("") == KernelName("unnamed", category="other")


def test_long_triton_names_that_differ_in_the_middle_stay_apart():
    first, second = (
        f"triton_red_fused_add_{middle}_{'mul_' * 20}sum_17" for middle in ("div", "exp")
    )
    assert describe(first).short != describe(second).short
    assert describe(first).short.startswith("triton_red_fused_add_div_mul_")
    assert "_17" in describe(first).short
