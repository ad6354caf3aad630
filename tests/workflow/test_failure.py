"""A cell that fails: the others go on, the end says what is missing, and a partial report names it."""

import html
import json
import re
import shlex
import shutil

SDPA_FILE = "scripts/stepscope/model/attention/sdpa.py"


def break_sdpa(project):
    check = "    masks.check("
    project.edit(SDPA_FILE, check, f'    raise RuntimeError("broken on purpose")\n{check}')


def page(project):
    return html.unescape((project.folder / "results/partial/report/index.html").read_text())


def test_the_others_go_on_and_a_partial_report_names_what_is_missing(project):
    break_sdpa(project)
    project.configure(lambda config: config["timing"]["grid"]["cpu"][0]["context"].append(4))
    sdpa = (project.result(project.SDPA) / "record.json").relative_to(project.folder)
    run = project.run("--cores", 1, "report", "--prioritize", sdpa)
    assert run.code != 0
    assert "RuntimeError: broken on purpose" in run.text
    assert set(project.state_of_cells()) == {
        project.ALPHA,
        project.BETA,
        *project.CEILINGS,
        *project.PROFILES,
        *project.MEMORIES,
        *project.ATTENTIONS,
        *project.PROBES,
        *project.WARMUPS,
        *project.LADDERS,
    } | {
        "timing/alpha/ctx4/fp32",
        "timing/beta/ctx4/fp32",
    }
    end = run.text[run.text.index("12 of 13 cells; without a result:") :]
    assert f"{sdpa.parent}  (log: {sdpa.with_name('measure.log')})" in end
    assert "snakemake --cores 1 partial" in end

    project.configure(lambda config: config["timing"]["grid"]["cpu"][0].update(context=[8, 4, 2], size=["alpha"]))
    partial = project.run("--cores", 1, "partial")
    assert partial.code == 0, partial.text
    assert str(project.folder / "results/partial/report/index.html") in partial.text
    shown = page(project)
    assert "broken on purpose" in shown
    assert "attention=sdpa" in shown
    assert "timing/alpha/ctx2/fp32" in shown
    assert "not measured yet" in shown

    assert "Nothing to be done" in project.run("-n", "partial").text
    (project.result(project.SDPA) / "measure.log").write_text("broken in another way\n")
    assert project.run("--cores", 1, "partial", "--until", "partial_aggregate_timing").code == 0
    assert "broken in another way" in (project.folder / "results/partial/tables/timing.csv").read_text()
    assert re.search(r"^partial_write_report +1$", project.run("-n", "partial").text, re.MULTILINE)


def test_a_repaired_cell_is_all_that_is_measured_again(project):
    break_sdpa(project)
    assert project.run("--cores", 1, "report", *project.UNTIL_TABLES).code != 0
    before = project.state_of_cells()
    project.edit(SDPA_FILE, '    raise RuntimeError("broken on purpose")\n', "")
    repaired = project.run("--cores", 1, "report", *project.UNTIL_TABLES)
    after = project.state_of_cells()
    assert repaired.code == 0, repaired.text
    assert {cell for cell in after if after[cell] != before.get(cell)} == {project.SDPA}
    assert project.planned().cells == set()


def test_a_forced_cell_that_fails_is_measured_by_the_next_report(project):
    sdpa = (project.result(project.SDPA) / "record.json").relative_to(project.folder)
    header = "def series_header() -> None:\n"
    project.edit("scripts/stepscope/measure/printing.py", header, f"{header}    raise RuntimeError\n")
    failed = project.run("--cores", 1, "report", "--forcerun", sdpa)
    assert failed.code != 0
    assert "10 of 11 cells; without a result:" in failed.text
    assert project.planned().cells == {project.SDPA}


def test_without_its_metadata_a_run_with_right_records_does_nothing(project):
    shutil.rmtree(project.folder / ".snakemake")
    before = project.state_of_cells()
    assert project.planned().cells == set()
    run = project.run("--cores", 1, "report")
    assert run.code == 0, run.text
    assert project.state_of_cells() == before


def test_without_its_metadata_records_of_other_code_are_refused_by_name(project):
    shutil.rmtree(project.folder / ".snakemake")
    project.edit(SDPA_FILE, "is_causal=is_causal", "is_causal=bool(is_causal)")
    before = project.state_of_cells()
    assert project.planned().cells == set()
    refused = project.run("--cores", 1, "report")
    errors = [line for line in refused.text.splitlines() if line.startswith("error: ")]
    assert refused.code != 0
    assert len(errors) == 1
    assert f"{project.SDPA}: measured by other code" in errors[0]

    command = refused.text.split("To measure exactly these again: snakemake ")[1].splitlines()[0]
    repaired = project.run(*command.split(), *project.UNTIL_TABLES)
    after = project.state_of_cells()
    assert repaired.code == 0, repaired.text
    assert {cell for cell in after if after[cell] != before[cell]} == {project.SDPA}
    assert project.planned().cells == set()


def test_the_commands_at_the_end_repeat_the_configuration_that_was_given(bare_project):
    bare_project.edit(
        "scripts/time_step.py", "def main() -> None:\n", "def main() -> None:\n    raise SystemExit('no')\n"
    )
    (bare_project.folder / "mine.yaml").write_text("model: {seed: 3}\n")
    given = ("--configfile", "mine.yaml", "--config", "threads=1", "preset=default", "baseline=")
    run = bare_project.run("--cores", 1, "report", "--until", "time_step", *given)
    assert run.code != 0
    for target in ("partial", "report"):
        assert f"`snakemake --cores 1 {target} {' '.join(given)}` " in run.text


def test_the_commands_at_the_end_name_the_folder_of_a_run_elsewhere(project, tmp_path):
    project.edit("scripts/time_step.py", "def main() -> None:\n", "def main() -> None:\n    raise SystemExit('no')\n")
    (tmp_path / "other place").mkdir()
    (project.folder / "mine.yaml").write_text("ceilings: {cpu: {matmul_order: 48}}\n")
    record = str((project.result(project.MATMUL) / "record.json").relative_to(project.folder))
    words = ["--directory", tmp_path / "other place", "--configfile", project.folder / "mine.yaml"]
    failed = project.run("--cores", 1, "report", "--until", "time_step", *words)
    (command,) = re.findall("^`snakemake (.*)` writes a report of the others", failed.text, re.MULTILINE)
    measured = project.run(*shlex.split(command.replace("partial", record)), cwd="/")
    assert measured.code == 0, measured.text
    assert json.loads((tmp_path / "other place" / record).read_text())["spec"]["order"] == 48
