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
    data_type_of,
    digits,
    one_spelling,
    parts_of,
    template_arguments,
    words_of,
)
from stepscope.trace.kernel_categories import category_of

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
    short, tile, data_type, unit = reader(name, match)
    return KernelName(
        _cut(short, full), category, tile, data_type if data_type in DATA_TYPES else "", unit
    )


def _cut(short: str, full: str) -> str:
    """The short name itself, or when it is too long its two ends and four digits that stand for the
    rest."""
    short = " ".join(short.split())
    if len(short) <= LONGEST:
        return short
    tail = re.search(r"_\d{1,6}$", short)
    end = f"…{tail.group() if tail else ''} {digits(full)}"
    return short[: LONGEST - len(end)] + end


# ---- ATen: pointwise kernels, reductions, moves by index

# the lambdas of ATen's PowKernel.cu in order
_POWERS = {
    "1": "square",
    "2": "cube",
    "3": "inverse square",
    "4": "pow",
}


def _operation(functor: str) -> tuple[str, str]:
    """What a pointwise functor computes and on which data type: ("mul by scalar", "bf16")."""
    base, arguments = parts_of(functor)
    lambdas = re.findall(r"\{lambda\(([^()]*)\)#(\d+)\}", functor)
    signature, instance = lambdas[-1] if lambdas else ("", "")
    first = data_type_of(arguments[0]) if arguments else ""
    data_type = first or data_type_of(signature.split(",")[0])
    if base in ("gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_index_kernel") and arguments:
        return _operation(arguments[0])
    if base in ("BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor") and arguments:
        words, inner = _operation(arguments[-1])
        sides = {
            "BinaryFunctor": "",
            "AUnaryFunctor": " by left scalar",
            "BUnaryFunctor": " by scalar",
        }
        return words + sides[base], data_type or inner
    if base.startswith("CUDAFunctorOnSelf_"):
        return words_of(base.removeprefix("CUDAFunctorOnSelf_")) + " scalar", data_type
    if base.startswith("CUDAFunctor_"):
        return words_of(base.removeprefix("CUDAFunctor_")), data_type
    if base == "direct_copy_kernel_cuda":
        return "copy", data_type
    if to := re.match(r"(bfloat16|float16|float8)_copy_kernel", base):
        target = {
            "bfloat16": "bf16",
            "float16": "fp16",
            "float8": "fp8",
        }[to.group(1)]
        return f"copy {data_type} → {target}", ""
    if base.startswith("pow_tensor_scalar_kernel"):
        return _POWERS.get(instance, "pow"), data_type
    words = words_of(base)
    if instance not in ("", "1"):
        words += f" #{instance}"
    return words, data_type


_HOW = {
    "elementwise_kernel": "strided",
    "index_elementwise_kernel": "indexed",
    "elementwise_kernel_with_index": "by index",
}


def _elementwise(name: str, match: re.Match) -> tuple[str, str, str, str]:
    base, arguments = parts_of(name[match.start() :])
    functor = next(
        (a for a in arguments if not re.fullmatch(r"-?\d+", a) and not data_type_of(a)), ""
    )
    words, data_type = _operation(functor) if functor else ("elementwise", "")
    how = _HOW.get(base) or words_of(base.removesuffix("_kernel").replace("elementwise", ""))
    if "vectorized" in base and arguments and arguments[0].isdigit():
        how += f" x{arguments[0]}"
    if "gpu_kernel_impl<" in name or "LoadWithCast" in name:
        how += ", cast"
    if words == "copy" and how.endswith("cast"):
        words = "copy to"
    element = data_type or (words.split()[1] if words.startswith("copy ") else "")
    return f"{words} {data_type} ({how})", "", element, ""


def _reduction(name: str, match: re.Match) -> tuple[str, str, str, str]:
    _, arguments = parts_of(name[match.start() :])
    numbers = [a for a in arguments if a.isdigit()]
    operation = next((a for a in arguments if not a.isdigit()), "")
    _, inner = parts_of(operation)
    data_type = data_type_of(inner[0]) if inner else ""
    what = inner[1] if len(inner) > 1 else operation
    base, wrapped = parts_of(what)
    if base == "func_wrapper_t" and len(wrapped) > 1:
        base, _ = parts_of(wrapped[1])
    words = {"max nan": "max", "min nan": "min"}.get(words_of(base), words_of(base))
    result = data_type_of(inner[3]) if len(inner) > 3 else data_type
    types = data_type if result in (data_type, "") else f"{data_type} → {result}"
    return f"{words} {types} (reduce {'x'.join(numbers)})", "", data_type, ""


def _scatter_gather(name: str, match: re.Match) -> tuple[str, str, str, str]:
    inner = re.search(r"_internal_kernel(<[^()]*?>)::operator\(\)<(?:[\w:]*::)?(\w+)>", name)
    if not inner:
        return _plain(name, match)
    scatters, data_type, *_ = [*template_arguments(inner.group(1), 0), "", ""]
    verb = "scatter" if scatters == "1" else "gather"
    if inner.group(2) != "TensorAssign":
        verb += " " + words_of(inner.group(2).removeprefix("Reduce"))
    data_type = data_type_of(data_type)
    return f"{verb} {data_type}", "", data_type, ""


def _multi_tensor(name: str, match: re.Match) -> tuple[str, str, str, str]:
    _, arguments = parts_of(name[match.start() :])
    lists = re.search(r"Metadata<(\d+)", name)
    functor, inner = parts_of(arguments[1]) if len(arguments) > 1 else ("", [])
    operation = (
        words_of(parts_of(arguments[2])[0])
        if len(arguments) > 2 and not data_type_of(arguments[2])
        else ""
    )
    types = [t for t in map(data_type_of, inner) if t]
    data_type = types[0] if types else ""
    flags = " ".join(a for a in inner if a.isdigit())
    if functor.startswith("FusedAdam"):  # <type, lists, ADAM_MODE, amsgrad>
        operation = "w" if inner[2:3] == ["1"] else ""
        variant = " amsgrad" if inner[3:4] == ["1"] else ""
        return f"fused adam{operation} {data_type}{variant} (multi tensor)", "", data_type, ""
    words = (
        f"{words_of(functor)} {operation} {data_type} {flags} (multi"
        f" tensor{f' {lists.group(1)}' if lists else ''})"
    )
    return words, "", data_type, ""


# ---- everything else


def _flash(name: str, match: re.Match) -> tuple[str, str, str, str]:
    base, arguments = parts_of(name[match.start() :])
    _, traits = parts_of(arguments[0]) if arguments else ("", [])
    data_type = next((t for t in map(data_type_of, traits) if t in DATA_TYPES), "")
    numbers = [t for t in traits if t.isdigit()]
    shape = f"d{numbers[0]} {numbers[1]}x{numbers[2]}" if len(numbers) > 2 else ""
    causal = "causal" if arguments[2:3] == ["1"] else ""
    words = words_of(base).replace(" loop seqk parallel", "")
    return f"{words} {data_type} {shape} {causal}", "", data_type, "tensor core"


def _flash_3(name: str, match: re.Match) -> tuple[str, str, str, str]:
    found = re.search(r"bfloat16_t|half_t|float_e4m3_t", name)
    data_type = TYPES[found.group()] if found else ""
    return f"{words_of(match.group(1))} {data_type} {digits(name)}", "", data_type, "tensor core"


def _softmax(name: str, match: re.Match) -> tuple[str, str, str, str]:
    base, arguments = parts_of(name[match.start() :])
    types = list(dict.fromkeys(t for t in map(data_type_of, arguments) if t))
    numbers = [a for a in arguments if a.isdigit()]
    # softmax_warp_*<input, output, sum, log2 of the length, is_log_softmax, is_masked>
    log = "LogSoftMax" in name or (base.startswith("softmax_warp") and arguments[4:5] == ["1"])
    words = ("log " if log else "") + words_of(base)
    return f"{words} {' '.join(types)} {' '.join(numbers[:1])}", "", "".join(types[:1]), ""


def _memory_efficient(name: str, match: re.Match) -> tuple[str, str, str, str]:
    data_type = MATMUL_TYPES.get(match.group("type"), "")
    unit = "tensor core" if data_type in ("fp16", "bf16") and "sm50" not in match.group() else ""
    return match.group().replace("_", " "), "", data_type, unit


def _cudnn_attention(name: str, match: re.Match) -> tuple[str, str, str, str]:
    text = re.sub(r"_kernel0_0$", "", match.group("text"))
    found = re.search(r"_(bf16|f16|e4m3)", text)
    unit = "tensor core" if re.search("wgmma|mma", text) else ""
    return (
        "cudnn sdpa " + text.replace("_", " "),
        "",
        MATMUL_TYPES[found.group(1)] if found else "",
        unit,
    )


def _nccl(name: str, match: re.Match) -> tuple[str, str, str, str]:
    parts = [MATMUL_TYPES.get(part) or TYPES.get(part, part) for part in match.group(1).split("_")]
    data_type = next((part for part in parts if part in DATA_TYPES), "")
    return "nccl " + " ".join(words_of(part) for part in parts), "", data_type, ""


def _memory(name: str, match: re.Match) -> tuple[str, str, str, str]:
    return match.group(1).lower(), "", "", ""


def _as_is(name: str, match: re.Match) -> tuple[str, str, str, str]:
    return name, "", "", ""


# Not the numbers in S0_ and T0_ (repetitions) and Li4E (the value 4).
_LENGTH = re.compile(r"(?<![\dSTL])(?<!L[a-z])\d{1,3}(?!\d)")


def _mangled(name: str, match: re.Match) -> tuple[str, str, str, str]:
    """The identifiers of a mangled name (each stands after its length), and digits for the rest."""
    found = []
    place = 0
    while number := _LENGTH.search(name, place):
        length = int(number.group())
        identifier = name[number.end() : number.end() + length]
        good = len(identifier) == length > 1 and re.fullmatch(r"[A-Za-z_]\w*", identifier)
        if good:
            found.append(identifier)
        place = number.end() + (length if good else 0)
    spaces = (
        "at",
        "native",
        "cutlass",
        "at_cuda_detail",
        "cub",
        "detail",
        "c10",
        "array",
        "binary_internal",
    )
    words = " ".join(
        words_of(word) for word in found if word not in spaces and not word.startswith("_GLOBAL_")
    )
    return f"{words[: LONGEST - 6]} {digits(name)}" if words else name, "", "", ""


_NAMELESS = ("kernel", "Kernel", "Kernel2", "device_kernel", "globalKernel")


def _plain(name: str, match: re.Match) -> tuple[str, str, str, str]:
    """Any other C++ name: the function in words, its data types and numbers in brackets."""
    base, arguments = parts_of(name)
    types = [t for t in map(data_type_of, arguments) if t]
    values = [
        data_type_of(a) or (a if re.fullmatch(r"-?\d+", a) else words_of(parts_of(a)[0]))
        for a in arguments
    ]
    data_type = next(
        (t for t in types if t in DATA_TYPES and t != "fp32"), "fp32" if "fp32" in types else ""
    )
    if base in _NAMELESS:  # internal::gemvx::kernel<...>: the namespaces say what it is
        head = re.split(r"[^\w:]", name, maxsplit=1)[0]
        spaces = head.split("::")[:-1]
        words = " ".join(
            words_of(space) for space in spaces if space not in ("at", "native", "impl", "internal")
        )
    else:
        words = words_of(base)
    hidden = any("<" in argument and not data_type_of(argument) for argument in arguments)
    words += f" ({', '.join(values)})" if values else ""
    words += " " + digits("".join(arguments)) if hidden else ""
    return words, "", data_type, product_names.product_unit(base)


_Reader = Callable[[str, re.Match], tuple[str, str, str, str]]

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
