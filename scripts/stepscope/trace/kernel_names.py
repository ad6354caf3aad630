"""Short names for GPU kernels that still tell them apart, with what the full name says of tile
and unit.

A profiler's own short name (`Kernel2`, `vectorized_elementwise_kernel`) drops what distinguishes a
multiplication from an addition. Here the functor, the data types and the tile stay: "cutlass simt
sgemm 128x256 8x4 nt", "mul bf16 (vectorized x8)". In the names of matrix products `128x256 8x4` is
CUTLASS's notation: a block computes a tile of 128 × 256 results, 8 deep at a time, in 4 stages.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from . import product_names
from .cpp_names import (
    TYPES,
    Function,
    data_type_of,
    digits,
    one_spelling,
    parts_of,
    words_of,
)
from .kernel_categories import category_of, unmangled

LONGEST = 60  # characters of a short name
# Characters of a full name: what tells kernels apart stands before, and made-up names may be
# endless.
_MOST_READ = 4096


# Rows, columns and, where it is there, depth of a product's tile.
_TILE = re.compile(r"(?:nvjet|gemm)\w*?_(?:tilesize)?(\d+x\d+)(?:(?:[x_]|\w*_stages_)(\d+))?")
# What products and attention are computed by, the first that is found: an instruction's shape or
# "tensorop" is a tensor core's.
_UNITS = {
    "SIMT": r"simt|_ffma|(^|[\W_])[sdhcz]gemm",
    "tensor core": r"nvjet|_tensor(op|\d)|warpgroup|[whi]g?mma|_mma|[sdhi]\d{3,}\w*gemm"
    r"|flash_(fwd|bwd)_|FlashAttn|fmha_cutlass\w_b?f16\w*_sm[^5]|_sdpa_",
}


class KernelName(NamedTuple):
    """What a kernel's full name says; what it hides stays ""."""

    short: str  # different for other functors, data types and tiles
    category: str  # one of CATEGORIES of kernel_categories.py
    # Of a matmul and attention: "tensor core" or "SIMT" (the ordinary arithmetic units)
    unit: str = ""
    # Of a matmul rows, columns and depth of the tile that a block computes: "128x256x8"; "128x64"
    # without the depth.
    tile: str = ""


@cache
def describe(full: str) -> KernelName:
    """A kernel's short name, of at most LONGEST characters, and what else its full name says."""
    category = category_of(full)
    name = one_spelling(full[:_MOST_READ])
    if not name:
        return KernelName("unnamed", category)
    found = ((reader, re.search(pattern, name)) for pattern, reader in _READERS)
    reader, match = next((reader, match) for reader, match in found if match)
    short = _cut(reader(match, parts_of(name[match.start() :])), full)
    if category not in ("matmul", "fused attention"):
        return KernelName(short, category)
    units = (unit for unit, pattern in _UNITS.items() if re.search(pattern, name))
    tile = _TILE.search(name) if category == "matmul" else None
    shape = "x".join(filter(None, tile.groups())) if tile else ""
    return KernelName(short, category, next(units, ""), shape)


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


def _elementwise(match: re.Match, function: Function) -> str:
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
    return f"{words} {data_type} ({how})"


def _reduction(match: re.Match, function: Function) -> str:
    operation = next((a for a in function.arguments if not a.isdigit()), "")
    inner = parts_of(operation)
    data_type = data_type_of(inner.at(0))
    wrapped = parts_of(inner.at(1) or operation)
    if wrapped.base == "func_wrapper_t" and wrapped.at(1):
        wrapped = parts_of(wrapped.at(1))
    words = re.sub("^(max|min) nan$", r"\1", words_of(wrapped.base))
    result = data_type_of(inner.at(3)) if inner.at(3) else data_type
    types = data_type if result in (data_type, "") else f"{data_type} → {result}"
    return f"{words} {types} (reduce {'x'.join(function.numbers)})"


_MOVES = r"_internal_kernel<(\d), ([^,]+)[^()]*>::operator\(\)<(?:[\w:]*::)?(\w+)>"


def _scatter_gather(match: re.Match, function: Function) -> str:
    inner = re.search(_MOVES, match.string)
    if not inner:
        return _plain(match, parts_of(match.string))
    scatters, element, operation = inner.groups()
    verb = "scatter" if scatters == "1" else "gather"
    words = "" if operation == "TensorAssign" else words_of(operation.removeprefix("Reduce"))
    return f"{verb} {words} {data_type_of(element)}"


def _multi_tensor(match: re.Match, function: Function) -> str:
    functor = parts_of(function.at(1))
    applied = function.at(2)
    data_type = next(iter(functor.types), "")
    if functor.base.startswith("FusedAdam"):  # <type, lists, ADAM_MODE, amsgrad>
        operation = "w" if functor.at(2) == "1" else ""
        variant = " amsgrad" if functor.at(3) == "1" else ""
        return f"fused adam{operation} {data_type}{variant} (multi tensor)"
    operation = "" if data_type_of(applied) else words_of(parts_of(applied).base)
    lists = re.search(r"Metadata<(\d+)", match.string)
    how = f"multi tensor {lists[1]}" if lists else "multi tensor"
    return " ".join([words_of(functor.base), operation, data_type, *functor.numbers, f"({how})"])


# ---- everything else


def _flash(match: re.Match, function: Function) -> str:
    traits = parts_of(function.at(0))
    data_type = next(iter(traits.types), "")
    numbers = traits.numbers
    shape = f"d{numbers[0]} {numbers[1]}x{numbers[2]}" if len(numbers) > 2 else ""
    causal = "causal" if function.at(2) == "1" else ""
    words = words_of(function.base).replace(" loop seqk parallel", "")
    return f"{words} {data_type} {shape} {causal}"


def _flash_of_hopper(match: re.Match, function: Function) -> str:
    """Of FlashAttention 3, whose tiles and masks are types: the function, and digits for them."""
    element = re.search("bfloat16_t|half_t|float_e4m3_t", match.string)
    data_type = TYPES[element[0]] if element else ""
    return f"{words_of(match[1])} {data_type} {digits(match.string)}"


def _spaced(match: re.Match, function: Function) -> str:
    """Of attention of PyTorch's and cuDNN's own, and old products, the whole name."""
    return re.sub("_generated_fort_native|_kernel0_0$", "", match[0]).replace("_", " ")


def _softmax(match: re.Match, function: Function) -> str:
    base = function.base
    # softmax_warp_*<input, output, sum, log2 of the length, is_log_softmax, is_masked>
    log = "LogSoftMax" in match.string or (
        base.startswith("softmax_warp") and function.at(4) == "1"
    )
    words = ("log " if log else "") + words_of(base)
    return " ".join([words, *dict.fromkeys(function.types), *function.numbers[:1]])


def _nccl(match: re.Match, function: Function) -> str:
    parts = [TYPES.get(part, part) for part in match[1].split("_")]
    return "nccl " + " ".join(map(words_of, parts))


def _memory(match: re.Match, function: Function) -> str:
    return match[1].lower()


def _as_is(match: re.Match, function: Function) -> str:
    return match.string


def _mangled(match: re.Match, function: Function) -> str:
    """The function of a mangled name, and digits for the rest."""
    name = unmangled(match.string)[0].rpartition("::")[2]
    return f"{words_of(name)[: LONGEST - 6]} {digits(match.string)}"


_NAMELESS = ("kernel", "Kernel", "Kernel2", "device_kernel", "globalKernel")


def _plain(match: re.Match, function: Function) -> str:
    """Any other C++ name: the function in words, its data types and numbers in brackets."""
    base, arguments = function
    values = [
        data_type_of(a) or (a if re.fullmatch(r"-?\d+", a) else words_of(parts_of(a).base))
        for a in arguments
    ]
    words = words_of(base)
    if base in _NAMELESS:  # internal::gemvx::kernel<...>: the namespaces say what it is
        spaces = re.split(r"[^\w:]", match.string, maxsplit=1)[0].split("::")[:-1]
        said = [space for space in spaces if space not in ("at", "native", "impl", "internal")]
        words = " ".join(map(words_of, said))
    words += f" ({', '.join(values)})" if values else ""
    hidden = any("<" in argument and not data_type_of(argument) for argument in arguments)
    return words + (" " + digits("".join(arguments)) if hidden else "")


# A reader takes what a pattern found in a name, and the function that begins there.
_Reader = Callable[[re.Match, Function], str]

_READERS: tuple[tuple[str, _Reader], ...] = (
    # Names written for people: Triton's, ATen's operators.
    (r"^(triton_|aten::|cpp_fused|mkldnn|mkl::|autograd::|Mem(cpy|set) )", _as_is),
    (r"^\[CUDA (mem\w+(?: [\w-]+)?)\]$", _memory),
    (r"nccl(?:Dev)?Kernel_(\w+)", _nccl),
    (
        # architecture, letters of types, shape, and depth; what follows
        r"nvjet_(?:sm(\d+)_)?([a-z]+)_(?:mma_)?(\d+x\d+)(?:x(\d+))?_(\d+(?:x\d+)?)(\w*)",
        product_names.nvjet,
    ),
    (
        # architecture, kind, types, layout, shape, depth; what follows
        r"sm(\d+)_xmma_(\w{0,30}?gemm\w{0,30}?)_([a-z]{1,8}\d[a-z0-9_]{0,40}?)_([nt]{2})_[nt]_"
        r"tilesize(\d+x\d+)x(\d+)(\w*)",
        product_names.xmma,
    ),
    (r"cutlass_(\d+)_(\w*?gemm\w*?)(?=$|[^\w]|EEv)", product_names.cutlass),
    (r"(maxwell|volta|turing|ampere|hopper|blackwell)_\w*gemm\w*", _spaced),
    (r"flash_(fwd|bwd)_\w+(?=<)", _flash),
    (r"(FlashAttn\w+)(?=<)", _flash_of_hopper),
    (r"fmha_cutlass[FB]_\w+|cudnn_generated_fort_native_sdpa_\w+", _spaced),
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
