"""Links from a page to the files beside it."""

from stepscope.report.kit.files import Files, linked


def files_in(folder) -> Files:
    return Files(folder, folder / "tables", folder / "figures", folder / "report")


def test_a_link_leads_to_a_file_that_is_there(tmp_path):
    names = ["gpu/timing/log.txt", "javascript:alert(1)", 'a"b|c d/repeat=2']
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    found = [files_in(tmp_path).of_cell(name) for name in names]
    assert found == ["../gpu/timing/log.txt", "../javascript%3Aalert%281%29", "../a%22b%7Cc%20d/repeat=2"]
    assert files_in(tmp_path).of_cell(f"results/{names[0]}") == found[0]


def test_there_is_no_link_to_what_is_not_there(tmp_path):
    (tmp_path / "report").mkdir()
    files = files_in(tmp_path)
    assert files.of_cell("gpu/trace.nsys-rep") == files.table("timing") == files.figure("ceilings") == ""
    assert files.of_cell("x" * 300) == files.of_cell("") == files.of_cell(None) == ""
    assert linked("a|b", "") == r"a\|b" and linked("a|b", "x.csv") == r"[a\|b](x.csv)"


def test_a_sites_tables_are_those_of_its_archive(tmp_path):
    for name in ("report", "tables"):
        assert files_in(tmp_path).all_tables == ""
        (tmp_path / name).mkdir()
    assert files_in(tmp_path).all_tables == "../tables"
    (tmp_path / "cells.zip").write_text("")
    assert files_in(tmp_path).all_tables == "../tables"
    (tmp_path / "tables").rmdir()
    assert files_in(tmp_path).all_tables == "../cells.zip"


def test_a_partial_reports_cells_lie_elsewhere_than_its_tables(tmp_path):
    partial = tmp_path / "partial"
    for path in (tmp_path / "gpu/log", partial / "tables/timing.csv"):
        path.parent.mkdir(parents=True)
        path.write_text("")
    files = Files(tmp_path, partial / "tables", partial / "figures", partial / "report")
    assert files.of_cell("gpu/log") == "../../gpu/log" and files.table("timing") == "../tables/timing.csv"
