"""The committed example is the golden page of every chapter: today's code and templates make it of its tables."""

from pathlib import Path

from stepscope.report import book

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "report/example/h200"


def test_the_examples_pages_are_what_its_tables_give(tmp_path):
    (tmp_path / "figures").symlink_to(EXAMPLE / "figures")
    made = book.Request(EXAMPLE / "tables", tmp_path / "figures", ROOT / "report", tmp_path / "report", "")
    book.write(made)
    assert (made.out / "report.md").read_text() == (EXAMPLE / "report/report.md").read_text()
