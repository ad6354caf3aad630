"""scripts/time_step.py with a busy kernel at the end of one phase: a slowdown of known size, for second_run.py.

python benchmarks/planted_step.py --phase backward --seconds 0.002 -- --size small --context 128 … [--out DIR]

What stands behind `--` is given to scripts/time_step.py. The kernel takes so many seconds each time that the phase
runs, in phased and in free steps: on a GPU it waits for a number of clock cycles, on a CPU it multiplies small
matrices. Both are calibrated where the model is built, outside of all timed steps, and slow down with the device's
clock, as any work. In free steps of a model that launches limit the GPU is idle for a while anyway, which can hide a
part of it or all.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

METHODS = {"forward": "_forward", "backward": "_backward", "optimizer": "_optimize"}  # of steps.Workload
CALIBRATIONS = 9
CYCLES = 20_000_000  # of one calibration, about ten milliseconds
PRODUCTS = 2_000  # the same on a CPU
ORDER = 64  # of the matrices: a product takes some microseconds


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--phase", choices=METHODS, required=True, help="the phase that takes longer")
    flags.add_argument("--seconds", type=float, required=True, help="by how much")
    flags.add_argument("words", nargs="+", metavar="FLAG", help="of scripts/time_step.py, behind --")
    given = flags.parse_args()

    import time_step
    from stepscope.measure import process

    sys.argv[1:] = given.words
    spec, *_ = time_step.parse(given.words)
    process.set_environment(spec["threads"])  # torch, which the next line imports, reads it
    from stepscope.measure.steps import Workload

    plant(Workload, given.phase, lambda device: busy(device, given.seconds))
    time_step.main()


def plant(workload: type, phase: str, kernel_on: Callable[[str], Callable[[], object]]) -> None:
    """Let every workload of a class run a kernel, made by `kernel_on` for its device, at the end of a phase."""
    build, run = workload.__init__, getattr(workload, METHODS[phase])

    def build_with_kernel(self, spec: dict) -> None:
        build(self, spec)
        self.planted = kernel_on(spec["device"])

    def run_with_kernel(self) -> None:
        run(self)
        self.planted()

    workload.__init__ = build_with_kernel
    setattr(workload, METHODS[phase], run_with_kernel)


def busy(device: str, seconds: float) -> Callable[[], object]:
    """Work for a device that takes so many seconds."""
    amount = spin if device == "cuda" else multiply
    some = CYCLES if device == "cuda" else PRODUCTS
    amount(some * CALIBRATIONS)  # a device that was idle raises its clock
    taken = statistics.median(timed(device, lambda: amount(some)) for _ in range(CALIBRATIONS))
    count = max(1, round(seconds / taken * some))
    print(f"planted: {1000 * timed(device, lambda: amount(count)):.4f} ms, to be {1000 * seconds:.4f} ms", flush=True)
    return lambda: amount(count)


def timed(device: str, work: Callable[[], object]) -> float:
    """Seconds that work takes: between two CUDA events, on a CPU by the clock."""
    import torch

    if device != "cuda":
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    before.record()
    work()
    after.record()
    torch.cuda.synchronize()
    return before.elapsed_time(after) / 1000


def spin(cycles: int) -> None:
    """Keep a multiprocessor of the GPU in a loop for so many of its clock's cycles."""
    import torch

    torch.cuda._sleep(cycles)


def multiply(products: int) -> None:
    """Multiply two small matrices so many times."""
    import torch

    with torch.no_grad():
        matrix = torch.ones(ORDER, ORDER)
        product = torch.empty(ORDER, ORDER)
        for _ in range(products):
            torch.mm(matrix, matrix, out=product)


if __name__ == "__main__":
    main()
