"""Does a second run say the same? A grid measured twice; equal variants beside each other; and a
planted slowdown.

python benchmarks/second_run.py --folder DIR [--busy 2] [SNAKEMAKE'S FLAGS]
python benchmarks/second_run.py --compare A/results/tables B/results/tables

With --folder the workflow measures its grid twice, into DIR/run1 and DIR/run2, up to the tables
(other flags are Snakemake's); then, on a CPU, ten ladders whose variants are all the same step but
for the last, which takes 5 % longer (planted_ladder.py). Called again it goes on where it was cut.
--busy lets processes beside it compute that come and go.

Printed is what may be asked of a way to measure: how narrow the intervals of ratios are, how many
intervals of the two runs overlap, whether a verdict turns, how far apart is what the host cannot
change; how many of the equal pairs are called different, and how many of the planted are found.
"""

import argparse
import contextlib
import json
import math
import multiprocessing
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from stepscope.results.tables import Tables  # noqa: E402
from stepscope.yaml_files import read_yaml  # noqa: E402

NARROW = 1.04  # half an interval, as a ratio
STUDIES = ("ladder", "attention")  # that have ratios
PLACE = [
    "study",
    "size",
    "context",
    "batch",
    "precision",
    "options",
    "mode",
    "phase",
    "length",
    "direction",
    "quantity",
]
CONTEXTS = (
    16,
    24,
    32,
    40,
    48,
    64,
    80,
    96,
    112,
    128,
)  # of the ladders of equal variants, one cell each
EQUAL, SLOW, SHARE = 7, "slow", 0.05
CALLED = ("faster", "slower")
MOST_PAUSE = 20  # s


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = flags.add_mutually_exclusive_group(required=True)
    what.add_argument("--folder", type=Path, metavar="DIR", help="measure there")
    what.add_argument(
        "--compare",
        type=Path,
        nargs=2,
        metavar="TABLES",
        help="the tables of two runs that are there",
    )
    flags.add_argument(
        "--busy",
        type=int,
        default=0,
        metavar="N",
        help="processes that compute beside it, on and off",
    )
    given, of_snakemake = flags.parse_known_args()
    if given.compare and (of_snakemake or given.busy):
        flags.error(f"--compare measures nothing; leave out {' '.join(of_snakemake) or '--busy'}")
    if given.compare:
        print(markdown(agreement(*map(Tables, given.compare))))
        return
    with busy(given.busy):
        runs = [
            Tables(measured(given.folder.resolve() / name, of_snakemake))
            for name in ("run1", "run2")
        ]
        print(markdown(agreement(*runs)), flush=True)
        equal = Tables(planted(given.folder.resolve() / "equal"))
        print(f"\n{markdown(controls(equal['comparisons']))}")


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that compute for a while and pause for a while, until the block ends."""
    others = [
        multiprocessing.Process(target=_come_and_go, args=(seed,), daemon=True)
        for seed in range(count)
    ]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.terminate()


def _come_and_go(seed: int) -> None:
    chance = random.Random(seed)
    while True:
        end = time.monotonic() + chance.uniform(1, MOST_PAUSE)
        while time.monotonic() < end:
            sum(range(10_000))
        time.sleep(chance.uniform(1, MOST_PAUSE))


def measured(folder: Path, given: list[str]) -> Path:
    """The tables of a run in this folder, measured as far as they are not there; given: flags for
    Snakemake."""
    folder.mkdir(parents=True, exist_ok=True)
    cores = (
        ()
        if any(word.split("=")[0] in ("--cores", "-c", "--jobs", "-j") for word in given)
        else ("--cores", "1")
    )
    _run(
        "-m",
        "snakemake",
        "aggregate",
        "--snakefile",
        ROOT / "Snakefile",
        "--directory",
        folder,
        *cores,
        *given,
    )
    return folder / "results/tables"


def planted(folder: Path) -> Path:
    """The tables of the ladders of equal variants, measured as far as they are not there."""
    names = [f"equal{number}" for number in range(EQUAL)]
    variants = [
        {"name": names[0]},
        *({"name": b, "after": a} for a, b in zip(names, [*names[1:], SLOW], strict=True)),
    ]
    own, cells = read_yaml(ROOT / "config.yaml")["ladder"], []
    steps = own["steps"]["cpu"]
    budget = [
        "--processes",
        own["processes"]["cpu"],
        "--warmup",
        own["warmup"]["cpu"],
        "--steps",
        steps["min"],
    ]
    budget += ["--max-steps", steps["max"], "--max-seconds", steps["seconds"]]
    for context in CONTEXTS:
        name = f"here/ladder/nano/ctx{context}"
        place = folder / "results" / name
        if not (place / "record.json").is_file():
            words = [
                "--share",
                SHARE,
                "--",
                "--size",
                "nano",
                "--context",
                context,
                "--device",
                "cpu",
                *budget,
            ]
            _run(
                ROOT / "benchmarks/planted_ladder.py",
                *words,
                "--variants",
                json.dumps(variants),
                "--out",
                place,
            )
        record = json.loads((place / "record.json").read_bytes())
        command = record["provenance"]["command"]
        cells.append(
            {"cell": name, "spec": record["spec"], "code": record["code"], "command": command}
        )
    plan = folder / "plan.json"
    plan.write_text(json.dumps({"studies": {"ladder": {"cells": cells}}}))
    tables = folder / "results/tables"
    _run(
        ROOT / "scripts/aggregate.py",
        "--plan",
        plan,
        "--results",
        folder / "results",
        "--out",
        tables,
    )
    return tables


def _run(*words: object) -> None:
    command = [sys.executable, *map(str, words)]
    if subprocess.run(command, stdout=sys.stderr).returncode:
        sys.exit(f"error: {shlex.join(command)} failed; call this again to go on")


def agreement(first: Tables, second: Tables) -> list[tuple[str, str]]:
    """What is asked of two runs of one grid, and how it is: lines of a table."""
    lines = []
    for number, run in enumerate((first, second), 1):
        ratios = run.rows("comparisons", study=STUDIES, in_turns=True)
        lines.append(
            (f"run {number}: ratios in turns with intervals within ± 4 %", share(narrow(ratios)))
        )
    series = pd.merge(first["series"], second["series"], on=[*PLACE, "variant"])
    lines.append(("series whose intervals overlap", share(overlapping(series))))
    ratios = pd.merge(first["comparisons"], second["comparisons"], on=[*PLACE, "a", "b"])
    lines.append(("ratios whose intervals overlap", share(overlapping(ratios))))
    both = ratios[ratios["verdict_x"].isin(CALLED) & ratios["verdict_y"].isin(CALLED)]
    lines.append(("verdicts that turned", share(both["verdict_x"] != both["verdict_y"])))
    for quantity in ("busy_time", "host_free_time"):
        apart = distance(series[series["quantity"] == quantity])
        lines.append(
            (
                f"{quantity}: largest difference",
                "none measured" if apart.empty else f"{apart.max():.2%}",
            )
        )
    launches = series[series["quantity"] == "launches"]
    lines.append(("launches that differ", share(launches["median_x"] != launches["median_y"])))
    return lines


def controls(comparisons: pd.DataFrame) -> list[tuple[str, str]]:
    """How many pairs of equal variants are called different, and how many of the planted ones are
    found."""
    step = comparisons[comparisons["phase"] == "step"]
    is_planted = step["b"] == SLOW
    planted = step[is_planted & (step["a"] == f"equal{EQUAL - 1}")]
    different = step[~is_planted]["verdict"].isin(CALLED)
    found = planted["verdict"] == "slower"
    return [
        ("equal pairs called different", share(different)),
        (f"planted {SHARE:.0%} slower found", share(found)),
    ]


def narrow(ratios: pd.DataFrame) -> pd.Series:
    """Whether half the interval is within NARROW; not where there is none."""
    return (ratios["high"] / ratios["low"]) ** 0.5 <= NARROW


def overlapping(both: pd.DataFrame) -> pd.Series:
    """Whether the intervals of the two runs overlap, of the rows that have both."""
    both = both.dropna(subset=["low_x", "high_x", "low_y", "high_y"])
    return (both["low_x"] <= both["high_y"]) & (both["low_y"] <= both["high_x"])


def distance(both: pd.DataFrame) -> pd.Series:
    """By how much the medians of the two runs differ, as a share."""
    return (
        (both["median_x"] / both["median_y"])
        .map(lambda ratio: math.expm1(abs(math.log(ratio))))
        .dropna()
    )


def share(holds: pd.Series) -> str:
    """`95 of 100 (95.0 %)`."""
    return f"{holds.sum()} of {len(holds)} ({holds.mean():.1%})" if len(holds) else "none"


def markdown(lines: list[tuple[str, str]]) -> str:
    return "\n".join(["| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in lines)])


if __name__ == "__main__":
    main()
