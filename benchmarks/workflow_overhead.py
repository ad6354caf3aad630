"""Time of Snakemake's own work here against a bare Snakefile with as many jobs: `-n`, and a run with nothing to do.

python benchmarks/workflow_overhead.py [CELLS ...]

Both are run in turns in a temporary folder; prints the fastest time of each, and the median of the turns' ratios, which
should be at most 1.3. Nothing is measured: the results are empty files that `snakemake --touch` records as up to date.
"""

import argparse
import math
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BARE = """\
CELLS = [f"results/{{i}}/" for i in range({count})]
rule report:
    input: "results/report.html"
rule write_report:
    input: [cell + "record.json" for cell in CELLS]
    output: "results/report.html"
    shell: "touch {{output}}"
rule cell:
    output: "results/{{i}}/record.json", "results/{{i}}/samples.csv"
    params: cell=lambda wildcards: "number " + wildcards.i
    shell: "touch {{output}}"
"""


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("cells", type=int, nargs="*", default=[400, 4000], help="sizes of the grid (400 and 4000)")
    flags.add_argument("--turns", type=int, default=5, help="runs of each (5)")
    given = flags.parse_args()
    for count in given.cells:
        with tempfile.TemporaryDirectory() as scratch:
            folders = {"StepScope": stepscope(Path(scratch), count), "bare": bare(Path(scratch), count)}
            for folder in folders.values():
                snakemake(folder, "--touch", "--forceall", "--cores", "1", "report")
            for name, words in (("nothing to do, -n", ["-n"]), ("nothing to do, a run", ["--cores", "1"])):
                show(name, count, times(folders, words, given.turns))
            for folder in folders.values():
                shutil.rmtree(folder / "results")
                shutil.rmtree(folder / ".snakemake")
            show("everything to do, -n", count, times(folders, ["-n"], given.turns))


def stepscope(scratch: Path, count: int) -> Path:
    """A copy of the project whose grid has `count` timing cells, all of them there as empty files or folders."""
    folder = scratch / "stepscope"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "results", "tests", "benchmarks"))
    contexts = math.ceil(count / 8)
    grid = f"[{{size: [nano, tiny], context: {list(range(1, contexts + 1))}, precision: [fp32, tf32, bf16, fp16]}}]"
    (folder / "more.yaml").write_text(f"device: cpu\ntiming: {{grid: {{cpu: {grid}}}}}\n")
    return folder


def bare(scratch: Path, count: int) -> Path:
    """A folder with a Snakefile of one rule, and the profile of the project."""
    folder = scratch / "bare"
    (folder / "profiles").mkdir(parents=True)
    shutil.copytree(ROOT / "profiles/default", folder / "profiles/default")
    (folder / "Snakefile").write_text(BARE.format(count=count))
    return folder


def times(folders: dict[str, Path], words: list[str], turns: int) -> dict[str, list[float]]:
    """Seconds of some runs in each folder, taken in turns."""
    found: dict[str, list[float]] = {name: [] for name in folders}
    for _ in range(turns):
        for name, folder in folders.items():
            start = time.perf_counter()
            snakemake(folder, *words, "report")
            found[name].append(time.perf_counter() - start)
    return found


def snakemake(folder: Path, *words: str) -> None:
    """Run Snakemake, quietly."""
    more = ["--configfile", "more.yaml"] if (folder / "more.yaml").exists() else []
    if "--touch" in words:
        outputs = subprocess.run(
            [sys.executable, "-m", "snakemake", "--summary", "report", *more],
            cwd=folder, check=True, capture_output=True, text=True,
        )  # fmt: skip
        for line in outputs.stdout.splitlines()[1:]:
            path = folder / line.split("\t")[0]
            if path.suffix:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            else:  # an output that is a folder
                path.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-m", "snakemake", "--quiet", "all", *words, *more],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def show(what: str, count: int, seconds: dict[str, list[float]]) -> None:
    """One line with the fastest times, and the median of the turns' ratios."""
    ratio = statistics.median(ours / bare for ours, bare in zip(*seconds.values(), strict=True))
    fastest = ", ".join(f"{name} {min(values):.2f} s" for name, values in seconds.items())
    print(f"{count:>5} cells, {what}: {fastest}, ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
