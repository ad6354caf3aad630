"""How the workflow runs a cell: what was finished by a killed run is taken, everything else is
measured anew."""

import hashlib
import json
import os

import pytest
import run_cell
from stepscope.machine import labels
from stepscope.machine.labels import Hardware

SPEC = {"study": "ceilings", "operation": "copy", "device": "cpu"}
MACHINE = {"device": "cpu", "torch": "2.0"}


def result(folder, samples=b"seconds\n1.0\n", **changes):
    """A cell's result as a program writes it, with parts of its record changed."""
    (folder / "trace").mkdir(parents=True)
    (folder / "trace/kineto.json").write_text("{}")
    (folder / "samples.csv").write_bytes(samples)
    record = {"spec": SPEC, "code": "0123", "machine": MACHINE | {"cpu": "X"}}
    record |= {"samples_sha256": hashlib.sha256(b"seconds\n1.0\n").hexdigest()} | changes
    (folder / "record.json").write_text(json.dumps(record))
    return folder


def test_a_whole_result_of_the_same_spec_code_and_machine_is_finished(tmp_path):
    kept = result(tmp_path / "kept")
    whole = [kept, SPEC, "0123", MACHINE]
    # of a cluster's machine nothing is known beforehand
    for given in (whole, [*whole[:3], None]):
        assert run_cell.is_finished(*given)
    others = [tmp_path / "nothing", SPEC | {"seed": 1}, "4567", MACHINE | {"torch": "2.1"}]
    for at, other in enumerate(others):
        assert not run_cell.is_finished(*whole[:at], other, *whole[at + 1 :])


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"spec": 1}'])
def test_a_damaged_record_is_not_finished(text, tmp_path):
    kept = result(tmp_path / "kept")
    (kept / "record.json").write_text(text)
    assert not run_cell.is_finished(kept, SPEC, "0123", MACHINE)


def test_samples_that_are_not_the_records_are_not_finished(tmp_path):
    assert not run_cell.is_finished(
        result(tmp_path / "kept", samples=b"seconds\n"), SPEC, "0123", MACHINE
    )


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the program in a folder of its own; `measured` notes the command that measures, which
    writes a result."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(labels.TOLD, "")  # what is set is undone
    measured = []

    class Ended:
        returncode = 0

    def measure(command, environment):
        measured.append(command)
        result(tmp_path / command[command.index("--out") + 1])
        return Ended.returncode

    monkeypatch.setattr(run_cell.process, "run_logged", measure)

    def run(label="mine", **machine):
        labels.tell([Hardware("mine", "cpu", 1, **machine)])
        words = [label, "--cell", json.dumps(SPEC), "--code", f"0123 {json.dumps(MACHINE)}"]
        words += ["--time-limit", "5", "--out", f"results/{label}/ceilings/copy"]
        monkeypatch.setattr("sys.argv", ["run_cell.py", *words])
        run_cell.main()

    run.measured, run.result = measured, Ended
    return run


def test_a_cell_is_measured_by_its_studys_program_and_put_in_its_place(run, tmp_path):
    run()
    (command,) = run.measured
    assert command[0] == "python3" and command[1].endswith("scripts/measure_ceilings.py")
    assert command[2:6] == ["--operation", "copy", "--device", "cpu"]
    cell, kept = (
        tmp_path / "results/mine/ceilings/copy",
        tmp_path / "results/.measured/mine/ceilings/copy",
    )
    for name in ("record.json", "samples.csv", "trace/kineto.json"):
        assert os.path.samefile(cell / name, kept / name)


def test_what_a_killed_run_has_finished_is_taken(run, tmp_path):
    run()
    for path in (tmp_path / "results/mine/ceilings/copy").glob("*.*"):
        path.unlink()  # as Snakemake does with what it has not noted
    run()
    assert len(run.measured) == 1
    assert (tmp_path / "results/mine/ceilings/copy/record.json").is_file()


def test_what_another_users_killed_program_has_left_is_not_taken(run, tmp_path):
    """It may be that only this user can look into it, or remove it."""
    left = tmp_path / "results/.measured/mine/ceilings/copy/.growing.left"
    run()
    left.mkdir()
    run()
    assert len(run.measured) == 1 and left.exists()
    assert not (tmp_path / "results/mine/ceilings/copy" / left.name).exists()


def test_a_program_that_fails_leaves_nothing_and_its_code_is_the_cells(run, tmp_path, monkeypatch):
    run.result.returncode = 3
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 3
    assert not (tmp_path / "results/mine").exists()


def test_a_cell_of_another_machine_is_refused_in_one_line(run):
    with pytest.raises(SystemExit, match=r"this machine is .*, not the expected No Such CPU"):
        run(expect="No Such CPU")
    assert run.measured == []
