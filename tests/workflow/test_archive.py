"""`snakemake archive`, and a run that takes a machine from what it made."""

import re
import shutil
import zipfile
from html import unescape
from urllib.parse import unquote

from stepscope.report import site as sites


def test_a_site_is_whole_without_the_results(project, tmp_path):
    made = project.run("--cores", 1, "site")
    assert made.code == 0, made.text
    assert "Nothing to be done" in project.run("-n", "site").text
    site = tmp_path / "site"
    shutil.move(project.folder / "results/site", site)
    whole = project.folder / "results"
    for name in ("index.html", "data.html", "report.md"):
        text = (site / "report" / name).read_text()
        packed = re.findall(r'"(\.\./[^"]+)"', " ".join(re.findall(r"class=rows>(.*?)</script>", text, re.DOTALL)))
        targets = {*re.findall(r'<a href="([^"#]+)', text), *re.findall(r"\]\(([^)#]+)", text), *packed}
        targets = {unquote(unescape(each)) for each in targets if not each.startswith("https://")}
        assert targets
        assert [each for each in targets if not (site / "report" / each).exists()] == []
        shorter, own = (len(_without_targets(page)) for page in (text, (whole / "report" / name).read_text()))
        assert 0.5 * own < shorter <= own  # it says what the report says, and links to less
    shown = re.findall(r"\(\.\./figures/([^)]+)\)", (site / "report/report.md").read_text())
    assert {each.name for each in (site / "figures").iterdir()} == set(shown) != set()
    cells = {f"results/{each.parent.relative_to(whole)}" for each in whole.rglob("record.json")}
    names = zipfile.ZipFile(site / sites.CELLS).namelist()
    assert {name.removesuffix("/record.json") for name in names if name.endswith("/record.json")} == cells
    tables = {each.name for each in (whole / "tables").glob("*.csv")}
    small = {f"results/tables/{each}" for each in tables if not re.search(r"_(samples|timeline)\.csv$", each)}
    data = (site / "report/data.html").read_text()
    assert set() != {f"results/tables/{each}" for each in tables if each in data} <= small  # it names what is there
    others = {name for name in names if not any(name.startswith(f"{cell}/") for cell in cells)}
    assert others == {"manifest.json", *small} and small
    for cell in cells:
        packed = zipfile.ZipFile(site / sites.CELLS).read(f"{cell}/record.json")
        assert packed == (project.folder / cell / "record.json").read_bytes()


def _without_targets(page: str) -> str:
    """A page without what its links lead to: the archive's name may be longer than the table's."""
    return re.sub(r'href="[^"]*"|\]\([^)]*\)', "", page)


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
