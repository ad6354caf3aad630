"""A run that is killed: nothing of it lives on, no half-written file counts, the same command goes on."""

import signal
from pathlib import Path

import pytest

# A moment of a cell: while its model runs, and while its files are put in place, samples first.
MOMENTS = {
    "measuring": ("measure/printing.py", "def series_header() -> None:", ""),
    "writing": ("files.py", "            part.rename(path)", 'path.name == "samples.csv"'),
}
# The moment after that: the cell is finished, and Snakemake does not know.
WRITTEN = ("scripts/stepscope/measure/record.py", "        files.write_whole(contents, to_disk=True)")


def alive(process: int) -> bool:
    """Whether the process runs; one that has ended and waits for its parent does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


@pytest.mark.parametrize("moment", MOMENTS)
def test_after_sigkill_the_same_command_goes_on(project, moment):
    module, line, only_if = MOMENTS[moment]
    goal = ["report", *(project.UNTIL_TABLES if moment == "writing" else [])]
    (project.result(project.COPY) / "record.json").unlink()
    project.pause_after(f"scripts/stepscope/{module}", line, only_if)
    before = project.state_of_cells()

    run = project.start("--cores", 1, *goal)
    cell = project.paused()
    run.send_signal(signal.SIGKILL)
    run.wait()
    project.wait_until(lambda: not alive(cell), "the orphan has ended")
    project.go_on()
    assert project.state_of_cells() == before
    assert project.planned().cells == {project.COPY}

    again = project.run("--cores", 1, *goal)
    assert again.code == 0, again.text
    after = project.state_of_cells()
    assert {name: after[name] for name in before} == before
    assert set(after) == set(before) | {project.COPY}
    assert project.planned().cells == set()
    assert list(project.folder.glob("results/**/.*.part")) == []


@pytest.mark.parametrize("kind", ["COPY", "PROFILE"], ids=["record and samples", "and a folder beside them"])
def test_a_cell_that_was_finished_at_the_kill_is_not_measured_again(project, kind):
    cell = getattr(project, kind)
    (project.result(cell) / "record.json").unlink()
    project.pause_after(*WRITTEN)
    run = project.start("--cores", 1, "report", *project.UNTIL_TABLES)
    measuring = project.paused()
    run.send_signal(signal.SIGKILL)
    run.wait()
    project.wait_until(lambda: not alive(measuring), "the orphan has ended")
    finished = project.state_of_cells()
    assert cell in finished

    assert project.planned().cells == set()
    again = project.run("--cores", 1, "report", *project.UNTIL_TABLES)
    assert again.code == 0, again.text
    assert project.state_of_cells() == finished
    # Snakemake has noted what it is of: another spec makes it stale, as it would any other cell.
    project.configure(lambda config: config[cell.split("/")[0]]["warmup"].update(cpu=3))
    assert cell in project.planned().cells


def test_what_a_killed_run_left_of_another_spec_is_measured_again(project):
    (project.result(project.COPY) / "record.json").unlink()
    project.pause_after(*WRITTEN)
    run = project.start("--cores", 1, "report")
    project.paused()
    run.send_signal(signal.SIGKILL)
    run.wait()
    project.configure(lambda config: config["ceilings"]["cpu"].update(copy_mebibytes=2))
    assert project.planned().cells == {project.COPY}


def test_a_second_run_in_the_folder_is_refused_and_the_first_goes_on(project):
    (project.result(project.COPY) / "record.json").unlink()
    project.pause_after("scripts/stepscope/measure/printing.py", "def series_header() -> None:")
    first = project.start("--cores", 1, "report", *project.UNTIL_TABLES)
    project.paused()

    second = project.run("--cores", 1, "report", *project.UNTIL_TABLES)
    refusals = [line for line in second.text.splitlines() if "another run" in line]
    assert second.code != 0
    assert "Traceback" not in second.text
    assert refusals == [
        f"another run (process {first.pid}) is at work in {project.folder}; wait until it ends, or end it"
    ]
    assert second.text.rstrip().endswith(refusals[0])

    project.go_on()
    text, _ = first.communicate(timeout=120)
    assert first.returncode == 0, text
    assert "11 of 11 cells" in text
    assert project.planned().cells == set()


def test_a_dry_run_beside_a_run_is_allowed(project):
    (project.result(project.COPY) / "record.json").unlink()
    project.pause_after("scripts/stepscope/measure/printing.py", "def series_header() -> None:")
    project.start("--cores", 1, "report")
    project.paused()
    assert project.planned().cells == {project.COPY}
