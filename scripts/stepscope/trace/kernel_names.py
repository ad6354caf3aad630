"""Short names for GPU kernels that still tell them apart, with what the full name says of tile, data type and unit.

A profiler's own short name (`Kernel2`, `vectorized_elementwise_kernel`) drops what distinguishes a multiplication from
an addition. Here the functor, the data types and the tile stay: "cutlass simt sgemm 128x256 8x4 nt",
"mul bf16 (vectorized x8)". In the names of matrix products `128x256 8x4` is CUTLASS's notation: a block computes a tile
of 128 × 256 results, 8 deep at a time, in 4 stages.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from stepscope.trace.categories import category_of

LONGEST = 60
"""A short name has at most this many characters."""

_TYPES = {
    "float": "fp32",
    "double": "fp64",
    "Half": "fp16",
    "__half": "fp16",
    "half": "fp16",
    "half_t": "fp16",
    "BFloat16": "bf16",
    "__nv_bfloat16": "bf16",
    "nv_bfloat16": "bf16",
    "bfloat16_t": "bf16",
    "tfloat32_t": "tf32",
    "Float8_e4m3fn": "fp8",
    "Float8_e5m2": "fp8",
    "__nv_fp8_e4m3": "fp8",
    "__nv_fp8_e5m2": "fp8",
    "float_e4m3_t": "fp8",
    "float_e5m2_t": "fp8",
    "signed char": "int8",
    "int8_t": "int8",
    "unsigned char": "uint8",
    "uint8_t": "uint8",
    "short": "int16",
    "int": "int32",
    "unsigned int": "uint32",
    "long": "int64",
    "long long": "int64",
    "unsigned long": "uint64",
    "unsigned long long": "uint64",
    "bool": "bool",
}
_DATA_TYPES = ("fp32", "tf32", "bf16", "fp16", "fp64", "int8", "fp8")
# How matmul libraries abbreviate types inside names.
_MATMUL_TYPES = {
    **{"f32": "fp32", "tf32": "tf32", "f16": "fp16", "fp16": "fp16", "bf16": "bf16", "f64": "fp64", "s8": "int8"},
    **{"i8": "int8", "u8": "int8", "e4m3": "fp8", "e5m2": "fp8"},
}
# nvjet names types by letters: input, accumulator, result; "tst" (bf16, fp32, bf16) and "hsh" (fp16) are what bf16 and
# fp16 runs show on an H100. "qqtst" names both inputs, of 8 bits. Other letters are shown as they are.
_NVJET_TYPES = {"t": "bf16", "h": "fp16", "q": "fp8"}


@dataclass(frozen=True, slots=True)
class KernelName:
    """What a kernel's full name says."""

    short: str
    """A name for tables: at most `LONGEST` characters, different for different functors, data types and tiles."""
    category: str
    """One of `stepscope.trace.categories.CATEGORIES`."""
    tile: str = ""
    """Matmul only: "128x256x8" (rows, columns and depth of the tile that a block computes), "128x64" without depth."""
    data_type: str = ""
    """One of "fp32", "tf32", "bf16", "fp16", "fp64", "int8", "fp8": a matmul's input type, else the elements' type."""
    unit: str = ""
    """Matmul and attention only: "tensor core" or "SIMT" (the ordinary arithmetic units)."""


@cache
def describe(full: str) -> KernelName:
    """A kernel's short name, category, tile, data type and unit, from its full name; what the name hides stays ""."""
    category = category_of(full)
    name = _one_spelling(full)
    if not name:
        return KernelName("unnamed", category)
    for pattern, reader in _READERS:
        if match := pattern.search(name):
            short, tile, data_type, unit = reader(name, match)
            return KernelName(_cut(short, full), category, tile, data_type if data_type in _DATA_TYPES else "", unit)
    return KernelName(_cut(name, full), category)


def _one_spelling(full: str) -> str:
    """The name in one spelling: no casts before numbers, no unnamed namespaces, `{lambda(float)#1}`, 1 for true."""
    name = " ".join(full.split())
    name = re.sub(r"(<unnamed>|\(anonymous namespace\)|\{anonymous\}|_GLOBAL__N_\w*)::", "", name)
    name = re.sub(r"\((unsigned |long )*[\w:]+\)(?=-?\d)", "", name)
    name = re.sub(r"\b(\d+)u?l{0,2}\b", r"\1", name)
    name = re.sub(r"^(typename )?std::enable_if<[^<>]*>::type ", "", name)
    name = re.sub(r"\[lambda(\([^()]*\)) \(instance (\d+)\)\]", r"{lambda\1#\2}", name)
    name = re.sub(r"\bfalse\b", "0", re.sub(r"\btrue\b", "1", name))
    name = re.sub(r"> (?=>)", ">", name)
    return name.replace("operator ()", "operator()").removeprefix("void ")


def _cut(short: str, full: str) -> str:
    """The short name itself, or when it is too long its two ends and four digits that stand for the rest."""
    short = " ".join(short.split())
    if len(short) <= LONGEST:
        return short
    tail = re.search(r"_\d{1,6}$", short)
    end = f"…{tail.group() if tail else ''} {_digits(full)}"
    return short[: LONGEST - len(end)] + end


def _digits(text: str) -> str:
    """Four digits that stand for a text, white space aside."""
    return "#" + hashlib.sha256("".join(text.split()).encode(errors="replace")).hexdigest()[:4]


def _parts(text: str) -> tuple[str, list[str]]:
    """`ns::name<a, b<c>>(...)` as ("name", ["a", "b<c>"])."""
    text = text.strip().removeprefix("void ")
    head = re.match(r"[\w:~$]+", text)
    if not head:
        return text, []
    base = head.group().rstrip(":").rsplit("::", 1)[-1]
    return base, _arguments(text, head.end()) if text[head.end() : head.end() + 1] == "<" else []


def _arguments(text: str, start: int) -> list[str]:
    """The template arguments of the `<` at this place, split at the commas that are not inside further brackets."""
    arguments, depth, begin = [], 0, start + 1
    for place in range(start, len(text)):
        character = text[place]
        if character in "<([{":
            depth += 1
        elif character in ")]}" or (character == ">" and text[place - 1] != "-"):
            depth -= 1
        if depth == 0 or (depth == 1 and character == ","):
            arguments.append(text[begin:place].strip())
            begin = place + 1
        if depth == 0:
            return arguments
    return [*arguments, text[begin:].strip()]


def _data_type(text: str) -> str:
    """A C++ type in the project's words: "c10::BFloat16" is "bf16", "OpaqueType<2>" "2-byte"; "" for others."""
    text = re.sub(r"^const |( const)?( ?[*&])*$", "", text.strip())
    if opaque := re.search(r"OpaqueType<(\d+)>$", text):
        return f"{opaque.group(1)}-byte"
    if text.startswith("c10::complex<") or text.startswith("thrust::complex<"):
        return "complex64" if "float" in text else "complex128"
    return _TYPES.get(text.rsplit("::", 1)[-1], "") if "<" not in text else ""


def _words(identifier: str) -> str:
    """`GammaBetaBackwardKernel` as "gamma beta backward": in lower case, without words that say nothing ("kernel")."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", identifier)
    kept = [
        word for word in spaced.lower().split() if word not in ("kernel", "cuda", "impl", "functor", "ops", "launch")
    ]
    return " ".join(kept).replace("soft max", "softmax") or identifier


# ---- ATen: pointwise kernels, reductions, moves by index ------------------------------------------------------------

_POWERS = {"1": "square", "2": "cube", "3": "inverse square", "4": "pow"}  # the lambdas of ATen's PowKernel.cu in order


def _operation(functor: str) -> tuple[str, str]:
    """What a pointwise functor computes and on which data type: ("mul by scalar", "bf16")."""
    base, arguments = _parts(functor)
    lambdas = re.findall(r"\{lambda\(([^()]*)\)#(\d+)\}", functor)
    signature, instance = lambdas[-1] if lambdas else ("", "")
    first = _data_type(arguments[0]) if arguments else ""
    data_type = first or _data_type(signature.split(",")[0])
    if base in ("gpu_kernel_impl", "gpu_kernel_impl_nocast", "gpu_index_kernel") and arguments:
        return _operation(arguments[0])
    if base in ("BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor") and arguments:
        words, inner = _operation(arguments[-1])
        sides = {"BinaryFunctor": "", "AUnaryFunctor": " by left scalar", "BUnaryFunctor": " by scalar"}
        return words + sides[base], data_type or inner
    if base.startswith("CUDAFunctorOnSelf_"):
        return _words(base.removeprefix("CUDAFunctorOnSelf_")) + " scalar", data_type
    if base.startswith("CUDAFunctor_"):
        return _words(base.removeprefix("CUDAFunctor_")), data_type
    if base == "direct_copy_kernel_cuda":
        return "copy", data_type
    if to := re.match(r"(bfloat16|float16|float8)_copy_kernel", base):
        target = {"bfloat16": "bf16", "float16": "fp16", "float8": "fp8"}[to.group(1)]
        return f"copy {data_type} → {target}", ""
    if base.startswith("pow_tensor_scalar_kernel"):
        return _POWERS.get(instance, "pow"), data_type
    words = _words(base)
    if instance not in ("", "1"):
        words += f" #{instance}"
    return words, data_type


_HOW = {
    "elementwise_kernel": "strided",
    "index_elementwise_kernel": "indexed",
    "elementwise_kernel_with_index": "by index",
}


def _elementwise(name: str, match: re.Match) -> tuple[str, str, str, str]:
    base, arguments = _parts(name[match.start() :])
    functor = next((a for a in arguments if not re.fullmatch(r"-?\d+", a) and not _data_type(a)), "")
    words, data_type = _operation(functor) if functor else ("elementwise", "")
    how = _HOW.get(base) or _words(base.removesuffix("_kernel").replace("elementwise", ""))
    if "vectorized" in base and arguments and arguments[0].isdigit():
        how += f" x{arguments[0]}"
    if "gpu_kernel_impl<" in name or "LoadWithCast" in name:
        how += ", cast"
    if words == "copy" and how.endswith("cast"):
        words = "copy to"
    element = data_type or (words.split()[1] if words.startswith("copy ") else "")
    return f"{words} {data_type} ({how})", "", element, ""


def _reduction(name: str, match: re.Match) -> tuple[str, str, str, str]:
    _, arguments = _parts(name[match.start() :])
    numbers = [a for a in arguments if a.isdigit()]
    operation = next((a for a in arguments if not a.isdigit()), "")
    _, inner = _parts(operation)
    data_type = _data_type(inner[0]) if inner else ""
    what = inner[1] if len(inner) > 1 else operation
    base, wrapped = _parts(what)
    if base == "func_wrapper_t" and len(wrapped) > 1:
        base, _ = _parts(wrapped[1])
    words = {"max nan": "max", "min nan": "min"}.get(_words(base), _words(base))
    result = _data_type(inner[3]) if len(inner) > 3 else data_type
    types = data_type if result in (data_type, "") else f"{data_type} → {result}"
    return f"{words} {types} (reduce {'x'.join(numbers)})", "", data_type, ""


def _scatter_gather(name: str, match: re.Match) -> tuple[str, str, str, str]:
    inner = re.search(r"_internal_kernel(<[^()]*?>)::operator\(\)<(?:[\w:]*::)?(\w+)>", name)
    if not inner:
        return _plain(name, match)
    scatters, data_type, *_ = [*_arguments(inner.group(1), 0), "", ""]
    verb = "scatter" if scatters == "1" else "gather"
    if inner.group(2) != "TensorAssign":
        verb += " " + _words(inner.group(2).removeprefix("Reduce"))
    data_type = _data_type(data_type)
    return f"{verb} {data_type}", "", data_type, ""


def _cat(name: str, match: re.Match) -> tuple[str, str, str, str]:
    base, arguments = _parts(name[match.start() :])
    data_type = _data_type(arguments[0]) if arguments else ""
    variant = _words(base.removeprefix("CatArrayBatchedCopy"))
    numbers = " ".join(a for a in arguments if a.isdigit())
    details = " ".join(part for part in (variant if base != "CatArrayBatchedCopy" else "", numbers) if part)
    return f"cat {data_type} ({details})" if details else f"cat {data_type}", "", data_type, ""


def _multi_tensor(name: str, match: re.Match) -> tuple[str, str, str, str]:
    _, arguments = _parts(name[match.start() :])
    lists = re.search(r"Metadata<(\d+)", name)
    functor, inner = _parts(arguments[1]) if len(arguments) > 1 else ("", [])
    operation = _words(_parts(arguments[2])[0]) if len(arguments) > 2 and not _data_type(arguments[2]) else ""
    types = [t for t in map(_data_type, inner) if t]
    data_type = types[0] if types else ""
    flags = " ".join(a for a in inner if a.isdigit())
    if functor.startswith("FusedAdam"):  # <type, lists, ADAM_MODE, amsgrad>
        operation = "w" if inner[2:3] == ["1"] else ""
        variant = " amsgrad" if inner[3:4] == ["1"] else ""
        return f"fused adam{operation} {data_type}{variant} (multi tensor)", "", data_type, ""
    words = f"{_words(functor)} {operation} {data_type} {flags} (multi tensor{f' {lists.group(1)}' if lists else ''})"
    return words, "", data_type, ""


# ---- matrix products ------------------------------------------------------------------------------------------------


def _nvjet(name: str, match: re.Match) -> tuple[str, str, str, str]:
    letters, shape, depth, rest = match.group("letters", "shape", "depth", "rest")
    data_type = _NVJET_TYPES.get(letters[0], "")
    types = data_type if letters in ("tst", "hsh") else f"{data_type} {letters}"
    words = rest.replace("_bz", "").replace("_", " ")
    arch = "" if match.group("arch") in (None, "90") else f"sm{match.group('arch')}"
    if match.group("k"):  # sm120: "64x64x128_3" instead of "64x64_128x3"
        depth = f"{match.group('k')}x{depth}"
    return f"nvjet {types} {shape} {depth} {words} {arch}", f"{shape}x{depth.split('x')[0]}", data_type, "tensor core"


def _xmma(name: str, match: re.Match) -> tuple[str, str, str, str]:
    arch, kind, types, layout, tile, rest = match.group("arch", "kind", "types", "layout", "tile", "rest")
    names = re.findall(r"tf32|bf16|f16|f32|f64|e4m3|e5m2|s8|i8|u8", types)
    data_type = "tf32" if "tf32" in names else _MATMUL_TYPES.get(names[0], "") if names else ""
    usual = {"fp32": "f32f32_f32f32_f32", "tf32": "f32f32_tf32f32_f32", "bf16": "bf16bf16_bf16f32_f32"}
    shown = data_type if types == {**usual, "fp16": "f16f16_f16f32_f32"}.get(data_type) else types
    m, n, k = tile.split("x")
    stage = re.search(r"stage(\d+)", rest)
    shape = f"{m}x{n} {k}x{stage.group(1)}" if stage else tile
    extras = [word for key, word in _XMMA_EXTRAS.items() if f"_{key}_" in rest]
    unit = "SIMT" if "_ffma" in rest else "tensor core" if re.search(r"tensor|warpgroup|mma_", rest) else ""
    where = "" if arch in ("80", "90") else f"sm{arch}"
    return f"xmma {kind} {shown} {shape} {layout} {' '.join(extras)} {where}", tile, data_type, unit


_XMMA_EXTRAS = {"split_k": "split k", "segment_k_on": "segment k", "bias": "bias", "relu": "relu", "gelu": "gelu"}


def _product_type(text: str) -> str:
    """The input type of a product from a part like "s1688gemm", "bf16_s16816gemm_bf16", "sgemm", "h884gemm"."""
    if found := re.search(r"(?:^|_)(tf32|bf16|fp16|f16|f64|s8|i8|u8|e4m3|e5m2|f32)(?=_|$)", text):
        return _MATMUL_TYPES[found.group(1)]
    if inside := re.search(r"\d(tf32|bf16|f16|s8)gemm", text):
        return _MATMUL_TYPES[inside.group(1)]
    # s1688 alone is TF32 (on fp16 inputs its name holds f16), s884 is Volta's fp16; s16816 takes fp16 or bf16 inputs.
    if alone := re.search(r"(?:^|_)s(1688|884|16816|161616)gemm", text):
        return {"1688": "tf32", "884": "fp16"}.get(alone.group(1), "")
    for letter, data_type in {"s": "fp32", "d": "fp64", "h": "fp16", "i": "int8"}.items():
        if re.search(rf"(?:^|_){letter}\d*gemm", text):
            return data_type
    return ""


def _product_unit(text: str) -> str:
    """The unit that a CUTLASS or cuBLAS name tells: an instruction shape or "tensorop" is a tensor core's."""
    if re.search(r"tensorop|wgmma|hmma|imma|_mma|[sdhi]\d{3,}(tf32|bf16|f16)?\w*gemm", text):
        return "tensor core"
    return "SIMT" if re.search(r"simt|ffma|(^|_)[sdhcz]gemm", text) else ""


def _cutlass(name: str, match: re.Match) -> tuple[str, str, str, str]:
    text = match.group("text")
    shape = re.search(r"_(\d+x\d+)(?:_(\d+)x\d+)?(?=_)", text)
    tile = "x".join(part for part in shape.groups() if part) if shape else ""
    arch = "" if match.group("arch") == "80" else match.group("arch")
    words = re.sub(r"_(bf16|f16)_(\w+gemm\w*?)_\1_", r"_\1_\2_", text).removesuffix("_align1").replace("_", " ")
    return f"cutlass {arch} {words}", tile, _product_type(text), _product_unit(text)


def _cutlass3x(name: str, match: re.Match) -> tuple[str, str, str, str]:
    text = match.group("text")
    kind = text.split("gemm")[0]
    types = re.findall(r"_(tf32|bf16|f16|f32|e4m3|e5m2|s8)(?=_)", text)
    tile = re.search(r"_(\d+x\d+x\d+)_\d+x\d+x\d+_", text)
    unit = "SIMT" if "simt" in kind else "tensor core"
    data_type = _MATMUL_TYPES[types[0]] if types else ""
    if data_type == "fp32" and unit == "tensor core":
        data_type = "tf32"
    return "cutlass3x " + text.replace("_", " "), tile.group(1) if tile else "", data_type, unit


def _by_generation(name: str, match: re.Match) -> tuple[str, str, str, str]:
    text = match.group()
    shape = re.search(r"gemm\w*?_(\d+x\d+)", text)
    depth = re.search(r"_stages_(\d+)x\d+", text)
    tile = (shape.group(1) if shape else "") + (f"x{depth.group(1)}" if shape and depth else "")
    return text.replace("_", " "), tile, _product_type(text.split("_", 1)[1]), _product_unit(text)


# ---- everything else ------------------------------------------------------------------------------------------------


def _flash(name: str, match: re.Match) -> tuple[str, str, str, str]:
    base, arguments = _parts(name[match.start() :])
    _, traits = _parts(arguments[0]) if arguments else ("", [])
    data_type = next((t for t in map(_data_type, traits) if t in _DATA_TYPES), "")
    numbers = [t for t in traits if t.isdigit()]
    shape = f"d{numbers[0]} {numbers[1]}x{numbers[2]}" if len(numbers) > 2 else ""
    causal = "causal" if arguments[2:3] == ["1"] else ""
    words = _words(base).replace(" loop seqk parallel", "")
    return f"{words} {data_type} {shape} {causal}", "", data_type, "tensor core"


def _flash_3(name: str, match: re.Match) -> tuple[str, str, str, str]:
    found = re.search(r"bfloat16_t|half_t|float_e4m3_t", name)
    data_type = _TYPES[found.group()] if found else ""
    return f"{_words(match.group(1))} {data_type} {_digits(name)}", "", data_type, "tensor core"


def _softmax(name: str, match: re.Match) -> tuple[str, str, str, str]:
    base, arguments = _parts(name[match.start() :])
    types = list(dict.fromkeys(t for t in map(_data_type, arguments) if t))
    numbers = [a for a in arguments if a.isdigit()]
    # softmax_warp_*<input, output, sum, log2 of the length, is_log_softmax, is_masked>
    log = "LogSoftMax" in name or (base.startswith("softmax_warp") and arguments[4:5] == ["1"])
    words = ("log " if log else "") + _words(base)
    return f"{words} {' '.join(types)} {' '.join(numbers[:1])}", "", "".join(types[:1]), ""


def _memory_efficient(name: str, match: re.Match) -> tuple[str, str, str, str]:
    data_type = _MATMUL_TYPES.get(match.group("type"), "")
    unit = "tensor core" if data_type in ("fp16", "bf16") and "sm50" not in match.group() else ""
    return match.group().replace("_", " "), "", data_type, unit


def _cudnn_attention(name: str, match: re.Match) -> tuple[str, str, str, str]:
    text = re.sub(r"_kernel0_0$", "", match.group("text"))
    found = re.search(r"_(bf16|f16|e4m3)", text)
    unit = "tensor core" if re.search("wgmma|mma", text) else ""
    return "cudnn sdpa " + text.replace("_", " "), "", _MATMUL_TYPES[found.group(1)] if found else "", unit


def _nccl(name: str, match: re.Match) -> tuple[str, str, str, str]:
    parts = [_MATMUL_TYPES.get(part) or _TYPES.get(part, part) for part in match.group(1).split("_")]
    data_type = next((part for part in parts if part in _DATA_TYPES), "")
    return "nccl " + " ".join(_words(part) for part in parts), "", data_type, ""


def _memory(name: str, match: re.Match) -> tuple[str, str, str, str]:
    return match.group(1).lower(), "", "", ""


def _as_is(name: str, match: re.Match) -> tuple[str, str, str, str]:
    return name, "", "", ""


# Not the numbers in S0_ and T0_ (repetitions) and Li4E (the value 4).
_LENGTH = re.compile(r"(?<![\dSTL])(?<!L[a-z])\d{1,3}(?!\d)")


def _mangled(name: str, match: re.Match) -> tuple[str, str, str, str]:
    """The identifiers of a mangled name (each stands after its length), and digits for the rest."""
    found, place = [], 0
    while number := _LENGTH.search(name, place):
        length = int(number.group())
        identifier = name[number.end() : number.end() + length]
        good = len(identifier) == length > 1 and re.fullmatch(r"[A-Za-z_]\w*", identifier)
        if good:
            found.append(identifier)
        place = number.end() + (length if good else 0)
    spaces = ("at", "native", "cutlass", "at_cuda_detail", "cub", "detail", "c10", "array", "binary_internal")
    words = " ".join(_words(word) for word in found if word not in spaces and not word.startswith("_GLOBAL_"))
    return f"{words[: LONGEST - 6]} {_digits(name)}" if words else name, "", "", ""


def _cub(name: str, match: re.Match) -> tuple[str, str, str, str]:
    base, arguments = _parts(name[match.start() :])
    types = list(dict.fromkeys(t for t in map(_data_type, arguments) if t))
    words = _words(base.removeprefix("Device").removesuffix("Kernel"))
    return (
        f"{words} {' '.join(types)} (cub {_digits(''.join(arguments))})",
        "",
        next((t for t in types if t in _DATA_TYPES), ""),
        "",
    )


def _split_k_reduce(name: str, match: re.Match) -> tuple[str, str, str, str]:
    _, arguments = _parts(name[match.start() :])
    types = list(dict.fromkeys(t for t in map(_data_type, arguments) if t in _DATA_TYPES))
    sizes = "x".join(a for a in arguments[:2] if a.isdigit())
    data_type = next((t for t in types if t != "fp32"), "".join(types[:1]))
    return f"split k reduce {' '.join(types)} {sizes}", "", data_type, ""


_NAMELESS = ("kernel", "Kernel", "Kernel2", "device_kernel", "globalKernel")


def _plain(name: str, match: re.Match) -> tuple[str, str, str, str]:
    """Any other C++ name: the function in words, its data types and numbers in brackets."""
    base, arguments = _parts(name)
    types = [t for t in map(_data_type, arguments) if t]
    values = [_data_type(a) or (a if re.fullmatch(r"-?\d+", a) else _words(_parts(a)[0])) for a in arguments]
    data_type = next((t for t in types if t in _DATA_TYPES and t != "fp32"), "fp32" if "fp32" in types else "")
    if base in _NAMELESS:  # internal::gemvx::kernel<...>: the namespaces say what it is
        spaces = re.match(r"[\w:]*", name).group().split("::")[:-1]
        words = " ".join(_words(space) for space in spaces if space not in ("at", "native", "impl", "internal"))
    else:
        words = _words(base)
    hidden = any("<" in argument and not _data_type(argument) for argument in arguments)
    details = f" ({', '.join(values)})" if values else ""
    return f"{words}{details} {_digits(''.join(arguments)) if hidden else ''}", "", data_type, _product_unit(base)


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
            _nvjet,
        ),
        (
            r"sm(?P<arch>\d+)_xmma_(?P<kind>\w*?gemm\w*?)_(?P<types>[a-z]+\d[a-z0-9_]*?)_(?P<layout>[nt]{2})_[nt]_"
            r"tilesize(?P<tile>\d+x\d+x\d+)(?P<rest>\w*)",
            _xmma,
        ),
        (r"cutlass_(?P<arch>\d+)_(?P<text>\w*?gemm\w*?)(?=$|[^\w]|EEv)", _cutlass),
        (r"cutlass3x_(?P<text>\w*gemm\w*?)(?=$|[^\w]|EEv)", _cutlass3x),
        (r"(maxwell|volta|turing|ampere|hopper|blackwell)_\w*gemm\w*", _by_generation),
        (r"flash_(fwd|bwd)_\w+(?=<)", _flash),
        (r"(FlashAttn\w+)<", _flash_3),
        (r"(?<!\w)(?=\w*[sS]oft_?[mM]ax)\w++(?=<)", _softmax),
        (r"fmha_cutlass[FB]_(?P<type>bf16|f16|f32)_\w+", _memory_efficient),
        (r"cudnn_generated_fort_native_sdpa_(?P<text>\w+)", _cudnn_attention),
        (r"^_Z", _mangled),
        (r"multi_tensor_apply_kernel(?=<)", _multi_tensor),
        (r"_scatter_gather_elementwise_kernel(?=<)", _scatter_gather),
        (r"CatArrayBatchedCopy\w*(?=<)", _cat),
        (r"(?<!\w)(?=\w*elementwise_)\w++(?=<)", _elementwise),
        (r"(?<!\w)reduce_kernel(?=<)", _reduction),
        (r"splitKreduce_kernel(?=<)", _split_k_reduce),
        (r"Device\w+Kernel(?=<)", _cub),
        (r"[<(]|::", _plain),
        (r"", _as_is),
    )
)
