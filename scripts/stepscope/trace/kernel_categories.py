"""What kind of work a kernel or an operator does, judged by its full name alone.

One table, read from top to bottom: the first rule whose regular expression is found in the name
decides. A name says nothing of the kernel's purpose, so a softmax written as exp, sum and div
counts as elementwise and reduction, and an optimizer written tensor by tensor as elementwise; only
ranges around the calls can tell more.

The names come from Nsight Systems (`kernel<(int)4, ...>`), from torch.profiler (`kernel<4, ...>`,
on a CPU `aten::mm`) and sometimes still mangled (`_ZN2at6native...`). A rule therefore asks for
identifiers and not for what surrounds them. It sees the function's own name alone (`own_name`):
types of parameters, and namespaces that tell of a library and not of work, are taken away; a
template's arguments only count where the function's name says nothing, as `elementwise_kernel` and
`Kernel2` do.
"""

import re
from functools import cache

from .cpp_names import one_spelling, parts_of

CATEGORIES: tuple[str, ...] = (
    "matmul",
    "fused attention",
    "softmax forward",
    "softmax backward",
    "normalisation",
    "elementwise",
    "copy/cast",
    "reduction",
    "optimizer",
    "communication",
    "memory set/copy",
    "other",
)
"""Every category, in the order in which tables and figures show them."""


def _only(operators: str) -> str:
    """A compiled pointwise kernel (TorchInductor names it after the operators that it fuses) of
    these operators only.

    Longer operators come before those that they begin with: the repetition takes the first that
    fits, for good.
    """
    return rf"^(triton_poi|(graph_\d+_)?cpp)_fused(?:_(?:{operators})(?=_|$))++(_\d+)?$"


# Not a kernel that Inductor made of several operators: the names in it may be those of what it
# stands between, as in "triton_poi_fused_all_gather_into_tensor_0".
_CALLED = r"^(?!triton_(poi|red|per|mix|split_scan)_|(graph_\d+_)?cpp_fused).*"

RULES: tuple[tuple[str, str], ...] = (
    # Frames of the autograd engine and calls of the CUDA runtime, whose own time is the host's: the
    # operators inside have rows of their own, so "SoftmaxBackward0" must not count as a softmax,
    # nor "cudaMemcpyAsync" as a copy.
    (
        "other",
        r"^autograd::engine|^\w+Backward\d+$|^(cuda|hip)[A-Z]\w+$"
        r"|^cu(Launch|Mem|Ctx|Stream|Event|Module)\w+$",
    ),
    # Collectives, before everything whose names they also hold: "reduce", "sum", "gather", "copy".
    (
        "communication",
        r"nccl|rccl|msccl|oneccl|nvshmem|rocshmem|^(c10d|gloo|mpi|symm_mem)::|^(gloo|mpi|ucc):"
        r"|record_param_comms|multimem_",
    ),
    # DeepEP and Transformer Engine's userbuffers, of which all kernels send; vLLM, SGLang, AITER
    ("communication", r"deep_ep::|userbuffers|quickreduce|_shot_"),
    (
        "communication",
        _CALLED + r"(?i:cross_device_reduce|all_?reduce|reduce_?scatter|all_?gather|all_?to_?all)",
    ),
    # Device memory operations: "[CUDA memcpy Host-to-Device]" (Nsight Systems), "Memset (Device)"
    # (torch.profiler).
    ("memory set/copy", r"^\[CUDA mem|^(?i:memcpy|memset)\b|^__amd_rocclr_(copy|fill)"),
    # Writing one constant everywhere is a memset, whichever kernel does it.
    (
        "memory set/copy",
        r"FillFunctor|multi_tensor_apply\w*<.*Zero(Functor)?<|^aten::_foreach_zero_$"
        r"|^aten::(zero_|fill_|(new_)?(zeros|ones|full)|(zeros|ones|full)_like)$",
    ),
    (
        "memory set/copy",
        _only(r"zeros_like|new_zeros|zeros|zero|ones_like|ones|full_like|full"),
    ),
    # Many tensors in one launch, but only copied.
    ("copy/cast", r"multi_tensor_apply\w*<.*\bCopy(Functor)?<|^aten::_foreach_copy_?$"),
    # Many tensors in one launch: torch.optim with foreach or fused (its gradient norm too), Apex,
    # bitsandbytes, and "triton_for", Inductor's foreach kernel. On a CPU, _foreach_ operators call
    # the plain operators listed below.
    (
        "optimizer",
        r"multi_tensor_apply|^aten::_(foreach|amp|fused_(adam|adamw|sgd|adagrad))_|^triton"
        r"_for_|^Optimizer\.",
    ),
    (
        "optimizer",
        r"(?i)fused_?(adam|sgd|lamb)|adamw?_(cuda_)?(kernel|step)|kOptimizer"
        r"|kPreconditionOptimizer",
    ),
    # The "math" path of scaled_dot_product_attention is not fused: it calls matmul and softmax.
    ("other", r"_scaled_dot_product_attention_math"),
    # The whole attention in one kernel: FlashAttention 2 and 3, cuDNN, memory-efficient attention,
    # flex attention, own Triton kernels; with what they need before and after (row sums of dO * O,
    # conversion of dQ). Before matmul, as FlashAttention 3 is a cutlass::device_kernel, and before
    # softmax.
    # Filling a cache of keys and values is a copy.
    ("copy/cast", r"(?i)_and_cache|append_?paged|(kv|mla)_(buffer|cache)"),
    (
        "fused attention",
        _CALLED + r"(?i:flash|fmha|sdpa|attention|attn|scaled_dot_product|flex_decoding)",
    ),
    # FlashInfer, FlashMLA, Triton kernels of SGLang
    (
        "fused attention",
        r"(Batch|Single)(Decode|Prefill)|MergeStates?|(?i:mla)_?(fwd|decode|combine)",
    ),
    ("fused attention", r"^_fwd_(grouped_)?kernel(_stage\d)?$"),
    ("fused attention", r"compute_dot_do_o|convert_dq_to_16bits"),
    (
        "fused attention",
        r"^_(forward|backward|rows|keys|queries|scale|split)_kernel$",
    ),  # of stepscope.kernels
    # A Triton template without an operator's name: older versions of PyTorch named flex attention
    # so.
    ("fused attention", r"^triton_tem_fused_\d+$"),
    # Other Triton templates are matrix products, whatever is fused behind them.
    ("matmul", r"^triton_(tem|mm|bmm)"),
    # Softmax and log_softmax of a library; backward first, because its names hold "softmax" too.
    ("softmax backward", r"(?i)^(?=.*soft_?max).*(backward|bwd|grad)"),
    ("softmax forward", r"(?i)soft_?max"),
    # A hand-written softmax that Inductor fused: amax, exp, sum (in alphabetic order). With a log
    # it is a logsumexp.
    (
        "softmax forward",
        r"^(triton_(red|per)|(graph_\d+_)?cpp)_fused(?!\w*_log_)(?=\w*_amax_)(?=\w*_exp_)\w*_sum_",
    ),
    # Layer, RMS, batch and group norm, forward and backward. "norm" alone is the norm of a vector:
    # a reduction.
    (
        "normalisation",
        r"(?i)(layer|rms|batch|group|instance)_?norm|RowwiseMoments|GammaBeta"
        r"|ComputeInternalGradients",
    ),
    ("normalisation", r"ComputeFusedParams|cuComputePartGrad|cuComputeGradInput"),
    # A hand-written RMS norm that Inductor fused.
    ("normalisation", r"^(triton_\w+|(graph_\d+_)?cpp)_fused(?=\w*_mean_)\w*_rsqrt"),
    # cuBLAS, cuBLASLt (nvjet), CUTLASS, Triton. splitKreduce adds up the parts of one product, gemv
    # multiplies with a vector, dot_kernel and reduce_1Block_kernel are cuBLAS's product of two
    # vectors.
    ("matmul", _CALLED + r"(?i:gemm|gemv|nvjet|splitK_?reduce|cutlass|cublas|xmma|wgmma|matmul)"),
    # AMD's Tensile and skinny products, Marlin's of quantised weights, experts in one kernel
    (
        "matmul",
        r"^Cijk_|(?i:wvSplitK)|LLMM1|(?i:marlin|machete)(?!\w*(repack|permute))|^fused_moe_kernel",
    ),
    ("matmul", r"^(void )?dot_kernel|reduce_1Block_kernel|^Kernel2$|^(bmm|mm|addmm)_"),
    (
        "matmul",
        r"^aten::(mm|bmm|addmm|baddbmm|addbmm|addmv|mv|dot|vdot|inner|einsum|linear|linear"
        r"_backward)_?$",
    ),
    ("matmul", r"^aten::_(scaled|int|grouped|weight_int\d\w*)_mm$|^aten::_addmm_activation$"),
    ("matmul", r"^(mkldnn|mkl|onednn)\w*::\w*linear|mkldnn_linear"),
    # On a processor a convolution, and a layer of an LSTM or a GRU: mostly products with weights.
    ("matmul", r"^aten::(mkldnn_(convolution|rnn_layer)|convolution|_?slow_conv\w*?)(_backward)?$"),
    # Values added at an index: the gradients of gather (cross-entropy) and of embedding.
    (
        "reduction",
        r"scatter_gather\w*_kernel.*ReduceAdd|scatter_add|index_?add|indexFunc|indexing_backward",
    ),
    ("reduction", r"(?i)embedding_?(dense_?)?(backward|grad)|embedding_?bag"),
    # FBGEMM's embeddings: rows are added up, and so are their gradients.
    ("reduction", r"(split|dense|ssd)_embedding|embedding\w*_codegen"),
    (
        "reduction",
        r"compute_grad_weight|sum_and_scatter|krn_partial|compute_num_of_partial_segments",
    ),
    # Values that go elsewhere, unchanged or in another type. Gathers, embeddings, flips and
    # concatenations count here: what they cost is the bytes moved.
    (
        "copy/cast",
        r"copy_kernel|CUDAFunctor_copy|CatArray|chunk_cat|split_with_sizes_copy"
        r"|transpose\w*[kK]ernel",
    ),
    ("copy/cast", r"flip_kernel|roll_cuda|gather_kernel|scatter_gather|take_kernel"),
    ("copy/cast", r"index\w*Select|index_(kernel|put|copy)"),
    (
        "copy/cast",
        _only(
            r"_to_copy|convert_element_type|clone|contiguous|copy_|copy|cat|stack|slice"
            r"|select|split|chunk|transpose|permute|t|view|_unsafe_view|reshape|expand"
            r"|unsqueeze|squeeze|constant_pad_nd|flip|roll|repeat|gather|embedding"
            r"|index_select|index"
        ),
    ),
    (
        "copy/cast",
        r"^aten::(copy_|_to_copy|to|type_as|clone|contiguous|cat|stack|flip|roll|repeat)$",
    ),
    (
        "copy/cast",
        r"^aten::(constant_pad_nd|gather|index|index_select|embedding|take|take_along_dim"
        r"|masked_select)$",
    ),
    ("copy/cast", r"^aten::(scatter|index_put|index_copy|_index_put_impl|repeat_interleave)_?$"),
    # Sorting, selecting and their bookkeeping (in a training step: before the gradient of a large
    # embedding) are none of the kinds shown here.
    (
        "other",
        r"(?i)radix_?sort|merge_?sort|bitonic|unique_?by_?key|top_?k|DeviceCompactInit"
        r"|DeviceSelect|^aten::sort",
    ),
    # Inductor's other kernels: "red", "per" (persistent) and "split_scan" reduce, "poi" does not.
    # The C++ that it makes for a CPU has no such mark: there the operators tell.
    ("reduction", r"^triton_(red|per|mix|split_scan)_"),
    ("reduction", r"^(graph_\d+_)?cpp_fused\w*_(sum|mean|amax|amin|argmax|norm|prod)_"),
    ("elementwise", r"^triton_|^(graph_\d+_)?cpp_fused"),
    # Many values become one; prefix sums and the loss (a mean over the tokens) too.
    (
        "reduction",
        r"reduce_kernel|Reduce\w*Kernel|DeviceScan|scan_(kernel|dim|innermost|outer)|nll"
        r"_loss\w*_forward",
    ),
    (
        "reduction",
        r"^aten::(sum|nansum|mean|amax|amin|max|min|aminmax|argmax|argmin|prod|all|any|median)$",
    ),
    ("reduction", r"^aten::(std|var|var_mean|logsumexp|norm|linalg_vector_norm|cumsum|cumprod)_?$"),
    ("reduction", r"^aten::(nll_loss|nll_loss_nd|cross_entropy_loss)$"),
    # One value for each element; random numbers, masks and ranges count too.
    (
        "elementwise",
        r"(?i)elementwise|pointwise|_kernel_cuda|_cuda_kernel|dropout|triu_tril|nll_loss\w*"
        r"_backward",
    ),
    ("elementwise", r"(?i)swiglu|silu|gelu|act_and_mul|rotary|rope_|arange|linspace"),
    # Composable Kernel (AMD): what is nothing of the above is a product.
    ("matmul", r"^(void )?ck(_tile)?::"),
    (
        "elementwise",
        r"^aten::(add|sub|rsub|mul|div|true_divide|floor_divide|remainder|fmod|pow|square"
        r"|sqrt|rsqrt|reciprocal|neg|abs"
        r"|sign|exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|tanh|sigmoid|erf|erfc|silu"
        r"|gelu|relu|leaky_relu|elu"
        r"|hardtanh|hardswish|softplus|mish|glu|threshold|clamp|clamp_min|clamp_max|clip"
        r"|minimum|maximum|fmax|fmin"
        r"|where|masked_fill|lerp|addcmul|addcdiv|eq|ne|lt|le|gt|ge|isnan|isinf|isfinite"
        r"|logical_(and|or|not|xor)"
        r"|bitwise_(and|or|not)|__(and|or|xor)__|floor|ceil|round|trunc|nan_to_num|tril|triu"
        r"|native_dropout"
        r"|bernoulli|normal|uniform|rand|randn|randint|arange|linspace|outer|ger|polar|complex"
        r"|mse_loss|smooth_l1_loss)_?(_backward)?$",
    ),
)
"""(category, regular expression searched in the own name): the first match decides; without any it
is "other"."""

# Functions whose name says nothing: what they do stands in their template's arguments.
_GENERIC = re.compile(
    r"elementwise|reduce_kernel|multi_tensor_apply|scatter_gather|for_each|parallel_for"
    r"|(^|:)((device|global)_?)?[kK]ernel\d?$|(^|:)kentry$"
)
# Namespaces of libraries with a word of other work in their name.
_NAMESPACE = re.compile(r"(fbgemm(_gpu)?|flashinfer|flash_?attn|deep_gemm)::")

_MOST_READ = 16384  # characters of a full name: the rules' time grows with its square

_DIGITS = re.compile(r"\d{1,4}")  # of an identifier, in front of it


@cache
def category_of(full_name: str) -> str:
    """The category, one of `CATEGORIES`, of a kernel, a memory operation or a CPU operator with
    this full name."""
    name = own_name(full_name[:_MOST_READ])
    fits = (category for category, expression in RULES if re.search(expression, name))
    return next(fits, "other")


def own_name(full_name: str) -> str:
    """A function's name with its namespaces, without the types of its parameters, and without its
    template's arguments unless they are all that says what it does."""
    if full_name.startswith("_Z"):
        head, template = unmangled(full_name)
    else:
        name = one_spelling(full_name)
        head = re.split(r"[<(]", name, maxsplit=1)[0]
        template = ", ".join(parts_of(name).arguments)
    says_nothing = template and _GENERIC.search(head.strip())
    return _NAMESPACE.sub("", f"{head}<{template}>" if says_nothing else head)


def unmangled(name: str) -> tuple[str, str]:
    """(the identifiers of a mangled function's name, what follows it: template and parameters)."""
    at = 3 if name.startswith("_ZN") else 2
    found = []
    while length := _DIGITS.match(name, at):
        at = length.end() + int(length[0])
        found.append(name[length.end() : at])
    return "::".join(found), name[at:]
