"""`snakemake archive`, and a run that takes a machine from what it made."""

import shutil
import zipfile


def test_an_archive_is_another_run_s_machine(project, tmp_path):
    made = project.run("--cores", 1, "archive", "--config", "archive=mine", "traces=true")
    assert made.code == 0, made.text
    assert "Nothing to be done" in project.run("-n", "archive", "--config", "archive=mine", "traces=true").text
    mine = tmp_path / "mine.zip"
    shutil.move(project.folder / "results/archive/mine.zip", mine)
    names = zipfile.ZipFile(mine).namelist()
    assert any(name.endswith(f"{project.PROFILE}/trace/trace.json.gz") for name in names)
    assert not any(name.endswith(".log") for name in names)
    shutil.rmtree(project.folder / "results")
    shutil.rmtree(project.folder / ".snakemake")
    project.configure(hardware={"theirs": {"archive": str(mine)}})
    plan = project.planned()
    assert plan.cells == set() and plan.others >= project.AGGREGATING
    assert (project.folder / "results/theirs" / project.BETA / "record.json").is_file()
    mine.write_bytes(mine.read_bytes()[:-9])
    assert project.run("-n", "report").complaint.startswith(f"config key hardware.theirs.archive: {mine}: it is no")
