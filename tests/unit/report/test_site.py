"""What a site may replace: nothing but an earlier site."""

from pathlib import Path

import pytest
from stepscope.archive import ArchiveError
from stepscope.report.page import Request
from stepscope.report.site import CELLS, write_site


def request(results: Path) -> Request:
    for name in ("tables", "figures"):
        (results / name).mkdir(parents=True)
    (results / "tables" / "timing.csv").write_text("cell\n")
    out = results / "report"
    return Request([], results / "tables", results / "figures", Path(), out, "title", "command", results=results)


def everything(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "site, reason",
    [
        (".", "holds results"),
        ("results", "holds results"),
        ("results/tables", "holds results"),
        ("docs", "is there and no site"),
        ("docs/mine.md", "is no folder"),
        ("link", "is no folder"),
    ],
)
def test_what_is_no_site_is_not_replaced(tmp_path, monkeypatch, site, reason):
    monkeypatch.chdir(tmp_path)
    asked = request(Path("results"))
    Path("docs").mkdir()
    Path("docs/mine.md").write_text("mine")
    Path("empty").mkdir()
    Path("link").symlink_to("empty")
    before = everything(tmp_path)
    with pytest.raises(ArchiveError, match=reason) as error:
        write_site(asked, Path(site))
    assert "\n" not in str(error.value) and str(error.value).startswith(site)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("there", [(), ("report/index.html", CELLS)])
def test_an_empty_folder_and_an_earlier_site_are(tmp_path, there):
    asked, site = request(tmp_path / "results"), tmp_path / "site"
    site.mkdir()
    for name in there:
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text("before")
    before = everything(tmp_path)
    with pytest.raises(ArchiveError, match="holds no cell with a record"):  # so far it comes
        write_site(asked, site)
    assert everything(tmp_path) == before
