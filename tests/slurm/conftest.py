"""Small projects whose cells run as jobs of a real Slurm: a lab of two nodes, and the profile that
users are given."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent


def load(name, path):
    """A Python file as a module of a name of its own."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


labs = load("slurm_lab", HERE / "lab.py")
workflow = load("workflow_of_projects", HERE.parent / "workflow/projects.py")

# What a file is edited to do: say that it is there, then wait while the file `hold` exists.
PAUSE = """
    import os as own_os, pathlib as own_pathlib, time as own_time
    own_pathlib.Path("paused").touch()
    while own_pathlib.Path("hold").exists():
        own_time.sleep(0.02)
"""


class SlurmProject(workflow.Project):
    """A copy of the project on the shared file system of a lab; programs run on its login node."""

    def __init__(self, folder, lab):
        super().__init__(folder, lab.local)
        self.lab = lab
        self._started: list[subprocess.Popen] = []

    def start(self, *words, program=sys.executable):
        """Start Python, or another program, on the login node."""
        command = [str(word) for word in self.lab.command([program, *words], self.folder)]
        out = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
        }
        self._started.append(
            subprocess.Popen(command, cwd=self.folder, env=self._environment, **out)
        )
        return self._started[-1]

    def run(self, *words, program=sys.executable, cwd=None):
        """Run it to its end."""
        process = self.start(*words, program=program)
        text, _ = process.communicate(timeout=workflow.SECONDS_TO_RUN)
        return workflow.Run(process.returncode, text)

    def submit(self, *words):
        """Measure on the cluster."""
        return self.run(*self.submitting(*words))

    def submitting(self, *words):
        """What `submit` starts."""
        return [
            HERE / "often.py",
            "--workflow-profile",
            "profiles/slurm",
            *words,
            "--until",
            "time_step",
        ]

    def shell(self, command):
        """What a command line prints on the login node."""
        run = self.run("-c", command, program="sh")
        assert run.code == 0, run.text
        return run.text

    def snakemake_of(self, process):
        """Process of the snakemake that `start` started: the child of what entered the lab."""
        return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])

    def records(self):
        """The record of every cell that has one."""
        return sorted(self.folder.glob("results/*/timing/**/record.json"))

    def configure(self, change):
        """Change config.yaml by a function of it."""
        path = self.folder / "config.yaml"
        config = yaml.safe_load(path.read_text())
        change(config)
        path.write_text(yaml.safe_dump(config, sort_keys=False))

    def pause_after(self, file, line):
        """Let a program wait in a file after a line, as long as the file `hold` exists."""
        self.edit(file, line, line + PAUSE)
        (self.folder / "hold").touch()

    def wait_until(self, holds, what):
        """Ask again and again, for a minute."""
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline, f"waited in vain until {what}"
            time.sleep(0.02)

    def end_all(self):
        """Kill what was started and still runs, and let what waits in a pause go on to its end."""
        (self.folder / "hold").unlink(missing_ok=True)
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


def on_both(study):
    """A study of the tiny configuration, which on a GPU does what it does on a CPU."""
    if not isinstance(study, dict):
        return study
    per_device = [key for key in ("grid", "places", "rungs") if key in study]
    return study | {key: dict.fromkeys(("cpu", "cuda"), study[key]["cpu"]) for key in per_device}


@pytest.fixture(scope="module")
def lab():
    """A Slurm for the tests of a module."""
    if reason := labs.cannot_run():
        pytest.skip(reason)
    with labs.Lab() as one:
        yield one


@pytest.fixture
def project_in(tmp_path):
    """Makes a project of timing cells in a lab: `hardware` as configured, the contexts, and other
    keys."""
    made = []

    def make(lab, hardware, contexts, **keys):
        folder = tmp_path / f"project{len(made)}"
        workflow.copy_of_code(folder)
        project = SlurmProject(folder, lab)
        made.append(project)
        timing = workflow.TINY["timing"] | {
            "grid": {"cpu": [workflow.POINT | {"context": contexts}]}
        }
        studies = {
            name: on_both(study) for name, study in (workflow.TINY | {"timing": timing}).items()
        }
        keys = {"hardware": hardware, "limits": [{"memory": 1.5, "cpus": 2}]} | keys
        project.configure(lambda config: config.update(studies | keys))
        return project

    yield make
    for project in made:
        project.end_all()
