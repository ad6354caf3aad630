"""The same grid on 1, 2, 4 … GPUs of one machine: how much faster, and whether cells disturb each other.

python benchmarks/several_gpus.py [--gpus 4 2] [--preset smoke] [--rules RULE …] [--folder FOLDER] [--fake SECONDS]

Each run measures the whole grid in a folder of its own, N cells at a time, with caches of compiled kernels of its own;
all GPUs are visible to each, figures and report are left out. The grid runs twice on one GPU, first and last: the
second run says how far medians move by themselves. Printed for each run: wall time, and how many times faster than the
quicker one of the two on one GPU (at least 3.5 on 4). Then, against each of the two, the median over the series of
(median time among others / alone), which should be within 1 % of 1, and how many series are called faster or slower,
as the report calls them: by their processes, beyond 2 %; the same for the series that are the same in both runs alone,
as those whose time is the GPU's, not that of the host's launches.

--folder keeps the runs there; one that is there already is not run again, so that a call that was cut off can go on.

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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from stepscope.report.kit.compare import Floors, Timed, judged, timed  # noqa: E402
from stepscope.tables.columns import machine_columns, processes_of, statistics_columns, with_intervals  # noqa: E402

SNAKEMAKE = Path(sys.executable).with_name("snakemake")
PARTS = ("Snakefile", "config.yaml", "rules", "scripts", "envs", "profiles", "report")
RULES = (  # each named as its program
    *("time_step", "measure_ceilings", "profile_step", "snapshot_memory", "time_attention"),
    *("probe_precision", "time_warmup", "time_ladder"),
)
STUB = """
import pathlib, sys, time
from stepscope.machine import gpus, locks

out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
(gpu,) = gpus.visible_gpus()
with locks.hold(gpu.uuid):
    time.sleep({seconds})
out.mkdir(parents=True, exist_ok=True)
(out / "samples.csv").write_text("")
for part in ("trace", "snapshot"):
    (out / part).mkdir(exist_ok=True)
(out / "record.json").write_text('{{"summary": {{"phases": []}}, "gpu": "%s"}}' % gpu.uuid)
"""


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--gpus", type=int, nargs="+", default=[4, 2], help="how many at a time, besides one (4 2)")
    flags.add_argument("--preset", default="smoke", help="a preset's grid (smoke)")
    flags.add_argument("--rules", nargs="+", default=RULES, metavar="RULE", help="only cells of these rules (all)")
    flags.add_argument("--folder", type=Path, help="keep the runs here, and go on with those that are here already")
    flags.add_argument("--fake", type=float, metavar="SECONDS", help="faked GPUs, and cells that wait so long")
    given = flags.parse_args()
    if not SNAKEMAKE.exists():  # as where it is no part of this interpreter's environment
        globals()["SNAKEMAKE"] = Path(shutil.which("snakemake") or sys.exit("snakemake is not installed here"))
    with tempfile.TemporaryDirectory() as temporary:
        base = (given.folder or Path(temporary)).resolve()
        counts = {"alone": 1, **{str(count): count for count in given.gpus if count > 1}, "again": 1}
        seconds = {}
        for name, count in counts.items():
            seconds[name] = measured(base / name, count, max(counts.values()), given)
            print(f"{name:>5}: {count} GPU(s), {seconds[name]:.1f} s", flush=True)
        one = min(seconds["alone"], seconds["again"])
        found = {name: series(base / name / "results") for name in counts}
        alike = steady(found["alone"], found["again"])
        for name in list(counts)[1:]:
            print(f"{name:>5}: {one / seconds[name]:.2f} times as fast as one GPU")
            for reference in [other for other in ("alone", "again") if other != name]:
                print(f"       all series against {reference}: {compared(found[reference], found[name])}")
            print(f"       those that agree alone within 1 %: {compared(alike, found[name])}")


def measured(folder: Path, count: int, visible: int, given: argparse.Namespace) -> float:
    """Wall seconds of the run in a folder: measured now, or read where it has been before."""
    done = folder / "run.json"
    asked = {"preset": given.preset, "rules": list(given.rules), "fake": given.fake, "visible": visible, "count": count}
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        done.write_text(json.dumps({"asked": asked, "seconds": measure(folder, count, visible, given)}))
    found = json.loads(done.read_text())
    if found["asked"] != asked:
        sys.exit(f"{folder} holds a run with other options: {found['asked']}; give them again, or another --folder")
    return found["seconds"]


def measure(folder: Path, count: int, visible: int, given: argparse.Namespace) -> float:
    """Wall seconds of the grid, `count` cells at a time on as many of the `visible` GPUs."""
    folder.mkdir(parents=True)
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, folder / part, **({"ignore": leave} if (ROOT / part).is_dir() else {}))
    if given.fake is not None:
        use_fakes(folder / "scripts", visible, given.fake)
    environment = {
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, range(visible))),
        "STEPSCOPE_LOCKS": str(folder / "locks"),
        "TRITON_CACHE_DIR": str(folder / "kernels/triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "kernels/inductor"),
    }
    command = [SNAKEMAKE, "report", "--cores", count, "--resources", f"gpu={count}", "--scheduler", "greedy"]
    command += ["--config", f"preset={given.preset}", "device=cuda", "--until", *given.rules]
    start = time.perf_counter()
    ended = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if ended.returncode:
        sys.exit(ended.stdout[-3000:])
    return time.perf_counter() - start


def leave(_folder: str, names: list[str]) -> set[str]:
    """What is not copied: byte code, and the committed report."""
    return {"__pycache__", "example"} & set(names)


def use_fakes(scripts: Path, count: int, seconds: float) -> None:
    """Let a copy of the project see faked GPUs, and wait instead of measuring."""
    fakes = f'[Gpu("Fake", f"GPU-{{i}}", 80, "1.0") for i in range({count})]'
    replaced = {
        "gpus.py": ("gpus = _gpus_from_nvml() or _gpus_from_proc()", f"gpus = {fakes}"),
        "identity.py": ('return _torch_version_fields().get("cuda") is not None', "return True"),
    }
    for name, (old, new) in replaced.items():
        path = scripts / "stepscope/machine" / name
        path.write_text(path.read_text().replace(old, new))
    for program in RULES:
        (scripts / f"{program}.py").write_text(STUB.format(seconds=seconds))


Series = dict[tuple, Timed]


def compared(alone: Series, other: Series) -> str:
    """How the first's series moved, in words."""
    keys = [key for key in alone if key in other]
    if not keys:
        return "none"
    ratios = sorted(other[key].median / alone[key].median for key in keys)
    ends = [ratios[round(share * (len(ratios) - 1))] for share in (0.05, 0.95)]
    found = [each for each in judged([(other[key], alone[key]) for key in keys], Floors()) if each.has_interval]
    return (
        f"median ratio {statistics.median(ratios):.4f} (nine tenths {ends[0]:.3f} to {ends[1]:.3f}); "
        f"{sum(each.is_different for each in found)} of {len(found)} with an interval called faster or slower"
    )


def steady(alone: Series, again: Series) -> Series:
    """Those of the first's series that the second run took within 1 % again."""
    return {key: one for key, one in alone.items() if key in again and abs(again[key].median / one.median - 1) <= 0.01}


def series(results: Path) -> Series:
    """(cell, which of its series) → its time, with the spread of its study's series, of all that was timed."""
    rows: dict[str, dict[tuple, dict]] = {}
    for path in sorted(results.glob("*/*/**/record.json")):
        record, cell = json.loads(path.read_text()), path.relative_to(results).parent
        summary = record["summary"]
        for entry in [*summary.get("phases", []), *summary.get("series", []), summary]:
            if processes_of(entry):
                key = (cell, *(entry.get(name) for name in ("mode", "kind", "step", "phase", "direction", "length")))
                row = {"hardware": cell.parts[0], "noise_mark": None} | machine_columns(record)
                rows.setdefault(cell.parts[1], {})[key] = row | statistics_columns("", entry)
    for study, own in rows.items():
        with_intervals(list(own.values()), [""], is_queued=study == "attention")
    return {key: timed(row) for own in rows.values() for key, row in own.items()}


if __name__ == "__main__":
    main()
