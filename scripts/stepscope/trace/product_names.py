"""Short names of matrix products, from what cuBLAS, cuBLASLt and CUTLASS write in theirs.

A reader takes what a pattern found in a kernel's name, and the function that begins there.
"""

import re

from .cpp_names import Function

# nvjet names types by letters: input, accumulator, result; "tst" (bf16, fp32, bf16) and "hsh"
# (fp16) are what bf16 and fp16 runs show on an H100. "qqtst" names both inputs, of 8 bits. Other
# letters are shown as they are.
_NVJET_TYPES = {
    "t": "bf16",
    "h": "fp16",
    "q": "fp8",
}


def nvjet(match: re.Match, function: Function) -> str:
    arch, letters, shape, whole_depth, depth, rest = match.groups()
    data_type = _NVJET_TYPES.get(letters[0], "")
    types = data_type if letters in ("tst", "hsh") else f"{data_type} {letters}"
    words = rest.replace("_bz", "").replace("_", " ")
    where = "" if arch in (None, "90") else f"sm{arch}"
    if whole_depth:  # sm120: "64x64x128_3" instead of "64x64_128x3"
        depth = f"{whole_depth}x{depth}"
    return f"nvjet {types} {shape} {depth} {words} {where}"


# What is usual in each precision → its name; other types are shown as they are.
_XMMA_USUAL = {
    "f32f32_f32f32_f32": "fp32",
    "f32f32_tf32f32_f32": "tf32",
    "bf16bf16_bf16f32_f32": "bf16",
    "f16f16_f16f32_f32": "fp16",
}
_XMMA_EXTRAS = {
    "split_k": "split k",
    "segment_k_on": "segment k",
    "bias": "bias",
    "relu": "relu",
    "gelu": "gelu",
}


def xmma(match: re.Match, function: Function) -> str:
    arch, kind, types, layout, tile, depth, rest = match.groups()
    shown = _XMMA_USUAL.get(types, types)
    stage = re.search(r"stage(\d+)", rest)
    shape = f"{tile} {depth}x{stage[1]}" if stage else f"{tile}x{depth}"
    extras = [word for key, word in _XMMA_EXTRAS.items() if f"_{key}_" in rest]
    where = "" if arch in ("80", "90") else f"sm{arch}"
    return f"xmma {kind} {shown} {shape} {layout} {' '.join(extras)} {where}"


def cutlass(match: re.Match, function: Function) -> str:
    arch, text = match.groups()
    where = "" if arch == "80" else arch
    words = re.sub(r"_(bf16|f16)_(\w+gemm\w*?)_\1_", r"_\1_\2_", text)
    return f"cutlass {where} {words.removesuffix('_align1').replace('_', ' ')}"


def split_k_reduce(match: re.Match, function: Function) -> str:
    types = [each for each in dict.fromkeys(function.types) if each != "int32"]
    sizes = "x".join(argument for argument in function.arguments[:2] if argument.isdigit())
    return f"split k reduce {' '.join(types)} {sizes}"
