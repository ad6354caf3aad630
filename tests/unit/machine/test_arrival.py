"""What a job finds where it starts."""

import json
import os
import subprocess
import sys

import pytest
from stepscope.machine import arrival, identity
from stepscope.machine.labels import Hardware

H100 = Hardware("h100", "cuda", 1, here=False, expect="H100", asked={"gpu_model": "h100"})
OLD = Hardware("old", "cuda", 1, here=False, measured=False)
NODE = Hardware("node", "cpu", 2, here=False, asked={"slurm_partition": "cpu"})


@pytest.fixture
def path(tmp_path):
    """Where a run writes down what it knows."""
    return tmp_path / "machines.json"


def test_what_is_written_is_read_without_a_studys_tools(path):
    seen = {"h100": {"timing": None, "profile": {"driver": "1", "tools": {"nsys": None}}}}
    arrival.write(path, [H100, OLD, NODE], seen)
    assert arrival.read(path, "h100") == arrival.Expected("cuda", "H100", None, {"driver": "1"})
    assert arrival.read(path, "node") == arrival.Expected("cpu")
    with pytest.raises(ValueError, match=r"says nothing of old; start the run again"):
        arrival.read(path, "old")


@pytest.mark.parametrize("text", [None, "", "[]", '{"h100": {"gpu": 1}}'])
def test_what_cannot_be_read_is_one_line(text, path):
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=rf"^{path} says nothing of h100; start the run again where it began$"):
        arrival.read(path, "h100")


def test_the_type_of_the_machine(monkeypatch):
    expected = arrival.Expected("cuda", "h100")
    arrival.check_type("h100", expected, "NVIDIA H100 80GB HBM3")
    with pytest.raises(ValueError, match=r"hardware.h100 runs on Tesla T4, but the entry expects 'h100'; correct"):
        arrival.check_type("h100", expected, "Tesla T4")
    with pytest.raises(ValueError, match=r"^this job of hardware.h100 sees no NVIDIA GPU; check"):
        arrival.check_type("h100", expected, None)
    monkeypatch.setattr(identity, "cpu_name", lambda: "AMD EPYC")
    arrival.check_type("node", arrival.Expected("cpu", "epyc"), None)
    with pytest.raises(ValueError, match="runs on AMD EPYC, but the entry expects 'Xeon'"):
        arrival.check_type("node", arrival.Expected("cpu", "Xeon"), None)


def test_news_is_the_first_difference_from_the_newest_record():
    before = {"driver": "550", "torch": "2.13.0"}
    assert arrival.news(arrival.Expected("cuda", identity=before), dict(before)) is None
    assert arrival.news(arrival.Expected("cuda"), before) is None
    found = arrival.news(arrival.Expected("cuda", identity=before), before | {"driver": "560"})
    assert found == "driver is '560', and was '550'"


def on_machine(project_root, path, *words, **environment):
    command = [sys.executable, str(project_root / "scripts/on_machine.py"), str(path), *words]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=60)


def test_a_command_runs_on_the_machine_and_says_what_is_new(project_root, path):
    found = identity.identity("cpu") | {"torch": "1.0"}
    arrival.write(path, [NODE], {"node": {"timing": found}})
    ran = on_machine(project_root, path, sys.executable, "node", "-c", "print(5)")
    assert (ran.returncode, ran.stdout) == (0, "5\n")
    assert "is not as node was: torch is " in ran.stderr and ", and was '1.0'. This cell" in ran.stderr


def test_a_command_does_not_run_on_another_machine(project_root, path):
    arrival.write(path, [Hardware("node", "cpu", 2, here=False, expect="No Such CPU")], {})
    ran = on_machine(project_root, path, sys.executable, "node", "-c", "print(5)")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: this job of hardware.node runs on ") and ran.stderr.count("\n") == 1


def test_the_interpreter_of_an_entry_measures(project_root, path, tmp_path):
    own = tmp_path / "python"
    own.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    own.chmod(0o755)
    arrival.write(path, [Hardware("node", "cpu", 2, here=False, python=str(own))], {})
    show = "import os; print(os.environ['STEPSCOPE_PYTHON'])"
    ran = on_machine(project_root, path, "/no/such/python", "node", "-c", show)
    assert (ran.returncode, ran.stdout) == (0, f"{own}\n"), ran.stderr
    assert json.loads(path.read_text())["node"]["python"] == str(own)


def test_without_a_command_it_says_how_it_is_called(project_root, path):
    ran = on_machine(project_root, path, sys.executable, "node")
    assert ran.returncode == 1 and ran.stderr.startswith("usage: ") and ran.stderr.count("\n") == 1


def test_a_gpu_job_without_a_gpu(project_root, path):
    arrival.write(path, [H100], {})
    ran = on_machine(project_root, path, sys.executable, "h100", "-c", "print(5)", CUDA_VISIBLE_DEVICES="")
    assert ran.returncode == 1 and ran.stderr.startswith("error: this job of hardware.h100 sees no NVIDIA GPU; check")
