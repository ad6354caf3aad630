"""The kernels for Hopper GPUs compile, into what they are meant to be, on a machine without one.

They run on such a GPU only, where all other tests of attention run them.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import triton

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
from stepscope.attention import hopper_backward, hopper_forward

kernel, tiles, types, constants = json.loads(sys.argv[3])
kernel = {"forward": hopper_forward._forward_kernel, "backward": hopper_backward._backward_kernel}[kernel]

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


def assert_products_overlap(sass, waits_for_all, left, at_least=2):
    """Products are started one after the other and waited for together, or until so many are left, and no sum is
    spilled within the loops."""
    assert "HGMMA" in sass and "UTMALDG" in sass
    # The compiler can put a wait behind every product, when it does not understand what the registers hold.
    assert sass.count("WARPGROUP.DEPBAR.LE gsb0, 0x0") == waits_for_all
    assert sass.count(f"WARPGROUP.DEPBAR.LE gsb0, {left:#x}") >= at_least
    assert sass.count("STL") + sass.count("LDL") <= 12


@pytest.mark.parametrize(
    "width, rest, groups, keys, stages, registers",
    [
        (64, 0, 2, 128, 4, 240),
        (64, 0, 3, 128, 3, 160),
        (128, 0, 2, 128, 2, 240),
        (128, 32, 2, 128, 2, 240),
        (256, 0, 2, 64, 2, 240),
    ],
)
def test_forward(tmp_path, width, rest, groups, keys, stages, registers):
    query, key = ["bf16", 1, 1, 64, width], ["bf16", 1, 1, keys, width]
    constants = {"KEYS": keys, "BLOCK": width, "GROUPS": groups, "STAGES": stages, "REGISTERS": registers, "REST": rest}
    sass = sass_of(
        "forward",
        {"q": query, "k": key, "v": key, "output": query},
        {"lse": "*fp32", "given_out": "*i32", "scale_log2": "fp32"},
        constants | {"CAUSAL": True, "LOCAL": False},
        tmp_path,
    )
    # The first scores of the next block are under way while the last product of this one is waited for.
    waits = 3 if width <= 128 else 4
    assert_products_overlap(sass, waits * groups, left=2 if rest else 1, at_least=4 if width <= 128 else 2)


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
