"""Kills runs of a tiny grid at random moments, again and again, and counts finished cells that are
measured again.

python benchmarks/random_kills.py [--kills 100] [--seed 0] [--folder DIR]

Each run is killed by SIGKILL or SIGTERM of all its processes, or by SIGKILL of Snakemake or of the
cell alone; half of the kills come within moments of a record's appearance, when a cell is finished
and Snakemake may not have noted it. A cell counts as finished if its record was there at the kill.
Once the grid is measured its results are removed and it starts anew. Prints a line a kill, and at
the end the kills and the finished cells that were measured again, which should be none. Runs on the
CPU, for some ten seconds a kill.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULES = (
    "time_step",
    "analyze_profile",
    "analyze_memory",
    "measure_ceilings",
)  # with and without raw output
POINT = {"size": ["mite"], "context": [8], "precision": ["fp32"]}
GRID = {
    "device": "cpu",
    "threads": 1,
    "model": {"vocab_size": 16, "batch": 1},
    "sizes": {"mite": {"d_model": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2}},
    "timing": {"processes": {"cpu": 1}, "grid": {"cpu": [POINT | {"context": [8, 16]}]}},
    "profile": {"warmup": {"cpu": 1}, "steps": {"cpu": 1}, "grid": {"cpu": [POINT]}},
    "memory": {"grid": {"cpu": [POINT]}},
    "ceilings": {
        "processes": {"cpu": 1},
        "cpu": {"precision": ["fp32"], "matmul_order": 32, "copy_mebibytes": 1},
    },
}
LOOK = 0.01  # seconds between two looks at what there is
LONGEST = 12.0  # seconds from a run's start to its kill, if no record decides the moment
AFTER_RECORD = 0.6  # seconds at most from a record's appearance to the kill


def main() -> None:
    flags = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    flags.add_argument("--kills", type=int, default=100, help="how many (100)")
    flags.add_argument("--seed", type=int, default=0, help="of the random moments and ways (0)")
    flags.add_argument(
        "--folder", type=Path, help="keep the project's copy there (a temporary folder)"
    )
    given = flags.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as scratch:
        project = copy_of_project((given.folder or Path(scratch)).resolve() / "project")
        finished, kills, again, rounds = {}, 0, 0, 0
        while kills < given.kills:
            before = finished
            said, finished, was_killed = killed_run(project, chance)
            lost = measured_again(before, finished)
            kills, again, rounds = kills + was_killed, again + len(lost), rounds + (not was_killed)
            print(
                f"{kills:>4}  {said:<34} finished {len(finished)}; measured again:"
                f" {', '.join(lost) or '-'}",
                flush=True,
            )
            if not was_killed:
                finished = {}
                for folder in ("results", ".snakemake"):
                    shutil.rmtree(project / folder, ignore_errors=True)
        lost = measured_again(finished, finished_after_a_whole_run(project))
        again += len(lost)
        print(f"{kills} kills, {rounds} grids to their end, {again} finished cells measured again")


def copy_of_project(folder: Path) -> Path:
    """The project with the tiny grid, in a folder of its own, so that edits of this one change
    nothing."""
    shutil.copytree(
        ROOT, folder, ignore=shutil.ignore_patterns(".*", "results", "tests", "docs", "example")
    )
    (folder / "tiny.yaml").write_text(json.dumps(GRID))
    return folder


def start(project: Path) -> subprocess.Popen:
    """Snakemake, measuring the cells of four studies, with its processes in a group of their
    own."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--configfile", "tiny.yaml"]
    command += ["--until", *RULES]
    environment = os.environ | {
        "STEPSCOPE_LOCKS": str(project / "locks"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    with open(project / "run.log", "ab") as log:
        return subprocess.Popen(
            command,
            cwd=project,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def killed_run(project: Path, chance: random.Random) -> tuple[str, dict[str, str], bool]:
    """(what was done, the cells that are finished, whether the run was killed, and did not end
    before)."""
    run = start(project)
    began, seen = time.monotonic(), set(finished_cells(project))
    waits_for_record = chance.random() < 0.5
    moment, delay = began + chance.uniform(0, LONGEST), chance.uniform(0, AFTER_RECORD)
    while run.poll() is None and (waits_for_record or time.monotonic() < moment):
        if waits_for_record and set(finished_cells(project)) - seen:
            waits_for_record, moment = False, time.monotonic() + delay
        time.sleep(LOOK)
    way = chance.choice(
        ["SIGKILL of all", "SIGTERM of all", "SIGKILL of Snakemake", "SIGKILL of the cell"]
    )
    finished = finished_cells(project)
    if run.poll() is not None:
        check_ended_well(project, run)
        return "came to its end", finished, False
    kill(run, way)
    said = f"{way} after {time.monotonic() - began:.1f} s"
    finish(run)
    return said, finished_cells(project) | finished, True


def kill(run: subprocess.Popen, way: str) -> None:
    """Kill the run, or a part of it."""
    children = processes_of(run.pid)
    if way == "SIGKILL of the cell":
        targets = [process for process in children if process != run.pid]
    elif way == "SIGKILL of Snakemake":
        targets = [run.pid]
    else:
        targets = children
    for process in targets:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM if way.startswith("SIGTERM") else signal.SIGKILL)


def finish(run: subprocess.Popen) -> None:
    """Wait a moment for the run's own end, then end all that is left of it; returns when nothing
    is."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        run.wait(timeout=1)
    while left := [
        process for process in processes_of(run.pid) if process != run.pid or run.poll() is None
    ]:
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        run.poll()
        time.sleep(LOOK)


def processes_of(session: int) -> list[int]:
    """The processes of a session that run, without those that have ended and wait for their
    parent."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _parent, _group, of = (
                (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            )
        except OSError:
            continue
        if int(of) == session and state not in "ZX":
            found.append(int(folder.name))
    return found


def finished_cells(project: Path) -> dict[str, str]:
    """Cell → when its measurement started, for those that have a record."""
    found = {}
    for path in project.glob("results/[!.]*/*/**/record.json"):
        with contextlib.suppress(FileNotFoundError):
            found[str(path.parent.relative_to(project))] = json.loads(path.read_text())[
                "provenance"
            ]["started"]
    return found


def measured_again(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Cells that were finished before and are not as they were."""
    return [cell for cell, started in before.items() if after.get(cell) != started]


def finished_after_a_whole_run(project: Path) -> dict[str, str]:
    """The cells, once a run was let come to its end."""
    run = start(project)
    run.wait()
    check_ended_well(project, run)
    return finished_cells(project)


def check_ended_well(project: Path, run: subprocess.Popen) -> None:
    """End the program if a run failed that nobody had killed."""
    if run.returncode:
        sys.exit(f"a run failed by itself:\n{(project / 'run.log').read_text()[-2000:]}")


if __name__ == "__main__":
    main()
