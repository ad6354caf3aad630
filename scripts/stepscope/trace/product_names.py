"""Names of matrix products, as cuBLAS, cuBLASLt and CUTLASS write them: tile, data type and unit.

A reader takes what a pattern found in a kernel's name, and the function that begins there.
"""

import re

from stepscope.trace.cpp_names import DATA_TYPES, TYPES, Function, KernelName

# nvjet names types by letters: input, accumulator, result; "tst" (bf16, fp32, bf16) and "hsh"
# (fp16) are what bf16 and fp16 runs show on an H100. "qqtst" names both inputs, of 8 bits. Other
# letters are shown as they are.
_NVJET_TYPES = {
    "t": "bf16",
    "h": "fp16",
    "q": "fp8",
}


def nvjet(match: re.Match, function: Function) -> KernelName:
    letters, shape, depth, rest = match.group("letters", "shape", "depth", "rest")
    data_type = _NVJET_TYPES.get(letters[0], "")
    types = data_type if letters in ("tst", "hsh") else f"{data_type} {letters}"
    words = rest.replace("_bz", "").replace("_", " ")
    arch = "" if match["arch"] in (None, "90") else f"sm{match.group('arch')}"
    if match["k"]:  # sm120: "64x64x128_3" instead of "64x64_128x3"
        depth = f"{match.group('k')}x{depth}"
    short = f"nvjet {types} {shape} {depth} {words} {arch}"
    return KernelName(short, data_type, "tensor core", f"{shape}x{depth.split('x')[0]}")


def xmma(match: re.Match, function: Function) -> KernelName:
    arch, kind, types, layout, tile, rest = match.group(
        "arch", "kind", "types", "layout", "tile", "rest"
    )
    names = re.findall(r"tf32|bf16|f16|f32|f64|e4m3|e5m2|s8|i8|u8", types)
    data_type = TYPES["tf32" if "tf32" in names else names[0]] if names else ""
    shown = data_type if types == _XMMA_USUAL.get(data_type) else types
    m, n, k = tile.split("x")
    stage = re.search(r"stage(\d+)", rest)
    shape = f"{m}x{n} {k}x{stage[1]}" if stage else tile
    extras = [word for key, word in _XMMA_EXTRAS.items() if f"_{key}_" in rest]
    unit = "tensor core" if re.search(r"tensor|warpgroup|mma_", rest) else ""
    unit = "SIMT" if "_ffma" in rest else unit
    where = "" if arch in ("80", "90") else f"sm{arch}"
    short = f"xmma {kind} {shown} {shape} {layout} {' '.join(extras)} {where}"
    return KernelName(short, data_type, unit, tile)


_XMMA_USUAL = {
    "fp32": "f32f32_f32f32_f32",
    "tf32": "f32f32_tf32f32_f32",
    "bf16": "bf16bf16_bf16f32_f32",
    "fp16": "f16f16_f16f32_f32",
}
_XMMA_EXTRAS = {
    "split_k": "split k",
    "segment_k_on": "segment k",
    "bias": "bias",
    "relu": "relu",
    "gelu": "gelu",
}


# Where a product's name holds the type of its inputs, the first that is there: "bf16" in
# "bf16_s16816gemm_bf16" and "s16816gemm_bf16"; in "s16816bf16gemm"; the instruction of "s1688gemm";
# the letter of "sgemm" and "h884gemm".
_PRODUCTS = (
    r"(?:^|_)(tf32|bf16|fp16|f16|f64|s8|i8|u8|e4m3|e5m2|f32)(?=_|$)",
    r"\d(tf32|bf16|f16|s8)gemm",
    r"(?:^|_)s(1688|884|16816|161616)gemm",
    r"(?:^|_)([sdhi])\d*gemm",
)
_PRODUCT_TYPES = TYPES | {
    # s1688 alone is TF32 (on fp16 inputs its name holds f16), s884 is Volta's fp16; s16816 takes
    # fp16 or bf16 inputs.
    "1688": "tf32",
    "884": "fp16",
    "s": "fp32",
    "d": "fp64",
    "h": "fp16",
    "i": "int8",
}


def _product_type(text: str) -> str:
    """The input type of a product from a part like "s1688gemm", "bf16_s16816gemm_bf16", "sgemm",
    "h884gemm"."""
    found = filter(None, (re.search(pattern, text) for pattern in _PRODUCTS))
    return next((_PRODUCT_TYPES.get(each[1], "") for each in found), "")


def product_unit(text: str) -> str:
    """The unit in a CUTLASS or cuBLAS name: an instruction shape or "tensorop" is a tensor
    core's."""
    if re.search(r"tensorop|wgmma|hmma|imma|_mma|[sdhi]\d{3,}(tf32|bf16|f16)?\w*gemm", text):
        return "tensor core"
    return "SIMT" if re.search(r"simt|ffma|(^|_)[sdhcz]gemm", text) else ""


def cutlass(match: re.Match, function: Function) -> KernelName:
    text = match["text"]
    shape = re.search(r"_(\d+x\d+)(?:_(\d+)x\d+)?(?=_)", text)
    tile = "x".join(part for part in shape.groups() if part) if shape else ""
    arch = "" if match["arch"] == "80" else match["arch"]
    words = re.sub(r"_(bf16|f16)_(\w+gemm\w*?)_\1_", r"_\1_\2_", text).removesuffix("_align1")
    short = f"cutlass {arch} {words.replace('_', ' ')}"
    return KernelName(short, _product_type(text), product_unit(text), tile)


def by_generation(match: re.Match, function: Function) -> KernelName:
    text = match[0]
    shape = re.search(r"gemm\w*?_(\d+x\d+)", text)
    depth = re.search(r"_stages_(\d+)x\d+", text)
    tile = (shape[1] if shape else "") + (f"x{depth[1]}" if shape and depth else "")
    data_type = _product_type(text.split("_", 1)[1])
    return KernelName(text.replace("_", " "), data_type, product_unit(text), tile)


def split_k_reduce(match: re.Match, function: Function) -> KernelName:
    types = [each for each in dict.fromkeys(function.types) if each in DATA_TYPES]
    sizes = "x".join(argument for argument in function.arguments[:2] if argument.isdigit())
    data_type = next((each for each in types if each != "fp32"), "".join(types[:1]))
    return KernelName(f"split k reduce {' '.join(types)} {sizes}", data_type)
