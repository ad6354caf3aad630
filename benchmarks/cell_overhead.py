"""A cell's process outside its steps, against the least that any such process needs; the ratio should be at most 1.1.

python benchmarks/cell_overhead.py [--size tiny] [--context 128] [--device auto]

The least: start Python, import torch, create the model and, on a GPU, wait for the first call. The cell's own: its wall
time less the sum of all its samples, warm-up included. Both run in turns; the medians are compared.
"""

import argparse
import csv
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
LEAST = """\
import sys
import torch
sys.path.insert(0, sys.argv[1])
from stepscope.model.shape import ModelShape
from stepscope.model.transformer import build_model
*numbers, device = sys.argv[2:]
*shape, context = map(int, numbers)
torch.set_num_threads(1 if device == "cuda" else torch.get_num_threads())
model = build_model(ModelShape(*shape), context, "naive", device, 0)
if device == "cuda":
    (torch.ones(8, 8, device=device) @ torch.ones(8, 8, device=device)).sum()
    torch.cuda.synchronize()
"""


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--size", default="tiny", help="a size of config.yaml (tiny)")
    flags.add_argument("--context", default="128", help="tokens (128)")
    flags.add_argument("--device", choices=["cuda", "cpu"], default=None, help="the GPU if there is one, else the CPU")
    flags.add_argument("--turns", type=int, default=5, help="runs of each (5)")
    given = flags.parse_args()
    import yaml

    shape = yaml.safe_load((SCRIPTS.parent / "config.yaml").read_text())["sizes"][given.size]
    numbers = [*(shape[name] for name in ("d_model", "d_ff", "num_layers", "num_heads")), 10_000, given.context]
    device = given.device or ("cuda" if Path("/proc/driver/nvidia/version").exists() else "cpu")
    least, own = [], []
    for _ in range(given.turns):
        least.append(seconds([sys.executable, "-c", LEAST, str(SCRIPTS), *map(str, numbers), device]))
        own.append(outside_steps(given.size, given.context, device))
    a, b = statistics.median(least), statistics.median(own)
    print(f"{given.size}, context {given.context}, {device}:", end=" ")
    print(f"least {a:.2f} s, cell outside steps {b:.2f} s, ratio {b / a:.3f}")


def outside_steps(size: str, context: str, device: str) -> float:
    """Wall seconds of a cell's process less all that its samples took."""
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, str(SCRIPTS / "time_step.py"), "--size", size, "--context", context]
        whole = seconds(
            [*program, "--device", device, "--processes", "1", "--warmup", "1", "--steps", "10", "--out", folder]
        )
        with open(Path(folder) / "samples.csv") as file:
            return whole - sum(float(row["seconds"]) for row in csv.DictReader(file))


def seconds(command: list[str]) -> float:
    """Wall seconds of a command that has to succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
