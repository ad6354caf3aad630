"""Which of two commits, or of two interpreters, is faster, and by how much: their processes take
turns on one device.

    python scripts/ab.py main worktree --cells timing/small/ctx128
    python scripts/ab.py v1 v2 --rounds 12 \\
        --command "time_step.py --size small --context 128 --precision bf16"
    python scripts/ab.py worktree worktree --b-python other/bin/python --cells ladder/small

In each round one fresh process of either side measures each cell, in the order A B, then B A, while
this program holds the GPU (or the CPU) for itself. Both sides see the same host, clocks and heat,
and what a round's two processes share cancels in their ratio. `worktree` are the files as they are;
the same on both sides is a control, which should give `same`. Writes ab.csv, ab.md, and each
process's record, samples and log.
"""

from stepscope.machine.process import STARTER, die_with_parent, die_with_starter

die_with_starter()

import argparse
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from stepscope.config.studies import STUDIES
from stepscope.files import write_whole
from stepscope.machine import gpus, locks
from stepscope.results import series, statistics, verdicts

PROJECT = Path(__file__).resolve().parents[1]
WORKTREE = "worktree"
PROGRAMS = tuple(study.file for study in STUDIES if study.samples_are_series)
# Columns of samples that tell series apart.
SERIES = ["variant", "mode", "kind", "phase", "length", "direction"]
COLUMNS = [
    "cell",
    *SERIES,
    "a_s",
    "b_s",
    "ratio",
    "low",
    "high",
    "p",
    "verdict",
    "rounds",
    "limits",
]
LEAST_ROUNDS = 4


class Side(NamedTuple):
    """What is compared: a project's folder, and the interpreter that its programs run by."""

    project: Path
    python: str


def main() -> None:
    die_with_parent()
    given = parse()
    commands = {command: shlex.split(command) for command in given.command} | measured(given.cells)
    for name, words in commands.items():
        program = words[0] if words else ""
        if Path(program).name not in PROGRAMS:
            sys.exit(
                f"error: {name}: {program} measures no time; the programs that do are"
                f" {', '.join(PROGRAMS)}"
            )
    shutil.rmtree(given.out / "processes", ignore_errors=True)  # of a run before
    given.out.mkdir(parents=True, exist_ok=True)
    with checked_out(given.a, given.out) as a, checked_out(given.b, given.out) as b:
        sides = {"a": Side(a, given.a_python), "b": Side(b, given.b_python)}
        times = take_turns(sides, commands, given.rounds, given.out)
    found = compared(times)
    page = markdown(found, given)
    print(page)
    write_whole({given.out / "ab.csv": [found.to_csv(index=False)], given.out / "ab.md": [page]})


def parse() -> argparse.Namespace:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("a", metavar="A", help=f"a commit, or {WORKTREE}")
    flags.add_argument("b", metavar="B", help="what is compared with it")
    flags.add_argument(
        "--cells", nargs="+", default=[], metavar="WORD", help="parts of paths of cells in results/"
    )
    flags.add_argument(
        "--command", action="append", default=[], help="of a measuring program; may be given often"
    )
    flags.add_argument(
        "--rounds",
        type=int,
        default=8,
        metavar="N",
        help="processes of each side; even (default: 8)",
    )
    for side in "ab":
        flags.add_argument(
            f"--{side}-python",
            default=sys.executable,
            metavar="PATH",
            help=f"that measures {side.upper()} (default: this one)",
        )
    flags.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of what is found (default: results/ab/A-B)"
    )
    given = flags.parse_args()
    if given.rounds < LEAST_ROUNDS or given.rounds % 2:
        flags.error(
            f"--rounds {given.rounds}: use an even number from {LEAST_ROUNDS}, so that each goes"
            " first as often"
        )
    if not given.cells and not given.command:
        flags.error("give --cells, or --command")
    given.a_python, given.b_python = map(found_python, (given.a_python, given.b_python))
    given.out = given.out or Path("results/ab", f"{given.a}-{given.b}".replace("/", "_"))
    return given


def found_python(name: str) -> str:
    """An interpreter's path, which holds in any folder; of a name the one on the PATH."""
    return os.path.abspath(shutil.which(name) or name)


def measured(parts: list[str], results: Path = Path("results")) -> dict[str, list[str]]:
    """Cell: the words of its command, by the records of the cells in whose path one of the parts
    stands."""
    found: dict[str, list[str]] = {}
    for part in parts:
        within = part.strip("/")
        records = [one for one in results.rglob("record.json") if within in str(one.parent)]
        if not records:
            sys.exit(
                f"error: no measured cell has {part!r} in its path below {results}; give another,"
                " or --command"
            )
        for path in records:
            command = shlex.split(json.loads(path.read_bytes())["provenance"]["command"])
            if Path(command[1]).name in PROGRAMS:
                found[str(path.parent.relative_to(results))] = command[1:]
    if parts and not found:
        sys.exit(
            f"error: of {' '.join(parts)} no cell is of {', '.join(PROGRAMS)}; the others measure"
            " no time"
        )
    return dict(sorted(found.items()))


@contextlib.contextmanager
def checked_out(commit: str, out: Path) -> Iterator[Path]:
    """A folder with the files of a commit, which git removes afterwards; for WORKTREE the project's
    own."""
    if commit == WORKTREE:
        yield PROJECT
        return
    number = len(list(out.glob(".checkouts/*")))  # both sides may be the same commit
    folder = (out / ".checkouts" / f"{commit.replace('/', '_')}-{number}").resolve()
    git = ["git", "-C", str(PROJECT), "worktree"]
    subprocess.run([*git, "prune"], check=False)  # of a run that was killed
    made = subprocess.run(
        [*git, "add", "--quiet", "--detach", "--force", folder, commit],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        sys.exit(
            f"error: {commit!r} cannot be checked out ({made.stderr.strip().splitlines()[-1]});"
            " name a commit"
        )
    try:
        yield folder
    finally:
        subprocess.run([*git, "remove", "--force", folder], check=False)


def take_turns(
    sides: dict[str, Side], commands: dict[str, list[str]], rounds: int, out: Path
) -> pd.DataFrame:
    """What each process took: cell, SERIES, round, side, seconds (median of the measured steps) and
    limits.

    commands: cell -> words.
    """
    on_cpu = not gpus.visible_gpus() or any("cpu" in words for words in commands.values())
    device = "cpu" if on_cpu else gpus.visible_gpus()[0].uuid
    tables = []
    with locks.hold(device):
        for number in range(1, rounds + 1):
            for place, (cell, words) in enumerate(commands.items()):
                order = list(sides) if number % 2 else list(reversed(sides))
                for side in order:
                    print(f"round {number} of {rounds}: {side}, {cell}", flush=True)
                    folder = out.resolve() / "processes" / f"{number:03}" / side / f"{place:03}"
                    one_process(sides[side], words, folder, device)
                    tables.append(medians(folder).assign(cell=cell, round=number, side=side))
    return pd.concat(tables, ignore_index=True)


def one_process(side: Side, words: list[str], folder: Path, device: str) -> None:
    """Run a measuring program of a side for a single process; its failure ends the program."""
    program = side.project / "scripts" / Path(words[0]).name
    folder.mkdir(parents=True)
    environment = dict(os.environ)
    for name in ("PYTHONPATH", "PYTHONHOME"):  # another interpreter has its own
        environment.pop(name, None)
    environment |= {locks.HELD: device, STARTER: str(os.getpid())}
    # Where a flag is there twice the last one counts.
    command = [side.python, str(program), *words[1:], "--processes", "1", "--out", str(folder)]
    said = folder / "measure.log"
    try:
        with said.open("wb") as log:
            done = subprocess.run(
                command, cwd=side.project, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
    except OSError as error:
        sys.exit(f"error: {side.python} does not run ({error.strerror}); give the path of a Python")
    if done.returncode or not (folder / "record.json").is_file():
        last = said.read_text(errors="replace").strip().rpartition("\n")[2] or "it said nothing"
        sys.exit(f"error: {shlex.join(command)} failed: {last[:200]}")


def medians(folder: Path) -> pd.DataFrame:
    """SERIES, seconds and limits of a process: the median of the measured steps, and what limits
    the variant."""
    samples = pd.read_csv(folder / "samples.csv", dtype={"warmup": str})
    samples = samples[samples["warmup"] != "True"].reindex(columns=[*SERIES, "seconds"])
    found = (
        samples.fillna(dict.fromkeys(SERIES, ""))
        .groupby(SERIES, sort=False)["seconds"]
        .median()
        .reset_index()
    )
    spec = json.loads((folder / "record.json").read_bytes())["spec"]
    return found.assign(limits=series.limits_of_steps(found, spec))


def compared(times: pd.DataFrame) -> pd.DataFrame:
    """A row a series that both sides have, with COLUMNS: ratio of the times of A and B, its
    interval and the verdict.

    A round is a pair of processes, whose ratio is one value; the spread is that between rounds.
    """
    key = ["cell", *SERIES]
    limits = times.groupby(key, sort=False)["limits"].agg(
        lambda own: own.iloc[0] if own.nunique() == 1 else "unknown"
    )
    both = times.pivot(index=[*key, "round"], columns="side", values="seconds").dropna()
    logs = pd.DataFrame({"ratio": np.log(both["a"] / both["b"])}).join(limits, on=key)
    by_limits = logs.set_index("limits", append=True)["ratio"]
    between = statistics.between_processes(by_limits, [*key, "limits"], ["limits"])
    margins = np.where(
        between.index.get_level_values("limits") == "gpu", verdicts.MARGIN_OF_GPU, verdicts.MARGIN
    )
    found = verdicts.judged(between, margins, np.zeros(len(between))).join(
        between["processes"].rename("rounds")
    )
    found = found.reset_index("limits").join(both.groupby(key).median().add_suffix("_s"))
    return found.loc[limits.index.intersection(found.index)].reset_index()[COLUMNS]


def markdown(found: pd.DataFrame, given: argparse.Namespace) -> str:
    """A page: what was compared, and a table with a row a series."""
    head = ["cell", "series", "A (ms)", "B (ms)", "A / B", "95 % interval", "B is"]
    lines = [head, ["---", "---", "---:", "---:", "---:", "---:", "---"]]
    for row in found.to_dict("records"):
        lines.append(
            [
                row["cell"],
                " ".join(str(row[name]) for name in SERIES if row[name] != ""),
                f"{1e3 * row['a_s']:.3f}",
                f"{1e3 * row['b_s']:.3f}",
                f"{row['ratio']:.4f}",
                f"{row['low']:.4f} to {row['high']:.4f}",
                row["verdict"],
            ]
        )
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    sides = f"A: {given.a} by {given.a_python}; B: {given.b} by {given.b_python}"
    return f"# Two versions in turns\n\n{sides}. Rounds: {given.rounds}.\n\n{table}\n"


if __name__ == "__main__":
    main()
