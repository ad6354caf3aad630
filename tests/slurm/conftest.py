"""Small projects whose cells run as jobs of a real Slurm: a lab of two nodes, and the profile that users are given."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def load(name: str, path: Path):
    """A Python file as a module of a name of its own."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


labs = load("slurm_lab", HERE / "lab.py")
workflow = load("workflow_of_projects", HERE.parent / "workflow/conftest.py")

# The study of the step by the clock alone: a cell of any study is a job in the same way.
TIMING_ALONE = {"STUDIES": "(TIMING,)", "COMPARISONS": "()"}


class SlurmProject(workflow.Project):
    """A copy of the project on the shared file system of a lab; programs run on its login node."""

    IS_FORKED = False

    def __init__(self, folder: Path, lab):
        super().__init__(folder, lab.local)
        self.lab = lab

    def start(self, *words, program=workflow.SNAKEMAKE, **options) -> subprocess.Popen:
        """Start snakemake, or another program, on the login node."""
        first, *others = self.lab.command([program, *words], self.folder)
        return super().start(*others, program=first, **options)

    def submit(self, *words):
        """Run the workflow on the cluster, looking at the queue every second."""
        return self.run(*self.submitting(*words))

    def submitting(self, *words) -> list:
        """Flags of `submit`."""
        often = ["--slurm-init-seconds-before-status-checks", 1]
        return ["--workflow-profile", "profiles/slurm", *often, "report", *words]

    def shell(self, command: str) -> str:
        """What a command line prints on the login node."""
        run = self.run("-c", command, program="sh")
        assert run.code == 0, run.text
        return run.text

    def snakemake_of(self, process: subprocess.Popen) -> int:
        """Process of the snakemake that `start` started: the child of what entered the lab."""
        return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])

    def records(self) -> list[Path]:
        """The record of every cell that has one."""
        return sorted(self.folder.glob("results/*/timing/**/record.json"))


@pytest.fixture(scope="module")
def lab():
    """A Slurm for the tests of a module."""
    if reason := labs.cannot_run():
        pytest.skip(reason)
    with labs.Lab() as one:
        yield one


@pytest.fixture
def project_in(tmp_path):
    """Makes a project of timing cells in a lab: `hardware` as configured, the contexts, and other keys."""
    made = []

    def make(lab, hardware: dict, contexts: list[int], **keys) -> SlurmProject:
        folder = tmp_path / f"project{len(made)}"
        workflow.copy_of_code(folder)
        project = SlurmProject(folder, lab)
        made.append(project)
        for name, value in TIMING_ALONE.items():
            source = (folder / "scripts/stepscope/config/studies.py").read_text()
            (line,) = re.findall(rf"^{name} = .*$", source, re.MULTILINE)
            project.edit("scripts/stepscope/config/studies.py", line, f"{name} = {value}")
        grid = [{"size": ["alpha"], "context": contexts, "precision": ["fp32"]}]
        limits = [{"memory": 1.5, "cpus": 2}]
        project.configure(
            lambda config: config["timing"]["grid"].update(cpu=grid), hardware=hardware, **({"limits": limits} | keys)
        )
        return project

    yield make
    for project in made:
        project.end_all()
