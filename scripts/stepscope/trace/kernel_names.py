"""Short names for GPU kernels that still tell them apart, with what the full name says of tile,
data type and unit.

A profiler's own short name (`Kernel2`, `vectorized_elementwise_kernel`) drops what distinguishes a
multiplication from an addition. Here the functor, the data types and the tile stay: "cutlass simt
sgemm 128x256 8x4 nt", "mul bf16 (vectorized x8)". In the names of matrix products `128x256 8x4` is
CUTLASS's notation: a block computes a tile of 128 × 256 results, 8 deep at a time, in 4 stages.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from stepscope.trace import product_names
from stepscope.trace.cpp_names import (
    DATA_TYPES,
    MATMUL_TYPES,
    TYPES,
    Read,
    data_type_of,
    digits,
    numbers_of,
    one_spelling,
    parts_of,
    template_arguments,
    types_of,
    words_of,
)
from stepscope.trace.kernel_categories import category_of, unmangled

LONGEST = 60  # characters of a short name
# Characters of a full name: what tells kernels apart stands before, and made-up names may be
# endless.
_MOST_READ = 4096


@dataclass(frozen=True, slots=True)
class KernelName:
    """What a kernel's full name says."""

    short: str  # at most LONGEST characters, different for other functors, data types and tiles
    category: str  # one of CATEGORIES of kernel_categories.py
    # Of a matmul rows, columns and depth of the tile that a block computes: "128x256x8"; "128x64"
    # without the depth.
    tile: str = ""
    # "fp32", "tf32", "bf16", "fp16", "fp64", "int8" or "fp8": of a matmul the inputs', else the
    # elements'
    data_type: str = ""
    # Of a matmul and attention: "tensor core" or "SIMT" (the ordinary arithmetic units)
    unit: str = ""


@cache
def describe(full: str) -> KernelName:
    """A kernel's short name, category, tile, data type and unit, from its full name; what the name
    hides stays ""."""
    category = category_of(full)
    name = one_spelling(full[:_MOST_READ])
    if not name:
        return KernelName("unnamed", category)
    reader, match = next(
        (reader, found) for pattern, reader in _READERS if (found := pattern.search(name))
    )
    read = reader(name, match)
    data_type = read.data_type if read.data_type in DATA_TYPES else ""
    return KernelName(_cut(read.short, full), category, read.tile, data_type, read.unit)


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
    base, arguments = parts_of(functor)
    lambdas = re.findall(r"\{lambda\(([^()]*)\)#(\d+)\}", functor)
    signature, instance = lambdas[-1] if lambdas else ("", "")
    first = data_type_of(arguments[0]) if arguments else ""
    data_type = first or data_type_of(signature.split(",")[0])
    if base in _WRAPPERS and arguments:
        return _operation(arguments[0])
    if base in _SIDES and arguments:
        words, inner = _operation(arguments[-1])
        return words + _SIDES[base], data_type or inner
    if base.startswith("CUDAFunctorOnSelf_"):
        return words_of(base.removeprefix("CUDAFunctorOnSelf_")) + " scalar", data_type
    if base.startswith("CUDAFunctor_"):
        return words_of(base.removeprefix("CUDAFunctor_")), data_type
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


def _elementwise(name: str, match: re.Match) -> Read:
    base, arguments = parts_of(name[match.start() :])
    functors = [a for a in arguments if a and not re.fullmatch(r"-?\d+", a) and not data_type_of(a)]
    words, data_type = _operation(functors[0]) if functors else ("elementwise", "")
    how = _HOW.get(base) or words_of(base.removesuffix("_kernel").replace("elementwise", ""))
    if "vectorized" in base and arguments and arguments[0].isdigit():
        how += f" x{arguments[0]}"
    if "gpu_kernel_impl<" in name or "LoadWithCast" in name:
        how += ", cast"
    if words == "copy" and how.endswith("cast"):
        words = "copy to"
    element = data_type or (words.split()[1] if words.startswith("copy ") else "")
    return Read(f"{words} {data_type} ({how})", element)


def _reduction(name: str, match: re.Match) -> Read:
    _, arguments = parts_of(name[match.start() :])
    numbers = numbers_of(arguments)
    operation = next((a for a in arguments if not a.isdigit()), "")
    _, inner = parts_of(operation)
    data_type = data_type_of(inner[0]) if inner else ""
    base, wrapped = parts_of(inner[1] if len(inner) > 1 else operation)
    if base == "func_wrapper_t" and len(wrapped) > 1:
        base, _ = parts_of(wrapped[1])
    words = re.sub("^(max|min) nan$", r"\1", words_of(base))
    result = data_type_of(inner[3]) if len(inner) > 3 else data_type
    types = data_type if result in (data_type, "") else f"{data_type} → {result}"
    return Read(f"{words} {types} (reduce {'x'.join(numbers)})", data_type)


def _scatter_gather(name: str, match: re.Match) -> Read:
    inner = re.search(r"_internal_kernel(<[^()]*?>)::operator\(\)<(?:[\w:]*::)?(\w+)>", name)
    if not inner:
        return _plain(name, match)
    scatters, data_type, *_ = [*template_arguments(inner[1], 0), "", ""]
    verb = "scatter" if scatters == "1" else "gather"
    if inner[2] != "TensorAssign":
        verb += " " + words_of(inner[2].removeprefix("Reduce"))
    data_type = data_type_of(data_type)
    return Read(f"{verb} {data_type}", data_type)


def _multi_tensor(name: str, match: re.Match) -> Read:
    _, arguments = parts_of(name[match.start() :])
    _, called, applied, *_ = [*arguments, "", "", ""]
    functor, inner = parts_of(called)
    data_type = next(iter(types_of(inner)), "")
    if functor.startswith("FusedAdam"):  # <type, lists, ADAM_MODE, amsgrad>
        operation = "w" if inner[2:3] == ["1"] else ""
        variant = " amsgrad" if inner[3:4] == ["1"] else ""
        return Read(f"fused adam{operation} {data_type}{variant} (multi tensor)", data_type)
    operation = "" if data_type_of(applied) else words_of(parts_of(applied)[0])
    lists = re.search(r"Metadata<(\d+)", name)
    how = f"multi tensor {lists[1]}" if lists else "multi tensor"
    flags = " ".join(numbers_of(inner))
    return Read(f"{words_of(functor)} {operation} {data_type} {flags} ({how})", data_type)


# ---- everything else


def _flash(name: str, match: re.Match) -> Read:
    base, arguments = parts_of(name[match.start() :])
    _, traits = parts_of(arguments[0]) if arguments else ("", [])
    data_type = next((each for each in types_of(traits) if each in DATA_TYPES), "")
    numbers = numbers_of(traits)
    shape = f"d{numbers[0]} {numbers[1]}x{numbers[2]}" if len(numbers) > 2 else ""
    causal = "causal" if arguments[2:3] == ["1"] else ""
    words = words_of(base).replace(" loop seqk parallel", "")
    return Read(f"{words} {data_type} {shape} {causal}", data_type, "tensor core")


def _flash_3(name: str, match: re.Match) -> Read:
    found = re.search(r"bfloat16_t|half_t|float_e4m3_t", name)
    data_type = TYPES[found[0]] if found else ""
    short = f"{words_of(match[1])} {data_type} {digits(name)}"
    return Read(short, data_type, "tensor core")


def _softmax(name: str, match: re.Match) -> Read:
    base, arguments = parts_of(name[match.start() :])
    types = list(dict.fromkeys(types_of(arguments)))
    # softmax_warp_*<input, output, sum, log2 of the length, is_log_softmax, is_masked>
    log = "LogSoftMax" in name or (base.startswith("softmax_warp") and arguments[4:5] == ["1"])
    words = ("log " if log else "") + words_of(base)
    shown = [words, *types, *numbers_of(arguments)[:1]]
    return Read(" ".join(shown), "".join(types[:1]))


def _memory_efficient(name: str, match: re.Match) -> Read:
    data_type = MATMUL_TYPES.get(match["type"], "")
    unit = "tensor core" if data_type in ("fp16", "bf16") and "sm50" not in match[0] else ""
    return Read(match[0].replace("_", " "), data_type, unit)


def _cudnn_attention(name: str, match: re.Match) -> Read:
    text = match["text"].removesuffix("_kernel0_0")
    found = re.search(r"_(bf16|f16|e4m3)", text)
    unit = "tensor core" if "mma" in text else ""
    data_type = MATMUL_TYPES[found[1]] if found else ""
    return Read("cudnn sdpa " + text.replace("_", " "), data_type, unit)


def _nccl(name: str, match: re.Match) -> Read:
    parts = [MATMUL_TYPES.get(part) or TYPES.get(part, part) for part in match[1].split("_")]
    data_type = next((part for part in parts if part in DATA_TYPES), "")
    return Read("nccl " + " ".join(map(words_of, parts)), data_type)


def _memory(name: str, match: re.Match) -> Read:
    return Read(match[1].lower())


def _as_is(name: str, match: re.Match) -> Read:
    return Read(name)


def _mangled(name: str, match: re.Match) -> Read:
    """The function of a mangled name, and digits for the rest."""
    function = unmangled(name)[0].rpartition("::")[2]
    return Read(f"{words_of(function)[: LONGEST - 6]} {digits(name)}")


_NAMELESS = ("kernel", "Kernel", "Kernel2", "device_kernel", "globalKernel")


def _plain(name: str, match: re.Match) -> Read:
    """Any other C++ name: the function in words, its data types and numbers in brackets."""
    base, arguments = parts_of(name)
    types = types_of(arguments)
    values = [
        data_type_of(a) or (a if re.fullmatch(r"-?\d+", a) else words_of(parts_of(a)[0]))
        for a in arguments
    ]
    others = [each for each in types if each in DATA_TYPES and each != "fp32"]
    data_type = (others or [each for each in types if each == "fp32"] or [""])[0]
    words = words_of(base)
    if base in _NAMELESS:  # internal::gemvx::kernel<...>: the namespaces say what it is
        spaces = re.split(r"[^\w:]", name, maxsplit=1)[0].split("::")[:-1]
        said = [space for space in spaces if space not in ("at", "native", "impl", "internal")]
        words = " ".join(map(words_of, said))
    words += f" ({', '.join(values)})" if values else ""
    hidden = any("<" in argument and not data_type_of(argument) for argument in arguments)
    words += " " + digits("".join(arguments)) if hidden else ""
    return Read(words, data_type, product_names.product_unit(base))


_Reader = Callable[[str, re.Match], Read]

_READERS: tuple[tuple[re.Pattern, _Reader], ...] = tuple(
    (re.compile(pattern), reader)
    for pattern, reader in (
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
        (r"(FlashAttn\w+)<", _flash_3),
        (r"(?<!\w)(?=\w*[sS]oft_?[mM]ax)\w++(?=<)", _softmax),
        (r"fmha_cutlass[FB]_(?P<type>bf16|f16|f32)_\w+", _memory_efficient),
        (r"cudnn_generated_fort_native_sdpa_(?P<text>\w+)", _cudnn_attention),
        (r"^_Z", _mangled),
        (r"multi_tensor_apply_kernel(?=<)", _multi_tensor),
        (r"_scatter_gather_elementwise_kernel(?=<)", _scatter_gather),
        (r"(?<!\w)(?=\w*elementwise_)\w++(?=<)", _elementwise),
        (r"(?<!\w)reduce_kernel(?=<)", _reduction),
        (r"splitKreduce_kernel(?=<)", product_names.split_k_reduce),
        (r"[<(]|::", _plain),
        (r"", _as_is),
    )
)
