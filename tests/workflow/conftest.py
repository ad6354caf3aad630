"""Helpers for the tests of the workflow: copies of the project with a tiny grid, run by the real snakemake."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from stepscope.config.studies import DRAWN, STUDIES

ROOT = Path(__file__).resolve().parents[2]
SNAKEMAKE = Path(sys.executable).with_name("snakemake")
PARTS = ("Snakefile", "rules", "scripts", "envs", "profiles", "report")
TINY = {
    "device": "cpu",
    "threads": 1,
    "model": {"vocab_size": 16, "batch": 1, "seed": 0},
    "sizes": {
        "alpha": {"d_model": 32, "d_ff": 16, "num_layers": 1, "num_heads": 2},
        "beta": {"d_model": 16, "d_ff": 32, "num_layers": 1, "num_heads": 2},
    },
    "timing": {
        "processes": {"cpu": 1},
        "warmup": {"cpu": 1},
        "steps": {"cpu": {"min": 2, "max": 2, "seconds": 1}},
        "grid": {
            "cpu": [
                {"size": ["alpha", "beta"], "context": [8], "precision": ["fp32"]},
                {"size": ["beta"], "context": [16], "precision": ["fp32"], "attention": ["sdpa"]},
            ]
        },
    },
    "ceilings": {
        "processes": {"cpu": 1},
        "warmup": {"cpu": 1},
        "cpu": {
            "precision": ["fp32"],
            "matmul_order": 32,
            "copy_mebibytes": 1,
            "steps": {"min": 2, "max": 2, "seconds": 1},
        },
    },
    "profile": {
        "warmup": {"cpu": 1},
        "steps": {"cpu": 2},
        "grid": {"cpu": [{"size": ["alpha"], "context": [8], "precision": ["fp32"]}]},
    },
    "attention": {
        "processes": {"cpu": 1},
        "warmup": {"cpu": 1},
        "passes": {"cpu": 3},
        "grid": {
            "cpu": [
                {"implementation": ["naive"], "d_head": [8], "precision": ["fp32"], "batch": [1], "lengths": [4, 8]}
            ]
        },
    },
    "memory": {
        "warmup": {"cpu": 1},
        "steps": {"cpu": 1},
        "grid": {"cpu": [{"size": ["alpha"], "context": [8], "precision": ["fp32"]}]},
    },
    "precision": {"probes": ["accumulation"], "size": "alpha"},
    "warmup": {
        "warmup": {"cpu": [0]},
        "steps": 2,
        "profile_first": False,
        "grid": {"cpu": [{"size": ["alpha"], "context": [8], "precision": ["fp32"]}]},
    },
    "ladder": {
        "processes": {"cpu": 1},
        "warmup": {"cpu": 1},
        "steps": {"cpu": {"min": 2, "max": 2, "seconds": 1}},
        "places": {"cpu": [{"size": "alpha", "context": 8}]},
    },
}
# What a file is edited to do: say that it is there, then wait while the file `hold` exists.
PAUSE = """
import os as own_os, pathlib as own_pathlib, time as own_time
own_pathlib.Path("paused.part").write_text(str(own_os.getpid()))
own_pathlib.Path("paused.part").rename("paused")
while own_pathlib.Path("hold").exists():
    own_time.sleep(0.02)
"""
SECONDS_TO_RUN = 240
# Reads what to run, a line each, and says with which code it ended. Leaves when nobody asks any more.
SERVER = """
import json, os, signal, sys
import smart_open  # which snakemake imports late
from snakemake import cli

cli.get_argument_parser()  # imports the plugins
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        signal.alarm({seconds})
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        nothing, out = os.open(os.devnull, os.O_RDONLY), os.open(asked["out"], os.O_WRONLY | os.O_APPEND)
        for here, there in ((nothing, 0), (out, 1), (out, 2)):
            os.dup2(here, there)
        sys.argv = ["snakemake", *asked["words"]]
        cli.main()  # ends the process
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""
BANNER = re.compile(r"Using workflow specific profile|Config file .* is extended|\s*$")


@dataclass(frozen=True)
class Run:
    """A run that has ended: its exit code, and what it printed on both streams."""

    code: int
    text: str

    @property
    def complaint(self) -> str:
        """What it says is wrong, where that is all that it says: one line."""
        lines = [line for line in self.text.splitlines() if not BANNER.match(line)]
        assert self.code != 0, self.text
        assert len(lines) == 1, self.text
        return lines[0]


@dataclass(frozen=True)
class Plan:
    """What a dry run says would be done.

    Cells by name without the hardware, the rules of all other jobs, and how many traces and snapshots to analyse.
    """

    cells: set[str]
    others: set[str]
    analyses: int = 0


class Forked:
    """Runs snakemake in copies of one process, which has imported it once: that is most of a dry run's time."""

    def __init__(self):
        self._server = None

    def run(self, words: list[str], folder: Path, environment: dict[str, str]) -> Run:
        """What `snakemake WORDS` does, from a folder; for environments in which Python finds the same modules."""
        if self._server is None:
            command = [sys.executable, "-c", SERVER.format(seconds=SECONDS_TO_RUN)]
            self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with tempfile.NamedTemporaryFile(prefix="run-", suffix=".txt") as printed:
            asked = {"words": words, "folder": str(folder), "environment": environment, "out": printed.name}
            self._server.stdin.write(f"{json.dumps(asked)}\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            return Run(code, printed.read().decode())


FORKED = Forked()


class Project:
    """A copy of the project."""

    ALPHA, BETA = "timing/alpha/ctx8/fp32", "timing/beta/ctx8/fp32"
    SDPA = "timing/beta/ctx16/fp32/attention=sdpa"
    MATMUL, COPY = "ceilings/matmul/fp32", "ceilings/copy/fp32"
    PROFILE, MEMORY = "profile/alpha/ctx8/fp32", "memory/alpha/ctx8/fp32"
    WARMUP = "warmup/alpha/ctx8/fp32/warmup=0"
    TIMING, CEILINGS, PROFILES = frozenset({ALPHA, BETA, SDPA}), frozenset({MATMUL, COPY}), frozenset({PROFILE})
    MEMORIES, ATTENTIONS = frozenset({MEMORY}), frozenset({"attention/naive/d8/fp32/batch=1"})
    PROBES, LADDERS = frozenset({"precision/accumulation"}), frozenset({"ladder/alpha/ctx8/fp32"})
    WARMUPS = frozenset({WARMUP})
    RUN_THE_MODEL = TIMING | PROFILES | MEMORIES | WARMUPS | LADDERS
    FIGURES = frozenset(f"{section.name}_figures" for section in DRAWN)
    AGGREGATING = frozenset(f"aggregate_{study.name}" for study in STUDIES)
    REPORTING = frozenset({"plan_file", "write_report", "gather_models"}) | AGGREGATING | FIGURES
    UNTIL_TABLES = ("--until", *sorted(AGGREGATING))  # flags of a run that measures what is to be, and draws nothing
    MEASURING = tuple(study.program for study in STUDIES)
    IS_FORKED = True  # whether `run` may spare snakemake's imports

    def __init__(self, folder: Path, locks: Path):
        self.folder = folder
        self._environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "OUT")}
        self._environment |= {"STEPSCOPE_LOCKS": str(locks), "CUDA_VISIBLE_DEVICES": ""}
        self._started: list[subprocess.Popen] = []

    def start(self, *words, program=SNAKEMAKE, cwd=None, environment=None, **options) -> subprocess.Popen:
        """Start snakemake, or another program, in the project's folder."""
        process = subprocess.Popen(
            [str(program), *map(str, words)],
            cwd=cwd or self.folder,
            env=self._environment | {key: str(value) for key, value in (environment or {}).items()},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **options,
        )
        self._started.append(process)
        return process

    def run(self, *words, **options) -> Run:
        """Run snakemake, or another program, to its end."""
        if self.IS_FORKED and not options.keys() - {"cwd"}:
            return FORKED.run([*map(str, words)], options.get("cwd", self.folder), self._environment)
        process = self.start(*words, **options)
        text, _ = process.communicate(timeout=SECONDS_TO_RUN)
        return Run(process.returncode, text)

    def python(self, *words, **options) -> Run:
        """Run a program of the project, as a person does."""
        return self.run(*words, program=sys.executable, **options)

    def planned(self, *words, **options) -> Plan:
        """What `snakemake -n report` would do."""
        shown = self.run("-n", "-p", "report", *words, **options)
        assert shown.code == 0, shown.text
        cells = re.findall(r'--out "\$\(dirname results/[^/\s]+/(\S+)/record\.json\)"', shown.text)
        table = re.search(r"^Job stats:\n.*\n-.*\n((?:\w+ +\d+\n)*)total +\d+$", shown.text, re.MULTILINE)
        if table is None:
            assert "Nothing to be done" in shown.text, shown.text
            return Plan(set(), set())
        counts = {rule: int(count) for rule, count in (line.split() for line in table.group(1).splitlines())}
        measuring = [counts.pop(rule, 0) for rule in self.MEASURING]
        assert sum(measuring) == len(cells) == len(set(cells))
        analyses = counts.pop("analyze_profile", 0) + counts.pop("analyze_memory", 0)
        return Plan(set(cells), set(counts) - {"report"}, analyses)

    def result(self, cell: str) -> Path:
        """Folder of a cell's results."""
        return next(self.folder.glob("results/*/timing")).parent / cell

    def state_of_cells(self) -> dict[str, tuple]:
        """For each cell that has a record: which files they are, and when they were written."""
        base = next(self.folder.glob("results/*/timing")).parent
        files = {path.parent: [path, path.with_name("samples.csv")] for path in base.rglob("record.json")}
        return {
            str(folder.relative_to(base)): tuple((file.stat().st_ino, file.stat().st_mtime_ns) for file in both)
            for folder, both in files.items()
        }

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace what stands once in a file."""
        text = (self.folder / file).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        (self.folder / file).write_text(text.replace(old, new))

    def edit_json(self, file: Path, change) -> None:
        """Change a JSON file by hand."""
        content = json.loads(file.read_text())
        change(content)
        file.write_text(json.dumps(content))

    def configure(self, change=None, **keys) -> None:
        """Change config.yaml by keys of its top level, or by a function of the whole."""
        path = self.folder / "config.yaml"
        config = yaml.safe_load(path.read_text()) | keys
        if change:
            change(config)
        path.write_text(yaml.safe_dump(config, sort_keys=False))

    def pause_after(self, file: str, line: str, only_if: str = "") -> None:
        """Let the program wait in a file after a line, as long as the file `hold` exists, and a condition holds."""
        indent = re.match(" *", line).group() + (4 * " " if line.endswith(":") else "")
        pause = [f"if {only_if or True}:", *(f"    {part}" for part in PAUSE.strip().splitlines())]
        self.edit(file, f"{line}\n", f"{line}\n" + "".join(f"{indent}{part}\n" for part in pause))
        (self.folder / "hold").touch()

    def paused(self) -> int:
        """Wait until a program is in the pause; its process id."""
        self.wait_until((self.folder / "paused").exists, "the program is in the pause")
        return int((self.folder / "paused").read_text())

    def go_on(self) -> None:
        """End the pause."""
        (self.folder / "hold").unlink()

    def wait_until(self, holds, what: str) -> None:
        """Ask again and again, for a minute."""
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline, f"waited in vain until {what}"
            time.sleep(0.02)

    def end_all(self) -> None:
        """Kill what was started and still runs, and let what waits in a pause go on to its end."""
        (self.folder / "hold").unlink(missing_ok=True)
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()


def copy_of_code(folder: Path) -> None:
    """The project with the tiny grid, without any result."""
    folder.mkdir()
    leave = shutil.ignore_patterns("__pycache__", "example")
    for part in PARTS:
        source = ROOT / part
        (shutil.copytree if source.is_dir() else shutil.copy2)(
            source, folder / part, **({"ignore": leave} if source.is_dir() else {})
        )
    (folder / "config.yaml").write_text(yaml.safe_dump(TINY, sort_keys=False))


@pytest.fixture(scope="session")
def measured_once(tmp_path_factory) -> Path:
    """A project whose report was made by a real run, whose output is in run.txt; once for all of xdist's workers."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    done = base / "measured"
    with open(base / "measured.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            copy_of_code(base / "measuring")
            run = Project(base / "measuring", base / "locks").run("--cores", 1, "report")
            assert run.code == 0, run.text
            (base / "measuring/run.txt").write_text(run.text)
            (base / "measuring").rename(done)
    return done


@pytest.fixture
def bare_projects(tmp_path):
    """Makes projects without results, by name, on one machine: they share their locks."""
    made = []

    def make(name: str) -> Project:
        copy_of_code(tmp_path / name)
        made.append(Project(tmp_path / name, tmp_path / "locks"))
        return made[-1]

    yield make
    for project in made:
        project.end_all()


@pytest.fixture
def bare_project(bare_projects):
    """A project without results."""
    return bare_projects("project")


@pytest.fixture
def project(tmp_path, measured_once):
    """A project of a test's own, in which every cell has been measured and the report written."""
    shutil.copytree(measured_once, tmp_path / "project", symlinks=True)
    project = Project(tmp_path / "project", tmp_path / "locks")
    yield project
    project.end_all()
