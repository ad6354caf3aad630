"""Categories of kernels and operators; the expected ones follow from what the code behind each name
does."""

import json
from pathlib import Path

import pytest
from stepscope.trace.kernel_categories import category_of

H100 = json.loads((Path(__file__).parent / "kernel_names_h100.json").read_text())
ATEN = "void at::native::"

KERNELS = {
    "matmul": (
        "nvjet_sm90_tst_128x128_64x6_2x4_h_bz_NTT",
        "nvjet_sm100_tst_64x32_64x16_2x1_2cta_v_bz_TNT",
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma"
            "_aligna4_alignc4_execute"
        ),
        "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>(T1::Params)",
        "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int>>(T1::Params)",
        "_ZN7cutlass7Kernel2I45cutlass_80_simt_sgemm_128x256_8x4_nt_align1EEvNT_6ParamsE",
        "Kernel2",
        "ampere_sgemm_128x64_tn",
        "volta_sgemm_128x64_nn",
        (
            "void cublasLt::splitKreduce_kernel<(int)32, (int)16, int,"
            " float>(cublasLt::cublasSplitKParams<T6>)"
        ),
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(int)",
        "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false>(int)",
        "void dot_kernel<float, 128, 0>(int)",
        "void reduce_1Block_kernel<float, 128, 7>(int)",
        "triton_mm",
        "triton_tem_fused_mm_3",
        "triton_tem_fused__softmax_addmm_3",
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_MT256x128x64_MI16x16x1",
        "void ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm<1>>(int)",
        "void ck_tile::kentry<256, 1, ck_tile::GemmKernel<int>>(int)",
        "void wvSplitK_hf_sml_<__half, 64, 2, 16, 8, 2, 1>(int)",
        "void marlin::Marlin<__nv_bfloat16, 256>(int4 const*)",
        "fused_moe_kernel",
        "mkldnn::_linear_pointwise",
        "mkl::_mkl_linear",
    ),
    "fused attention": (
        (
            "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4,"
            " cutlass::half_t>>(int)"
        ),
        (
            "void pytorch_flash::flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<64, 128,"
            " 128>>(int)"
        ),
        (
            "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90"
            "<int>>>(T1::Params)"
        ),
        (
            "fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel"
            "<float>::Params)"
        ),
        (
            "fmha_cutlassB_bf16_aligned_128x64_k64_sm80(PyTorchMemEffAttention:"
            ":AttentionBackwardKernel<float>::Params)"
        ),
        (
            "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x1x1"
            "_kernel0_0"
        ),
        "void cudnn::fusion::compute_dot_do_o_specialized<true>(int)",
        "triton_tem_fused_flex_attention_0",
        "triton_tem_fused_flex_attention_backward_2",
        "triton_tem_fused_0",
        "flash_attention_forward_kernel",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<1>(int)",
        "_fwd_grouped_kernel_stage1",
        "ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<int>>(int)",
    ),
    "softmax forward": (
        ATEN + "(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float,"
        " SoftMaxForwardEpilogue>(float*)",
        (
            "void <unnamed>::softmax_warp_forward<float, float, float, (int)9, (bool)0, (bool)0>(T2"
            " *, const T1 *)"
        ),
        "_ZN43_GLOBAL__N__c52f6ba5_20softmax_warp_forwardIfffLi9ELb0ELb0EEEvPT0_PKT_iiiPKbib",
        "triton_per_fused__softmax_3",
        "triton_red_fused__log_softmax_nll_loss_forward_3",
        "triton_red_fused_amax_div_exp_sub_sum_3",
    ),
    "softmax backward": (
        ATEN + "(anonymous namespace)::cunn_SoftMaxBackward<4, float, float, float,"
        " SoftMaxBackwardEpilogue>(float*)",
        (
            "void <unnamed>::softmax_warp_backward<float, float, float, (int)9, (bool)0,"
            " (bool)0>(T2 *, const T1 *)"
        ),
        "triton_red_fused__softmax__softmax_backward_data_mul_1",
    ),
    "normalisation": (
        ATEN + "<unnamed>::vectorized_layer_norm_kernel<float, float, (bool)0>(int, T2)",
        ATEN + "<unnamed>::GammaBetaBackwardCUDAKernel<float, float>(long)",
        "void rms_norm_kernel<float>(float*)",
        "triton_red_fused_native_layer_norm_2",
        "triton_red_fused_add_mean_mul_pow_rsqrt_0",
        "triton_per_fused__to_copy_mean_mul_pow_rsqrt_0",
        "void flashinfer::norm::RMSNormKernel<8u, half>(half*)",
    ),
    "elementwise": (
        ATEN
        + "vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>>(int, T2, T3)",
        (
            "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor"
            "_addIfEESt5arrayIPcLm3EEEEviT0_T1_"
        ),
        ATEN + "elementwise_kernel<MulFunctor<float>>",
        ATEN + "<unnamed>::fused_dropout_kernel_vec<float, float>(int)",
        "triton_poi_fused__to_copy_mul_silu_4",
        "triton_poi_fused_clone_exp_2",
        "graph_0_cpp_fused_mul_silu_1",
        # Inductor's names are those of what it fused, and of what it stands between
        "triton_poi_fused_all_gather_into_tensor_add_0",
        "triton_poi_fused_add_addmm_relu_3",
        "triton_poi_fused__scaled_dot_product_flash_attention_add_2",
    ),
    "copy/cast": (
        ATEN + "elementwise_kernel<128, 2,"
        " at::native::direct_copy_kernel_cuda(int)::{lambda(float)#1}>(int)",
        ATEN
        + "vectorized_elementwise_kernel<(int)8, at::native::bfloat16_copy_kernel_cuda(int)>(int)",
        ATEN + "<unnamed>::CatArrayBatchedCopy<at::native::<unnamed>::OpaqueType<(unsigned"
        " int)2>>(T1 *)",
        ATEN + "index_elementwise_kernel<128, 4, at::native::flip_kernel_impl<int>>(long)",
        ATEN + "vectorized_gather_kernel<(int)16, long>(char *)",
        ATEN + "indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>(int)",
        ATEN + "_scatter_gather_elementwise_kernel<128, 8, internal::operator"
        " ()<at::native::TensorAssign>>(int)",
        "triton_poi_fused__to_copy_0",
        "triton_poi_fused_clone_transpose_view_11",
        "triton_poi_fused__to_copy_index_select",
        "void vllm::reshape_and_cache_flash_kernel<half>(half const*)",
        "aten::_foreach_copy_",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>,"
        " UnaryOpFunctor<long, 2, 1, 1>, at::native::Copy<long, long> >(int)",
    ),
    "reduction": (
        ATEN
        + "reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float>, unsigned"
        " int>>(T3)",
        ATEN + "reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float>,"
        " unsigned int>>(T3)",
        ATEN + "_scatter_gather_elementwise_kernel<128, 8, internal::operator"
        " ()<at::native::ReduceAdd>>(int)",
        ATEN + "<unnamed>::embedding_backward_feature_kernel<float, float, long>(const T3 *)",
        "void at_cuda_detail::cub::detail::scan::DeviceScanKernel<int>(T2)",
        ATEN + "<unnamed>::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(T1 *)",
        "triton_red_fused_sum_3",
        "triton_red_fused_amax_exp_log_sub_sum_3",
        "triton_poi_fused_embedding_dense_backward_1",
        "void fbgemm_gpu::split_embedding_codegen_forward_unweighted_kernel<float>(int)",
    ),
    "optimizer": (
        ATEN + "<unnamed>::multi_tensor_apply_kernel<TensorListMetadata<(int)2>,"
        " BinaryOpScalarFunctor<float>>(T1)",
        ATEN + "(anonymous namespace)::multi_tensor_apply_kernel<L<4>, FusedAdamMathFunctor<float,"
        " 4>>(int)",
        "triton_for_fused_0",
        "Optimizer.step#AdamW.step",
    ),
    "communication": (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
        "nccl:all_reduce",
        "c10d::allreduce_",
        "void deep_ep::intranode::dispatch<8, 768>(int4*)",
        "userbuffers_fp16_sum_inplace_gpu_rr_rs_oop(int)",
    ),
    "memory set/copy": (
        "[CUDA memcpy Host-to-Device]",
        "[CUDA memset]",
        "Memcpy DtoH (Device -> Pinned)",
        "Memset (Device)",
        ATEN + "vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int, T2, T3)",
        "triton_poi_fused_zeros_0",
        "__amd_rocclr_copyBuffer.kd",
        "aten::_foreach_zero_",
    ),
    "other": (
        "",
        "<|\"'",
        "x" * 2000,
        "void at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortOnesweepKernel<int>(T7 *)",
        "cudaMemcpyAsync",
        "cudaLaunchKernel",
        # types of parameters and of templates, and a library's namespace, say nothing
        "void my_kernel<float>(flash::Params)",
        "void fbgemm_gpu::some_kernel<cutlass::half_t>(cutlass::gemm::GemmCoord)",
        "_ZN10fbgemm_gpu11some_kernelIN7cutlass4gemm9GemmCoordEEEvT_",
        "SoftmaxBackward0",
        "autograd::engine::evaluate_function: SoftmaxBackward0",
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
        "ProfilerStep#3",
    ),
}

CPU_OPERATORS = {
    "matmul": "mm addmm bmm baddbmm linear matmul einsum mv dot",
    "fused attention": (
        "_scaled_dot_product_flash_attention_for_cpu "
        "_scaled_dot_product_flash_attention_for_cpu_backward scaled_dot_product_attention"
    ),
    "softmax forward": "softmax _softmax log_softmax _log_softmax",
    "softmax backward": "_softmax_backward_data _log_softmax_backward_data",
    "normalisation": (
        "layer_norm native_layer_norm native_layer_norm_backward rms_norm _fused_rms_norm"
    ),
    "elementwise": (
        "mul mul_ add add_ sub div div_ exp log neg pow sqrt rsqrt reciprocal silu silu_backward"
        " where lerp_ addcdiv_ addcmul_ masked_fill_ eq gt maximum tanh triu arange normal_"
        " nll_loss_backward"
    ),
    "copy/cast": "copy_ _to_copy to clone contiguous cat flip gather index index_select embedding",
    "reduction": (
        "sum mean amax max argmax logsumexp linalg_vector_norm scatter_add_ index_add_ "
        "embedding_dense_backward nll_loss_forward"
    ),
    "optimizer": "_foreach_add_ _foreach_lerp_ _foreach_norm _fused_adamw_",
    "memory set/copy": "zero_ zeros zeros_like fill_ full new_zeros ones_like",
    "other": (
        "empty empty_like view transpose t as_strided detach item _local_scalar_dense "
        "_scaled_dot_product_attention_math"
    ),
}


ALL = {name: category for category, names in KERNELS.items() for name in names}
ALL |= {
    f"aten::{name}": category for category, names in CPU_OPERATORS.items() for name in names.split()
}


@pytest.mark.parametrize("name", ALL)
def test_the_category_of_a_kernel_or_operator(name):
    assert category_of(name) == ALL[name]


@pytest.mark.parametrize("run", H100["precisions"])
def test_little_of_a_measured_steps_time_is_other(run):
    times = {name: runs[run] for name, runs in H100["total_ns"].items() if run in runs}
    other = sum(time for name, time in times.items() if category_of(name) == "other")
    assert other < 0.05 * sum(times.values())
