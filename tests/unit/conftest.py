"""Helpers for the tests of several packages: the checkout, and Python in a process of its own."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from common import ROOT
from in_process import run_program

SCRIPTS = str(ROOT / "scripts")
# On a CPU kernels run in Triton's interpreter. Triton looks at this when it is imported and when a
# kernel is defined, later no more. It must not stay: programs that tests start would find an
# interpreter where they should find no GPU.
if not torch.cuda.is_available() and importlib.util.find_spec("triton"):  # it exists for Linux only
    os.environ["TRITON_INTERPRET"] = "1"
    import stepscope.kernels.fused  # noqa: F401

    del os.environ["TRITON_INTERPRET"]


@pytest.fixture
def start_python():
    """Start Python code in a process with pipes; it and what it leaves are killed when the test
    ends."""
    started = []

    def start(code, *arguments, **options):
        command = [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {SCRIPTS!r})\n{code}",
            *arguments,
        ]
        pipes = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        process = subprocess.Popen(command, **(pipes | options))
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout, process.stderr)):
            pipe.close()


@pytest.fixture
def run_python(start_python):
    """Run Python code in a process of its own; gives (exit code, stdout, stderr)."""

    def run(code, *arguments, **options):
        process = start_python(code, *arguments, **options)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    return run


@pytest.fixture
def run_script(monkeypatch, capsys):
    """Run a program of scripts/ in this process, which is quicker than to start a Python."""
    return lambda name, *words: run_program(ROOT / "scripts" / name, words, monkeypatch, capsys)


@pytest.fixture(autouse=True)
def own_locks(tmp_path_factory, monkeypatch):
    """Locks of a folder of our own, so that no test waits for a measurement on this machine."""
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path_factory.mktemp("locks")))
