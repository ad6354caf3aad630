"""Short names for GPU kernels that still tell them apart, with what the full name says of tile,
data type and unit.

A profiler's own short name (`Kernel2`, `vectorized_elementwise_kernel`) drops what distinguishes a
multiplication from an addition. Here the functor, the data types and the tile stay: "cutlass simt
sgemm 128x256 8x4 nt", "mul bf16 (vectorized x8)". In the names of matrix products `128x256 8x4` is
CUTLASS's notation: a block computes a tile of 128 × 256 results, 8 deep at a time, in 4 stages.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache

from stepscope.trace import product_names
from stepscope.trace.cpp_names import (
    DATA_TYPES,
    TYPES,
    Function,
    KernelName,
    data_type_of,
    digits,
    one_spelling,
    parts_of,
    template_arguments,
    words_of,
)
from stepscope.trace.kernel_categories import category_of, unmangled

LONGEST = 60  # characters of a short name
# Characters of a full name: what tells kernels apart stands before, and made-up names may be
# endless.
_MOST_READ = 4096


@cache
def describe(full: str) -> KernelName:
    """A kernel's short name, of at most LONGEST characters, category, tile, data type and unit,
    from its full name; what the name hides stays ""."""
    category = category_of(full)
    name = one_spelling(full[:_MOST_READ])
    if not name:
        return KernelName("unnamed", category=category)
    reader, match = next(
        (reader, found) for pattern, reader in _READERS if (found := re.search(pattern, name))
    )
    read = reader(match, parts_of(name[match.start() :]))
    data_type = read.data_type if read.data_type in DATA_TYPES else ""
    return read._replace(short=_cut(read.short, full), category=category, data_type=data_type)


def shorts(names: Iterable[str]) -> list[str]:
    """The short name of each."""
    return [describe(name).short for name in names]


def _cut(short: str, full: str) -> str:
    """The short name itself, or when it is too long its two ends and four digits that stand for the
    rest."""
    short = " ".join(short.split())
    if len(short) <= LONGEST:
        return short
    tail = re.search(r"_\d{1,6}$", short)
    end = f"…{tail[0] if tail else ''} {digits(full)}"
    return short[: LONGEST - len(end)] + end


# ---- ATen: pointwise kernels, reductions, moves by index

# the lambdas of ATen's PowKernel.cu in order
_POWERS = {
    "1": "square",
    "2": "cube",
    "3": "inverse square",
    "4": "pow",
}


_WRAPPERS = ("gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_index_kernel")
_SIDES = {
    "BinaryFunctor": "",
    "AUnaryFunctor": " by left scalar",
    "BUnaryFunctor": " by scalar",
}
_COPIED_TO = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "float8": "fp8",
}


def _operation(functor: str) -> tuple[str, str]:
    """What a pointwise functor computes and on which data type: ("mul by scalar", "bf16")."""
    function = parts_of(functor)
    base = function.base
    lambdas = re.findall(r"\{lambda\(([^()]*)\)#(\d+)\}", functor)
    signature, instance = lambdas[-1] if lambdas else ("", "")
    data_type = data_type_of(function.at(0)) or data_type_of(signature.split(",")[0])
    if base in _WRAPPERS and function.arguments:
        return _operation(function.at(0))
    if base in _SIDES and function.arguments:
        words, inner = _operation(function.arguments[-1])
        return words + _SIDES[base], data_type or inner
    if found := re.match("CUDAFunctor(OnSelf)?_", base):
        words = words_of(base[found.end() :])
        return f"{words} scalar" if found[1] else words, data_type
    if base == "direct_copy_kernel_cuda":
        return "copy", data_type
    if to := re.match(r"(bfloat16|float16|float8)_copy_kernel", base):
        return f"copy {data_type} → {_COPIED_TO[to[1]]}", ""
    if base.startswith("pow_tensor_scalar_kernel"):
        return _POWERS.get(instance, "pow"), data_type
    words = words_of(base)
    return words if instance in ("", "1") else f"{words} #{instance}", data_type


_HOW = {
    "elementwise_kernel": "strided",
    "index_elementwise_kernel": "indexed",
    "elementwise_kernel_with_index": "by index",
}


def _elementwise(match: re.Match, function: Function) -> KernelName:
    base, arguments = function
    functors = [a for a in arguments if a and not re.fullmatch(r"-?\d+", a) and not data_type_of(a)]
    words, data_type = _operation(functors[0]) if functors else ("elementwise", "")
    how = _HOW.get(base) or words_of(base.removesuffix("_kernel").replace("elementwise", ""))
    if "vectorized" in base and function.at(0).isdigit():
        how += f" x{function.at(0)}"
    if re.search("gpu_kernel_impl<|LoadWithCast", match.string):
        how += ", cast"
    if words == "copy" and how.endswith("cast"):
        words = "copy to"
    element = data_type or (words.split()[1] if words.startswith("copy ") else "")
    return KernelName(f"{words} {data_type} ({how})", element)


def _reduction(match: re.Match, function: Function) -> KernelName:
    operation = next((a for a in function.arguments if not a.isdigit()), "")
    inner = parts_of(operation)
    data_type = data_type_of(inner.at(0))
    wrapped = parts_of(inner.at(1) or operation)
    if wrapped.base == "func_wrapper_t" and wrapped.at(1):
        wrapped = parts_of(wrapped.at(1))
    words = re.sub("^(max|min) nan$", r"\1", words_of(wrapped.base))
    result = data_type_of(inner.at(3)) if inner.at(3) else data_type
    types = data_type if result in (data_type, "") else f"{data_type} → {result}"
    return KernelName(f"{words} {types} (reduce {'x'.join(function.numbers)})", data_type)


def _scatter_gather(match: re.Match, function: Function) -> KernelName:
    name = match.string
    inner = re.search(r"_internal_kernel(<[^()]*?>)::operator\(\)<(?:[\w:]*::)?(\w+)>", name)
    if not inner:
        return _plain(match, parts_of(name))
    scatters, data_type, *_ = [*template_arguments(inner[1], 0), "", ""]
    verb = "scatter" if scatters == "1" else "gather"
    if inner[2] != "TensorAssign":
        verb += " " + words_of(inner[2].removeprefix("Reduce"))
    data_type = data_type_of(data_type)
    return KernelName(f"{verb} {data_type}", data_type)


def _multi_tensor(match: re.Match, function: Function) -> KernelName:
    functor = parts_of(function.at(1))
    applied = function.at(2)
    data_type = next(iter(functor.types), "")
    if functor.base.startswith("FusedAdam"):  # <type, lists, ADAM_MODE, amsgrad>
        operation = "w" if functor.at(2) == "1" else ""
        variant = " amsgrad" if functor.at(3) == "1" else ""
        return KernelName(f"fused adam{operation} {data_type}{variant} (multi tensor)", data_type)
    operation = "" if data_type_of(applied) else words_of(parts_of(applied).base)
    lists = re.search(r"Metadata<(\d+)", match.string)
    how = f"multi tensor {lists[1]}" if lists else "multi tensor"
    shown = [words_of(functor.base), operation, data_type, *functor.numbers, f"({how})"]
    return KernelName(" ".join(shown), data_type)


# ---- everything else


def _flash(match: re.Match, function: Function) -> KernelName:
    traits = parts_of(function.at(0))
    data_type = next((each for each in traits.types if each in DATA_TYPES), "")
    numbers = traits.numbers
    shape = f"d{numbers[0]} {numbers[1]}x{numbers[2]}" if len(numbers) > 2 else ""
    causal = "causal" if function.at(2) == "1" else ""
    words = words_of(function.base).replace(" loop seqk parallel", "")
    return KernelName(f"{words} {data_type} {shape} {causal}", data_type, "tensor core")


_ELEMENT = re.compile(r"bfloat16_t|half_t|float_e4m3_t|(?<=_)(bf16|f16|f32|e4m3)(?=_)")


def _attention(match: re.Match, function: Function) -> KernelName:
    """Of FlashAttention 3 the function, of PyTorch's and cuDNN's own the whole name."""
    found = _ELEMENT.search(match.string)
    data_type = TYPES[found[0]] if found else ""
    unit = "" if data_type == "fp32" or "sm50" in match[0] else "tensor core"
    if function.arguments:
        return KernelName(
            f"{words_of(match[1])} {data_type} {digits(match.string)}", data_type, unit
        )
    text = re.sub("_generated_fort_native|_kernel0_0$", "", match[0])
    return KernelName(text.replace("_", " "), data_type, unit)


def _softmax(match: re.Match, function: Function) -> KernelName:
    base = function.base
    types = list(dict.fromkeys(function.types))
    # softmax_warp_*<input, output, sum, log2 of the length, is_log_softmax, is_masked>
    log = "LogSoftMax" in match.string or (
        base.startswith("softmax_warp") and function.at(4) == "1"
    )
    words = ("log " if log else "") + words_of(base)
    return KernelName(" ".join([words, *types, *function.numbers[:1]]), "".join(types[:1]))


def _nccl(match: re.Match, function: Function) -> KernelName:
    parts = [TYPES.get(part, part) for part in match[1].split("_")]
    data_type = next((part for part in parts if part in DATA_TYPES), "")
    return KernelName("nccl " + " ".join(map(words_of, parts)), data_type)


def _memory(match: re.Match, function: Function) -> KernelName:
    return KernelName(match[1].lower())


def _as_is(match: re.Match, function: Function) -> KernelName:
    return KernelName(match.string)


def _mangled(match: re.Match, function: Function) -> KernelName:
    """The function of a mangled name, and digits for the rest."""
    name = unmangled(match.string)[0].rpartition("::")[2]
    return KernelName(f"{words_of(name)[: LONGEST - 6]} {digits(match.string)}")


_NAMELESS = ("kernel", "Kernel", "Kernel2", "device_kernel", "globalKernel")


def _plain(match: re.Match, function: Function) -> KernelName:
    """Any other C++ name: the function in words, its data types and numbers in brackets."""
    base, arguments = function
    types = function.types
    values = [
        data_type_of(a) or (a if re.fullmatch(r"-?\d+", a) else words_of(parts_of(a).base))
        for a in arguments
    ]
    others = [each for each in types if each in DATA_TYPES and each != "fp32"]
    data_type = (others or [each for each in types if each == "fp32"] or [""])[0]
    words = words_of(base)
    if base in _NAMELESS:  # internal::gemvx::kernel<...>: the namespaces say what it is
        spaces = re.split(r"[^\w:]", match.string, maxsplit=1)[0].split("::")[:-1]
        said = [space for space in spaces if space not in ("at", "native", "impl", "internal")]
        words = " ".join(map(words_of, said))
    words += f" ({', '.join(values)})" if values else ""
    hidden = any("<" in argument and not data_type_of(argument) for argument in arguments)
    words += " " + digits("".join(arguments)) if hidden else ""
    return KernelName(words, data_type, product_names.product_unit(base))


# A reader takes what a pattern found in a name, and the function that begins there.
_Reader = Callable[[re.Match, Function], KernelName]

_READERS: tuple[tuple[str, _Reader], ...] = (
    # Names written for people: Triton's, ATen's operators.
    (r"^(triton_|aten::|cpp_fused|mkldnn|mkl::|autograd::)", _as_is),
    (r"^\[CUDA (mem\w+(?: [\w-]+)?)\]$", _memory),
    (r"^Mem(cpy|set) ", _as_is),
    (r"nccl(?:Dev)?Kernel_(\w+)", _nccl),
    (
        r"nvjet_(?:sm(?P<arch>\d+)_)?(?P<letters>[a-z]+)_(?:mma_)?(?P<shape>\d+x\d+)"
        r"(?:x(?P<k>\d+))?_(?P<depth>\d+(?:x\d+)?)(?P<rest>\w*)",
        product_names.nvjet,
    ),
    (
        r"sm(?P<arch>\d+)_xmma_(?P<kind>\w{0,30}?gemm\w{0,30}?)_"
        r"(?P<types>[a-z]{1,8}\d[a-z0-9_]{0,40}?)_(?P<layout>[nt]{2})_[nt]_"
        r"tilesize(?P<tile>\d+x\d+x\d+)(?P<rest>\w*)",
        product_names.xmma,
    ),
    (r"cutlass_(?P<arch>\d+)_(?P<text>\w*?gemm\w*?)(?=$|[^\w]|EEv)", product_names.cutlass),
    (r"(maxwell|volta|turing|ampere|hopper|blackwell)_\w*gemm\w*", product_names.by_generation),
    (r"flash_(fwd|bwd)_\w+(?=<)", _flash),
    (
        r"(FlashAttn\w+)(?=<)|fmha_cutlass[FB]_\w+|cudnn_generated_fort_native_sdpa_\w+",
        _attention,
    ),
    (r"(?<!\w)(?=\w*[sS]oft_?[mM]ax)\w++(?=<)", _softmax),
    (r"^_Z", _mangled),
    (r"multi_tensor_apply_kernel(?=<)", _multi_tensor),
    (r"_scatter_gather_elementwise_kernel(?=<)", _scatter_gather),
    (r"(?<!\w)(?=\w*elementwise_)\w++(?=<)", _elementwise),
    (r"(?<!\w)reduce_kernel(?=<)", _reduction),
    (r"splitKreduce_kernel(?=<)", product_names.split_k_reduce),
    (r"^(?=.*([<(]|::))", _plain),
    (r"", _as_is),
)
