"""Results that are damaged, edited, of another origin or cannot be written: named in one line, and nothing is lost."""

import ctypes
import json
import os
import re
import resource
import shlex
import shutil

import pytest

CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, PR_CAPBSET_DROP = 1, 2, 24  # linux/capability.h, linux/prctl.h


def cut(cell, file):
    (cell / file).write_bytes((cell / file).read_bytes()[:-40])


def change_samples(cell):
    path = cell / "samples.csv"
    path.write_text(re.sub(r"0\.(\d)", r"0.9", path.read_text(), count=1))


def change_record(cell, change):
    record = json.loads((cell / "record.json").read_text())
    change(record)
    (cell / "record.json").write_text(json.dumps(record))


# What is done to a cell's folder, and what is said of it: to each of the three timing cells another damage.
DAMAGES = {
    "truncated, empty, a list": (
        (lambda cell: cut(cell, "record.json"), "record.json is damaged"),
        (lambda cell: (cell / "record.json").write_text(""), "record.json is damaged"),
        (lambda cell: (cell / "record.json").write_text("[1, 2]"), "record.json is damaged"),
    ),
    "another spec, other samples": (
        (
            lambda cell: change_record(cell, lambda record: record["spec"].update(context=9)),
            "record.json is of another spec: context is 9 there, 8 now",
        ),
        (lambda cell: cut(cell, "samples.csv"), "samples.csv is not the file"),
        (change_samples, "samples.csv is not the file"),
    ),
    "other code, hardware, torch": (
        (
            lambda cell: change_record(cell, lambda record: record.update(code="0123456789abcdef")),
            "measured by other code (digest 0123456789abcdef, now ",
        ),
        (
            lambda cell: change_record(cell, lambda record: record["machine"].update(cpu="Abacus")),
            "measured on another machine: cpu is 'Abacus' there",
        ),
        (
            lambda cell: change_record(cell, lambda record: record["machine"].update(torch="1.0.0+cpu")),
            "measured on another machine: torch is '1.0.0+cpu' there",
        ),
    ),
}


@pytest.mark.parametrize("damages", DAMAGES.values(), ids=DAMAGES)
def test_results_that_do_not_belong_are_refused_by_name(project, damages):
    cells = (project.BETA, project.ALPHA, project.SDPA)
    for cell, (damage, _) in zip(cells, damages, strict=True):
        damage(project.result(cell))
    for made_of_cells in ("tables", "figures", "report"):
        shutil.rmtree(project.folder / "results" / made_of_cells)
    before = project.state_of_cells()
    shown = project.run("--cores", 1, "results/tables/timing.csv")  # which the report is made of
    errors = [line for line in shown.text.splitlines() if line.startswith("error: ")]
    assert shown.code != 0
    assert "Traceback" not in shown.text
    assert len(errors) == len(cells)
    for cell, (_, said) in zip(cells, damages, strict=True):
        assert any(f"/{cell}: {said}" in line for line in errors), errors
    assert not (project.folder / "results/tables/timing.csv").exists()
    assert project.state_of_cells() == before


@pytest.mark.parametrize("given", [(), ("--configfile", "mine.yaml", "--config", "threads=1")], ids=["", "configured"])
def test_the_printed_command_repairs_a_refused_cell(project, given):
    (project.folder / "mine.yaml").write_text("limits: [{minutes: 9}]\n")
    change_record(project.result(project.BETA), lambda record: record["spec"].update(context=9))
    before = project.state_of_cells()
    refused = project.run("--cores", 1, "report", *given)
    (command,) = re.findall("^To measure exactly these again: (.*)$", refused.text, re.MULTILINE)
    assert shlex.split(command)[4 : 4 + len(given)] == list(given)
    repaired = project.run(*shlex.split(command)[1:], *project.UNTIL_TABLES)
    after = project.state_of_cells()
    assert (refused.code, repaired.code) == (1, 0), repaired.text
    assert {cell for cell in after if after[cell] != before[cell]} == {project.BETA}
    assert project.planned().cells == set()


@pytest.mark.parametrize("file", ["record.json", "samples.csv"])
def test_a_file_that_was_deleted_is_measured_again(project, file):
    (project.result(project.BETA) / file).unlink()
    assert project.planned().cells == {project.BETA}


def test_a_file_in_the_place_of_results_is_named(bare_project):
    (bare_project.folder / "results").write_text("mine")
    complaint = bare_project.run("--cores", 1, "report").complaint
    assert complaint.startswith(f"{bare_project.folder / 'results'} is no folder; move it away")
    assert (bare_project.folder / "results").read_text() == "mine"


def as_an_ordinary_user():
    """Take from root what lets it write where the file's mode forbids it."""
    for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def test_a_folder_that_cannot_be_written_is_named(bare_project):
    results = bare_project.folder / "results"
    results.mkdir()
    results.chmod(0o555)
    shown = bare_project.run("--cores", 1, "report", preexec_fn=as_an_ordinary_user)
    (line,) = [line for line in shown.text.splitlines() if "cannot write" in line]
    assert shown.code != 0
    assert "Traceback" not in shown.text
    assert str(results) in line
    assert "Permission denied" in line
    assert os.listdir(results) == []


def test_a_place_for_locks_that_is_none_is_named_before_anything_runs(bare_project, tmp_path):
    (tmp_path / "file").touch()
    shown = bare_project.run("--cores", 1, "report", environment={"STEPSCOPE_LOCKS": tmp_path / "file"})
    assert shown.code != 0
    assert "Traceback" not in shown.text
    (line,) = [line for line in shown.text.splitlines() if "STEPSCOPE_LOCKS" in line]
    assert line.startswith(f"cannot write in {tmp_path}/file: File exists; set STEPSCOPE_LOCKS to a folder that all ")
    assert not list(bare_project.folder.glob("results/*/timing"))


def test_no_room_left_is_said_in_one_line_and_leaves_no_half_file(project):
    record = str((project.result(project.COPY) / "record.json").relative_to(project.folder))
    project.edit(
        "rules/studies.smk",
        "    measure {wildcards.hardware} ",
        "    ulimit -f 1; measure {wildcards.hardware} ",
    )
    shown = project.run("--cores", 1, record, "--forcerun", record)
    (line,) = [line for line in shown.text.splitlines() if line.startswith("error: ")]
    assert shown.code != 0
    assert "Traceback" not in shown.text
    assert "record.json: File too large; make room and run again" in line
    assert {path.name for path in project.result(project.COPY).iterdir()} <= {"measure.log", "samples.csv"}


WITHOUT_ROOM = """
def fill(path):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
"""
CELL = "results/*/{study}/alpha/ctx8/fp32"
REPORTING = {
    "tables": "aggregate.py --plan results/plan/*.json --study timing --out OUT",
    "figures": "draw_figures.py --study timing --tables results/tables --out OUT",
    "the profile's analysis": f"analyze_profile.py --cell {CELL.format(study='profile')} --out OUT",
    "the memory's analysis": f"analyze_memory.py --cell {CELL.format(study='memory')} --out OUT",
    "a trace's analysis": f"analyze_nsys.py {CELL.format(study='profile')}/trace/trace.json.gz --out OUT",
    "a snapshot's analysis": f"analyze_snapshot.py {CELL.format(study='memory')}/snapshot/snapshot.pickle --out OUT",
    "the report": "write_report.py --study timing --tables results/tables --figures results/figures "
    "--templates report --out OUT",
}


def with_small_files_only():
    """The kernel's own limit, as a full disk: 200 bytes, which no table, figure or page has."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))


@pytest.mark.parametrize("words", REPORTING.values(), ids=REPORTING)
def test_no_room_for_what_is_made_of_the_cells_is_one_line_and_leaves_nothing(words, project, tmp_path):
    program, *flags = words.replace("OUT", str(tmp_path / "out")).split()
    given = [next(iter(map(str, project.folder.glob(flag))), flag) if "*" in flag else flag for flag in flags]
    shown = project.python(f"scripts/{program}", *given, preexec_fn=with_small_files_only)
    assert shown.code == 1
    *warnings, line = shown.text.splitlines()  # matplotlib's, of axes that are too small
    assert line.startswith(f"error: cannot write {tmp_path / 'out'}"), shown.text
    assert "File too large; make room and run again" in line
    assert not [said for said in warnings if "Traceback" in said or "rror" in said]
    assert [path for path in (tmp_path / "out").rglob("*") if not path.name.startswith(".")] == []


def test_no_room_for_the_plan_is_said_and_leaves_nothing(project):
    shutil.rmtree(project.folder / "results/plan")
    project.edit("scripts/stepscope/files.py", "def write_whole(", f"{WITHOUT_ROOM}\n\ndef write_whole(")
    project.edit(
        "scripts/stepscope/files.py", "                    file.writelines(lines)", "                    fill(path)"
    )
    shown = project.run("--cores", 1, "plan_file")
    assert shown.code != 0
    assert "Traceback" not in shown.text
    (line,) = {line for line in shown.text.splitlines() if "cannot write" in line}
    assert re.fullmatch(r"error: cannot write results/plan/\w+\.json: No space left on device; make room and .*", line)
    assert list((project.folder / "results/plan").glob("*.json")) == []
