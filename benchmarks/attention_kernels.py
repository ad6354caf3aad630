"""The fused attention of stepscope.kernels against PyTorch's and cuDNN's on a GPU, causal, in bf16.

python benchmarks/attention_kernels.py [--cells 64x4096 128x16384 ...] [--implementations ours flash
cudnn] python benchmarks/attention_kernels.py --host [--cells 4x16x128x128] [--implementations ...]
python benchmarks/attention_kernels.py --tune [--cells ...]

Shapes as in the literature: batch x length = 16,384, heads x d_head = 2,048; a cell is d_head x
length, or any batch x heads x length x d_head, as 4x48x4096x128. `single` is one sequence of 16,384
tokens with 16 heads of 64, forward and backward in one. All implementations run in one process, in
turns, each sample with a cold L2 cache; what is compared are medians. 4 batch heads length^2 d_head
operations forward, half of that if causal, and 2.5 times as many backward.

Should be: ahead of all others in every cell, and `single` below 5.3 ms on an H100; with a d_head of
256, at least 0.98 of `cudnn` backward. A change of the kernels should cost no cell more than 2 % of
its ratio to `cudnn`: `--csv FILE` writes the ratios, `--before FILE` sets those of an earlier run
beside them. --host instead times how long a call keeps the host busy, --tune other tiles of our
kernels. What is right, the tests in tests/unit/kernels say.
"""

import argparse
import csv
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from stepscope.kernels import fused, kernels, tiles
from stepscope.model.attention import flex

CELLS = [f"{d_head}x{length}" for d_head in (64, 128) for length in (1024, 4096, 16384)] + [
    "single"
]
FLUSHED_BYTES = 256 * 2**20  # five times the L2 cache of an H100
HOST_CALLS = 10  # of which the host's time is a mean: a GPU's queue holds many more
COLUMNS = ("quantity", "cell", "phase", "implementation", "milliseconds", "tflops", "ratio")
# about 1 ms: the host is that far ahead of the device, so that launching costs no time
AHEAD_CYCLES = 2_000_000

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument(
        "--cells", nargs="+", type=known, default=CELLS, metavar="CELL", help=" ".join(CELLS)
    )
    names = list(implementations())
    flags.add_argument(
        "--implementations", nargs="+", choices=names, default=names, help="what to run (all)"
    )
    flags.add_argument("--samples", type=int, default=30, help="of each (30)")
    flags.add_argument(
        "--host", action="store_true", help="time how long a call keeps the host busy"
    )
    flags.add_argument("--tune", action="store_true", help="time other tiles of our kernels")
    flags.add_argument(
        "--csv", type=Path, metavar="FILE", help="write times and their ratios to ours"
    )
    flags.add_argument(
        "--before", type=Path, metavar="FILE", help="CSV of an earlier run to compare ratios with"
    )
    given = flags.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__, flush=True)
    earlier = csv.DictReader(given.before.open()) if given.before else []
    before = {key_of(row): float(row["ratio"]) for row in earlier if row["ratio"]}
    rows = []
    for cell in given.cells:
        if given.tune:
            tune(cell, given.samples)
            continue
        for row in compare(cell, given.implementations, given.samples, given.host):
            rows.append(row)
            show(row, before.get(key_of(row)))
    if given.csv:
        with given.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)


def key_of(row: dict) -> tuple[str, ...]:
    """What names a row of the CSV."""
    return tuple(row[column] for column in COLUMNS[:4])


def show(row: dict, before: float | None) -> None:
    """Print a row, and by how much its ratio changed."""
    rate = f"{row['tflops']:6.1f} TFLOP/s" if row["tflops"] != "" else "of the host"
    ratio = f" ours/{row['implementation']} {row['ratio']:.3f}" if row["ratio"] != "" else ""
    change = (
        f" was {before:.3f}, {100 * (row['ratio'] / before - 1):+.1f} %" if before and ratio else ""
    )
    print(f"{row['cell']:10} {row['phase']:8} {row['implementation']:9}", end=" ")
    print(f"{row['milliseconds']:8.4f} ms {rate}{ratio}{change}", flush=True)


def implementations() -> dict[str, Attention]:
    """Name -> causal attention of (batch, heads, length, d_head)."""

    def pytorch(backend: SDPBackend) -> Attention:
        def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)

        return attention

    return {
        "ours": lambda q, k, v: fused.attention(q, k, v, True),
        "sdpa": lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, is_causal=True
        ),  # PyTorch chooses
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


def compare(cell: str, names: list[str], samples: int, on_host: bool) -> Iterator[dict]:
    """A row of the CSV for each phase and implementation of a cell: time on the GPU, or of the host
    for issuing it.

    ratio: time of the implementation over ours, above 1 where ours is faster."""
    whole = ["both"] if cell == "single" else ["forward", "backward"]
    for phase in ["forward", "both"] if on_host else whole:
        runs = runs_of(cell, phase, names)
        times = host_medians(runs, samples) if on_host else medians(runs, samples)
        for name, milliseconds in times.items():
            rate = "" if on_host else operations(cell)[phase] / milliseconds / 1e9
            ratio = milliseconds / times["ours"] if "ours" in times else ""
            values = ("host" if on_host else "gpu", cell, phase, name, milliseconds, rate, ratio)
            yield dict(zip(COLUMNS, values, strict=True))


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
            print(
                f"{cell:10} {phase:8} {name:9} {type(error).__name__}:"
                f" {str(error).splitlines()[0][:150]}"
            )
    return runs


def phase_of(
    attention: Attention, phase: str, q: Tensor, k: Tensor, v: Tensor, d_output: Tensor
) -> Callable:
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
    return {
        name: statistics.median(a.elapsed_time(b) for a, b in pairs)
        for name, pairs in events.items()
    }


def host_medians(runs: dict[str, Callable], samples: int) -> dict[str, float]:
    """Median milliseconds for which each call keeps the host busy, in turns, issued without waiting
    in between."""
    found = {name: [] for name in runs}
    for _ in range(samples):
        for name, run in runs.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(HOST_CALLS):
                run()
            found[name].append(1e3 * (time.perf_counter() - start) / HOST_CALLS)
    return {name: statistics.median(of) for name, of in found.items()}


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
            forget()
            try:
                time = medians(
                    {"": phase_of(implementations()["ours"], phase, q, k, v, d_output)}, samples
                )[""]
                rate = operations(cell)[phase] / time / 1e9
                print(
                    f"{cell:10} {phase:8} {time:8.3f} ms {rate:6.1f} TFLOP/s {candidate}",
                    flush=True,
                )
            except Exception as error:  # too much shared memory, say
                print(
                    f"{cell:10} {phase:8} {candidate}: {type(error).__name__}:"
                    f" {str(error).splitlines()[0][:100]}"
                )
        setattr(tiles, name, chosen)
        forget()


def forget() -> None:
    """Choose tiles anew."""
    kernels.forward_plan.cache_clear()
    kernels.backward_plan.cache_clear()


def forward_candidates(d_head: int) -> Iterator[tiles.HopperForward]:
    """Tiles of the forward pass whose buffers fit into shared memory."""
    now = tiles.hopper_forward(d_head, queries=1, sequences=1, is_causal=True, multiprocessors=1)
    yield now
    for warpgroups, keys, stages in itertools.product((2, 3), (64, 128), (2, 3, 4)):
        other = replace(
            now,
            warpgroups=warpgroups,
            keys=keys,
            stages=stages,
            registers=240 if warpgroups == 2 else 160,
        )
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
