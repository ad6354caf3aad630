"""The kernels for Hopper GPUs compile, into what they are meant to be, on a machine without one.

They run on such a GPU only, where all other tests of attention run them, and the last one those of a wide d_head.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton
from stepscope.kernels import fused

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"

# In a process of its own, in which Triton compiles instead of interpreting. Prints the SASS of a kernel.
COMPILE = """\
import json, subprocess, sys, tempfile
sys.path.insert(0, sys.argv[1])
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from stepscope.kernels import hopper_backward, hopper_backward_wide, hopper_forward

kernel, tiles, types, constants = json.loads(sys.argv[3])
kernel = {
    "forward": hopper_forward._forward_kernel,
    "backward": hopper_backward._backward_kernel,
    "wide backward": hopper_backward_wide._backward_kernel,
}[kernel]

def described(dtype, *tile):
    width = {"bf16": gl.bfloat16, "fp32": gl.float32}[dtype]
    return f"tensordesc<{dtype}{list(tile)},{gl.NVMMASharedLayout.get_default_for(list(tile), width)!r}>"

types |= {name: described(*tile) for name, tile in tiles.items()}
signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in kernel.arg_names}
values = {(kernel.arg_names.index(name),): value for name, value in constants.items()}
source = GluonASTSource(kernel, signature, values)
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
    file.write(compiled.asm["cubin"])
    file.flush()
    print(subprocess.run([sys.argv[2], "-sass", file.name], capture_output=True, text=True, check=True).stdout)
"""


def sass_of(kernel, tiles, types, constants, cache):
    """Machine code of a kernel: tiles are of those arguments that are tensor descriptors, types of other pointers."""
    tool = TOOLS / "cuobjdump" if (TOOLS / "cuobjdump").exists() else shutil.which("cuobjdump")
    if tool is None:
        pytest.skip("this Triton has no disassembler")
    arguments = [str(SCRIPTS), str(tool), json.dumps([kernel, tiles, types, constants])]
    environment = {"TRITON_CACHE_DIR": str(cache), "PATH": "/usr/bin:/bin", "HOME": str(cache)}
    shown = subprocess.run(
        [sys.executable, "-c", COMPILE, *arguments], capture_output=True, text=True, env=environment, timeout=120
    )
    assert shown.returncode == 0, shown.stderr[-2000:]
    return shown.stdout


def assert_products_overlap(sass, waits_for_all, left):
    """Products are started one after the other and waited for together, or until so many are left, and no sum is
    spilled in the loops that make them: at most an address is read again."""
    assert "HGMMA" in sass and "UTMALDG" in sass
    # The compiler can put a wait behind every product, when it does not understand what the registers hold.
    assert sass.count("WARPGROUP.DEPBAR.LE gsb0, 0x0") == waits_for_all
    assert sass.count(f"WARPGROUP.DEPBAR.LE gsb0, {left:#x}") >= 2
    loops = loops_with_products(sass)
    assert len(loops) >= 2
    assert not any("STL" in line for lines in loops for line in lines)
    assert max(sum("LDL" in line for line in lines) for lines in loops) <= 1


def loops_with_products(sass):
    """The innermost loops in which a product is started, each as its instructions: from where a branch leads back to,
    to that branch. What is tried again behind a function's end leads back into the middle of a loop, and is none."""
    code = re.findall(r"^\s+/\*([0-9a-f]{4,5})\*/\s+(.*?);", sass, re.MULTILINE)
    at = {int(address, 16): i for i, (address, _) in enumerate(code)}
    spans = []
    for end, (address, line) in enumerate(code):
        target = re.search(r"\bBRA\b.*\b0x([0-9a-f]+)", line)
        if target and int(target[1], 16) < int(address, 16):
            begin = at[int(target[1], 16)]
            if any("HGMMA" in of for _, of in code[begin:end]):
                spans.append((begin, end))
    loops = [a for a in spans if not any(b[0] < a[0] <= b[1] < a[1] for b in spans)]
    inner = [a for a in loops if not any(a != b and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    return [[line for _, line in code[begin : end + 1]] for begin, end in inner]


@pytest.mark.parametrize(
    "width, rest, groups, keys, stages, registers, is_causal",
    [
        (64, 0, 2, 128, 4, 240, True),
        (64, 0, 2, 128, 4, 240, False),
        (64, 0, 3, 128, 3, 160, True),
        (64, 0, 3, 128, 3, 160, False),
        (128, 0, 2, 128, 2, 240, True),
        (128, 32, 2, 128, 2, 240, True),
        (256, 0, 2, 64, 2, 240, True),
    ],
)
def test_forward(tmp_path, width, rest, groups, keys, stages, registers, is_causal):
    query, key = ["bf16", 1, 1, 64, width], ["bf16", 1, 1, keys, width]
    constants = {"KEYS": keys, "BLOCK": width, "GROUPS": groups, "STAGES": stages, "REGISTERS": registers, "REST": rest}
    sass = sass_of(
        "forward",
        {"q": query, "k": key, "v": key, "output": query},
        {"lse": "*fp32", "given_out": "*i32", "scale_log2": "fp32"},
        constants | {"CAUSAL": is_causal, "LOCAL": False},
        tmp_path,
    )
    assert_products_overlap(sass, waits_for_all=3 * groups, left=2 if rest else 1)
    # Where sums are rescaled only after their maximum has grown, a warp asks its threads in each loop.
    is_lazy = is_causal or groups == 2
    assert all(any("VOTE.ANY" in line for line in lines) == is_lazy for lines in loops_with_products(sass))


PLAIN = {"SHARED": False, "CAUSAL": True, "SHIFTED": False, "WINDOWED": False}


@pytest.mark.parametrize("width, rest, queries", [(64, 0, 128), (128, 0, 64), (128, 16, 64)])
def test_backward(tmp_path, width, rest, queries):
    query, key, row = ["bf16", 1, 1, queries, width], ["bf16", 1, 1, 64, width], ["fp32", 1, queries]
    tiles = {"q": query, "k": key, "v": key, "d_output": query, "shift": row, "delta": row, "d_k": key, "d_v": key}
    sass = sass_of(
        "backward",
        tiles | {"sums": ["fp32", 1, 64, 64]},
        {"turns": "*i32", "scale": "fp32", "scale_log2": "fp32"},
        {"QUERIES": queries, "BLOCK": width, "STAGES": 2, "REGISTERS": 240, "REST": rest} | PLAIN,
        tmp_path,
    )
    assert "UTMAREDG" in sass
    assert_products_overlap(sass, waits_for_all=2 * 2, left=2 if rest else 1)


@pytest.mark.parametrize(
    "flags", [PLAIN, {"SHARED": True, "CAUSAL": True, "SHIFTED": True, "WINDOWED": True}], ids=["plain", "window"]
)
def test_wide_backward(tmp_path, flags):
    tile, row = ["bf16", 1, 1, 64, 256], ["fp32", 1, 64]
    tiles = dict.fromkeys(("q", "k", "v", "d_output", "d_k", "d_v"), tile) | {"shift": row, "delta": row}
    sass = sass_of(
        "wide backward",
        tiles | {"sums": ["fp32", 1, 64, 128]},
        {"turns": "*i32", "scale": "fp32", "scale_log2": "fp32"},
        {"REGISTERS": 240} | flags,
        tmp_path,
    )
    # 5 products, each of the instructions that 64 x 64 x 256 takes.
    assert sass.count("HGMMA") == (16 + 16) + (4 + 4) + (4 + 4)
    assert "UTMAREDG" in sass
    # Both warpgroups wait for all that they started, twice in each step.
    assert sass.count("WARPGROUP.DEPBAR.LE gsb0, 0x0") == 2 * 2
    # Neither spills anything from its first product to its last; little, with all that a mask can ask.
    within = " ".join(sass.split("HGMMA")[1:24] + sass.split("HGMMA")[25:48])
    assert within.count("STL") + within.count("LDL") <= (0 if flags is PLAIN else 12)


@pytest.mark.skipif(DEVICE == "cpu" or torch.cuda.get_device_capability()[0] != 9, reason="needs a Hopper GPU")
@pytest.mark.parametrize(
    "heads, sharing, queries, keys, d_head, dtype, is_causal, mask",
    [
        (2, 1, 1000, 1000, 256, torch.bfloat16, True, {}),
        (2, 1, 700, 900, 256, torch.bfloat16, False, {}),
        (2, 1, 900, 700, 192, torch.float16, True, {}),
        (4, 2, 500, 900, 256, torch.bfloat16, True, {"lower_right": True}),
        (4, 2, 900, 500, 136, torch.float16, True, {"lower_right": True}),
        (4, 4, 700, 700, 160, torch.bfloat16, True, {"window": 100}),
        (2, 1, 700, 1000, 256, torch.bfloat16, True, {"window": 300, "lower_right": True}),
        (3, 1, 1, 77, 256, torch.float16, False, {}),
        (3, 1, 129, 1, 248, torch.float16, True, {}),
    ],
)
def test_wide_gradients(
    random_tensors, run, exact, assert_close, heads, sharing, queries, keys, d_head, dtype, is_causal, mask
):
    q, k, v, d_output = random_tensors((2, heads), queries, keys, d_head, dtype, sharing=sharing)
    got = run(fused.attention_and_lse, q, k, v, d_output, is_causal, **mask)
    right = exact(q, k, v, d_output, is_causal, **mask)
    unseen = torch.isneginf(right[1])  # by which queries
    assert torch.equal(torch.isneginf(got[1]), unseen)
    seen = [(one[0], one[1].masked_fill(unseen, 0), *one[2:]) for one in (got, right)]
    assert_close(*seen, {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[dtype] * (10 if keys == 1 else 1))
    for _ in range(5):
        again = run(fused.attention_and_lse, q, k, v, d_output, is_causal, **mask)
        assert all(torch.equal(a, b) for a, b in zip(got, again, strict=True))
