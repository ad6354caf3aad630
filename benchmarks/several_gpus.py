"""The same grid on 1, 2, 4 … GPUs of one machine: how much faster, and whether cells disturb each other.

python benchmarks/several_gpus.py [--gpus 1 2 4] [--preset smoke] [--fake SECONDS]

Each run measures the whole grid in a folder of its own, N cells at a time; figures and report are left out. Printed for
each count: wall time, and how many times faster than one GPU (at least 3.5 on 4). The grid runs twice on one GPU: the
second run says how far medians move by themselves. Then for each count: the median over the series of (median time
among others / alone), which should be within 1 % of 1, and how many series lie outside the other run's interval.

--fake runs it without GPUs: faked ones, and cells that only take their GPU's lock and wait for so many seconds. What
is shown then is that N cells run at a time, each on a GPU of its own.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
PARTS = ("Snakefile", "config.yaml", "rules", "scripts", "envs", "profiles", "report")
RULES = (
    *("time_step", "measure_ceilings", "profile_step", "snapshot_memory", "time_attention"),
    *("probe_precision", "time_warmup", "time_ladder"),
)
STUB = """
import pathlib, sys, time
from stepscope.measure import device_lock
from stepscope.plan import machine

out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
(gpu,) = machine.visible_gpus()
with device_lock.hold(gpu.uuid):
    time.sleep({seconds})
out.mkdir(parents=True, exist_ok=True)
(out / "samples.csv").write_text("")
for part in ("trace", "snapshot"):
    (out / part).mkdir(exist_ok=True)
(out / "record.json").write_text('{{"summary": {{"phases": []}}, "gpu": "%s"}}' % gpu.uuid)
"""


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--gpus", type=int, nargs="+", default=[1, 2, 4], help="how many at a time (1 2 4)")
    flags.add_argument("--preset", default="smoke", help="a preset's grid (smoke)")
    flags.add_argument("--fake", type=float, metavar="SECONDS", help="faked GPUs, and cells that wait so long")
    given = flags.parse_args()
    if not SNAKEMAKE.exists():  # as where it is no part of this interpreter's environment
        globals()["SNAKEMAKE"] = Path(shutil.which("snakemake") or sys.exit("snakemake is not installed here"))
    with tempfile.TemporaryDirectory() as base:
        runs = {}
        for name, count in [("alone", 1), ("again", 1), *((str(n), n) for n in given.gpus if n > 1)]:
            runs[name] = measure(Path(base) / name, count, given.preset, max(given.gpus), given.fake)
            faster = runs["alone"][0] / runs[name][0]
            print(f"{name:>5}: {count} GPU(s), {runs[name][0]:.1f} s, {faster:.2f} times as fast as one", flush=True)
        for name, (_, folder) in runs.items():
            if name != "alone":
                print(f"{name:>5} against alone: {compared(runs['alone'][1], folder)}")


def measure(folder: Path, count: int, preset: str, visible: int, fake: float | None) -> tuple[float, Path]:
    """(wall seconds, folder of the cells) of the grid, `count` cells at a time."""
    folder.mkdir()
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, folder / part, **({"ignore": leave} if (ROOT / part).is_dir() else {}))
    if fake is not None:
        use_fakes(folder / "scripts", visible, fake)
    gpus = ",".join(map(str, range(count)))
    command = [SNAKEMAKE, "report", "--cores", count, "--resources", f"gpu={count}", "--scheduler", "greedy"]
    command += ["--config", f"preset={preset}", "device=cuda", "--until", *RULES]
    start = time.perf_counter()
    ended = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": gpus, "STEPSCOPE_LOCKS": str(folder / "locks")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if ended.returncode:
        sys.exit(ended.stdout[-3000:])
    return time.perf_counter() - start, folder / "results"


def leave(_folder: str, names: list[str]) -> set[str]:
    """What is not copied: byte code, and the committed report."""
    return {"__pycache__", "example"} & set(names)


def use_fakes(scripts: Path, count: int, seconds: float) -> None:
    """Let a copy of the project see faked GPUs, and wait instead of measuring."""
    path = scripts / "stepscope/plan/machine.py"
    fakes = f'[Gpu("Fake", f"GPU-{{i}}", 80, "1.0") for i in range({count})]'
    text = path.read_text().replace("gpus = _gpus_from_nvml() or _gpus_from_proc()", f"gpus = {fakes}")
    path.write_text(text.replace('return _torch_version_fields().get("cuda") is not None', "return True"))
    programs = ["time_step", "measure_ceilings", "profile_step", "snapshot_memory", "time_attention"]
    for program in [*programs, "probe_precision", "time_warmup", "time_ladder"]:
        (scripts / f"{program}.py").write_text(STUB.format(seconds=seconds))


def compared(alone: Path, other: Path) -> str:
    """How the medians of all series moved, in words."""
    before, ratios, outside = dict(series(alone)), [], 0
    for key, (median, low, high) in series(other):
        if key in before:
            ratios.append(median / before[key][0])
            outside += not before[key][1] <= median <= before[key][2] and not low <= before[key][0] <= high
    if not ratios:
        return "no series to compare"
    return f"median ratio {statistics.median(ratios):.4f}; {outside} of {len(ratios)} series outside both intervals"


def series(results: Path) -> Iterator[tuple[tuple, tuple[float, float, float]]]:
    """(cell and series, (median, ends of its interval) in seconds) of all that was timed."""
    for path in sorted(results.glob("*/*/**/record.json")):
        for entry in json.loads(path.read_text())["summary"].get("phases", []):
            if "median" in entry:
                key = tuple(str(value) for name, value in sorted(entry.items()) if isinstance(value, str))
                values = entry["median"], entry["ci_low"], entry["ci_high"]
                yield (str(path.relative_to(results).parent), *key), values


if __name__ == "__main__":
    main()
