"""The fused attention of stepscope.kernels against PyTorch's and cuDNN's on a GPU, causal, in bf16.

python benchmarks/attention_kernels.py [--cells 64x4096 128x16384 ...] [--implementations ours flash cudnn] [--check]
python benchmarks/attention_kernels.py --host [--cells 4x16x128x128] [--implementations ...]
python benchmarks/attention_kernels.py --tune [--cells ...]

Shapes as in the literature: batch x length = 16,384, heads x d_head = 2,048; a cell is d_head x length, or any batch x
heads x length x d_head, as 4x48x4096x128. `single` is one sequence of 16,384 tokens with 16 heads of 64, forward and
backward in one. All implementations run in one process, in turns, each sample with a cold L2 cache; what is compared
are medians. 4 batch heads length^2 d_head operations forward, half of that if causal, and 2.5 times as many backward.

Should be: ahead of all others in every cell, and `single` below 5.3 ms on an H100; with a d_head of 256, at least 0.98
of `cudnn` backward. With --host less than all others, `sdpa` among them, which is PyTorch's own choice.
--check first compares results with float64; --host instead times how long a call keeps the host busy, --tune other
tiles of our kernels.
"""

import argparse
import itertools
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from stepscope.kernels import fused, kernels, tiles
from stepscope.measure.attention_host import seconds_of
from stepscope.model.attention import flex

CELLS = [f"{d_head}x{length}" for d_head in (64, 128) for length in (1024, 4096, 16384)] + ["single"]
FLUSHED_BYTES = 256 * 2**20  # five times the L2 cache of an H100
AHEAD_CYCLES = 2_000_000  # about 1 ms: the host is that far ahead of the device, so that launching costs no time

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--cells", nargs="+", type=known, default=CELLS, metavar="CELL", help=" ".join(CELLS))
    names = list(implementations())
    flags.add_argument("--implementations", nargs="+", choices=names, default=names, help="what to run (all)")
    flags.add_argument("--samples", type=int, default=30, help="of each (30)")
    flags.add_argument("--check", action="store_true", help="compare results with float64 first")
    flags.add_argument("--host", action="store_true", help="time how long a call keeps the host busy")
    flags.add_argument("--tune", action="store_true", help="time other tiles of our kernels")
    given = flags.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    if given.check:
        check()
    for cell in given.cells:
        if given.tune:
            tune(cell, given.samples)
        elif given.host:
            compare_hosts(cell, given.implementations, given.samples)
        else:
            compare(cell, given.implementations, given.samples)


def implementations() -> dict[str, Attention]:
    """Name -> causal attention of (batch, heads, length, d_head)."""

    def pytorch(backend: SDPBackend) -> Attention:
        def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        return attention

    return {
        "ours": lambda q, k, v: fused.attention(q, k, v, True),
        "sdpa": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),  # PyTorch chooses
        "flash": pytorch(SDPBackend.FLASH_ATTENTION),
        "cudnn": pytorch(SDPBackend.CUDNN_ATTENTION),
        "efficient": pytorch(SDPBackend.EFFICIENT_ATTENTION),
        "flex": lambda q, k, v: flex.attention(q, k, v, True),
    }


def known(cell: str) -> str:
    """The cell, if it is one; argparse says so where this raises ValueError."""
    if len(shape_of(cell)) != 4:
        raise ValueError(cell)
    return cell


def shape_of(cell: str) -> tuple[int, ...]:
    """(batch, heads, length, d_head) of a cell."""
    if cell == "single":
        return 1, 16, 16384, 64
    sizes = tuple(map(int, cell.split("x")))
    return sizes if len(sizes) > 2 else (16384 // sizes[1], 2048 // sizes[0], sizes[1], sizes[0])


def inputs(cell: str) -> list[Tensor]:
    """Random q, k, v and dO of a cell, bf16."""
    torch.manual_seed(0)
    tensors = [torch.randn(shape_of(cell), device="cuda", dtype=torch.bfloat16) for _ in range(4)]
    return [x.requires_grad_() for x in tensors[:3]] + tensors[3:]


def operations(cell: str) -> dict[str, float]:
    """Phase -> floating-point operations of a cell."""
    q = inputs(cell)[0]
    forward = 4 * q.shape[0] * q.shape[1] * q.shape[2] ** 2 * q.shape[3] / 2
    return {"forward": forward, "backward": 2.5 * forward, "both": 3.5 * forward}


def compare(cell: str, names: list[str], samples: int) -> None:
    """Time and print all implementations on a cell."""
    for phase in ["both"] if cell == "single" else ["forward", "backward"]:
        times = medians(runs_of(cell, phase, names), samples)
        for name, milliseconds in times.items():
            rate = operations(cell)[phase] / milliseconds / 1e9
            ratio = f" ours/{name} {milliseconds / times['ours']:.3f}" if "ours" in times else ""
            print(f"{cell:10} {phase:8} {name:9} {milliseconds:8.3f} ms {rate:6.1f} TFLOP/s{ratio}", flush=True)


def compare_hosts(cell: str, names: list[str], samples: int) -> None:
    """Print how long a call of each implementation keeps the host busy, issued one after another without waiting."""
    for phase in ("forward", "both"):
        runs = runs_of(cell, phase, names)
        found = seconds_of(list(runs.values()), torch.cuda.synchronize, rounds=samples)
        times = {name: 1e6 * statistics.median(of) for name, of in zip(runs, found, strict=True)}
        for name, microseconds in times.items():
            ratio = f" ours/{name} {microseconds / times['ours']:.3f}" if "ours" in times else ""
            print(f"{cell:10} {phase:8} {name:9} {microseconds:8.1f} us of the host{ratio}", flush=True)


def runs_of(cell: str, phase: str, names: list[str]) -> dict[str, Callable]:
    """A call that runs the phase, of each implementation that can; says why another cannot."""
    torch._dynamo.reset()  # it stops compiling after a few shapes
    q, k, v, d_output = inputs(cell)
    runs = {}
    for name in names:
        try:
            runs[name] = phase_of(implementations()[name], phase, q, k, v, d_output)
            runs[name]()
            torch.cuda.synchronize()
        except Exception as error:  # whatever one of them cannot do, the others still run
            runs.pop(name, None)
            print(f"{cell:10} {phase:8} {name:9} {type(error).__name__}: {str(error).splitlines()[0][:150]}")
    return runs


def phase_of(attention: Attention, phase: str, q: Tensor, k: Tensor, v: Tensor, d_output: Tensor) -> Callable:
    """A call that runs the phase of an implementation."""
    if phase == "backward":
        output = attention(q, k, v)
        return lambda: torch.autograd.grad(output, (q, k, v), d_output, retain_graph=True)
    if phase == "both":
        return lambda: torch.autograd.grad(attention(q, k, v), (q, k, v), d_output)

    def forward() -> Tensor:
        with torch.no_grad():
            return attention(q, k, v)

    return forward


def medians(runs: dict[str, Callable], samples: int) -> dict[str, float]:
    """Median milliseconds of each call, timed in turns."""
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.int8, device="cuda")
    for run, _ in itertools.product(runs.values(), range(3)):
        run()
    events = {name: [] for name in runs}
    for _ in range(samples):
        for name, run in runs.items():
            flushed.zero_()
            torch.cuda._sleep(AHEAD_CYCLES)
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            run()
            end.record()
            events[name].append((start, end))
    torch.cuda.synchronize()
    return {name: statistics.median(a.elapsed_time(b) for a, b in pairs) for name, pairs in events.items()}


def check() -> None:
    """Print the errors of our results, relative to their norm, on shapes that reach every branch of the kernels."""
    names = ("output", "lse", "dq", "dk", "dv")
    for batch, heads, queries, keys, d_head, is_causal in (
        (2, 3, 1000, 1000, 64, True), (2, 3, 1000, 1000, 128, True), (1, 2, 700, 900, 80, True),
        (1, 2, 900, 700, 64, False), (1, 2, 900, 700, 128, False), (1, 1, 9000, 9000, 64, True),
        (1, 1, 4096, 4096, 128, True), (3, 5, 1, 77, 64, False), (3, 5, 129, 1, 128, True),
    ):  # fmt: skip
        torch.manual_seed(0)
        shapes = [(batch, length, heads, d_head) for length in (queries, keys, keys, queries)]
        q, k, v, d_output = (torch.randn(s, device="cuda", dtype=torch.bfloat16).transpose(1, 2) for s in shapes)
        wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
        narrow = [x.detach().requires_grad_() for x in (q, k, v)]
        scores = wide[0] @ wide[1].mT / d_head**0.5
        if is_causal:
            scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))
        expected = torch.softmax(scores, -1) @ wide[2]
        output, lse = fused.attention_and_lse(*narrow, is_causal)
        got = [output, lse, *torch.autograd.grad(output, narrow, d_output)]
        right = [expected, torch.logsumexp(scores, -1), *torch.autograd.grad(expected, wide, d_output.double())]
        errors = [
            ((a.double() - b).norm() / max(b.norm(), 0.1 * b.numel() ** 0.5)).item()
            for a, b in zip(got, right, strict=True)
        ]
        shape = f"{batch}x{heads}x{queries}x{keys}x{d_head} {'causal' if is_causal else ''}"
        print(f"{shape:30}", *(f"{name} {error:.1e}" for name, error in zip(names, errors, strict=True)), flush=True)
        if not max(errors) < 0.016:
            sys.exit("wrong")


def tune(cell: str, samples: int) -> None:
    """Time our forward and backward kernels with other tiles."""
    q, k, v, d_output = inputs(cell)
    for phase, name, candidates in (
        ("forward", "hopper_forward", forward_candidates(q.shape[-1])),
        ("backward", "hopper_backward", backward_candidates(q.shape[-1])),
    ):
        chosen = getattr(tiles, name)
        for candidate in candidates:
            setattr(tiles, name, lambda *_, candidate=candidate: candidate)
            kernels.known.clear()
            try:
                time = medians({"": phase_of(implementations()["ours"], phase, q, k, v, d_output)}, samples)[""]
                rate = operations(cell)[phase] / time / 1e9
                print(f"{cell:10} {phase:8} {time:8.3f} ms {rate:6.1f} TFLOP/s {candidate}", flush=True)
            except Exception as error:  # too much shared memory, say
                print(f"{cell:10} {phase:8} {candidate}: {type(error).__name__}: {str(error).splitlines()[0][:100]}")
        setattr(tiles, name, chosen)
        kernels.known.clear()


def forward_candidates(d_head: int) -> Iterator[tiles.HopperForward]:
    """Tiles of the forward pass whose buffers fit into shared memory."""
    now = tiles.hopper_forward(d_head, queries=1, sequences=1, is_causal=True, multiprocessors=1)
    yield now
    options = [
        (2, 128, 2),
        (2, 128, 3),
        (2, 128, 4),
        (2, 64, 3),
        (2, 64, 4),
        (3, 64, 4),
        (3, 64, 6),
        (3, 128, 2),
        (3, 128, 3),
        (3, 128, 4),
    ]
    for warpgroups, keys, stages in options:
        other = replace(now, warpgroups=warpgroups, keys=keys, stages=stages, registers=240 if warpgroups == 2 else 160)
        bytes_shared = 2 * now.block * (3 * 64 * warpgroups + 2 * keys * stages)
        if other != now and bytes_shared < 225 * 1024:
            yield other


def backward_candidates(d_head: int) -> Iterator[tiles.HopperBackward]:
    """Tiles of the backward pass."""
    now = tiles.hopper_backward(d_head)
    yield now
    if d_head <= 128:  # the kernel for others has two
        yield replace(now, stages=3 if now.stages == 2 else 2)


if __name__ == "__main__":
    main()
