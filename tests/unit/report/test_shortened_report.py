"""A report that would be too long for GitHub leaves out of its Markdown what the page has, and says so."""

import pytest
from report_maker import ROOT
from stepscope.report import page
from stepscope.report.kit.blocks import Column, Fold, Table, TableCell
from stepscope.report.kit.markdown import MarkdownBlocks

COLUMNS = [Column("a", number=False)]


def table(rows: int, **more) -> Table:
    return Table("t", "Caption.", COLUMNS, [[TableCell(f"row {at}")] for at in range(rows)], **more)


@pytest.mark.parametrize(("shortened", "shown"), [(0, [1, 2, 3]), (1, [1]), (2, [1])])
def test_long_and_folded_tables_are_left_out_but_counted(shortened, shown):
    blocks = MarkdownBlocks(shortened)
    texts = [blocks.table(each) for each in (table(40), table(41), table(1, folded=True))]
    assert [at for at, text in enumerate(texts, 1) if text] == shown
    assert blocks.tables == 3


def test_folded_parts_keep_their_name_and_facts():
    for shortened in (0, 1):
        assert "inside" in MarkdownBlocks(shortened).fold(Fold("Part", "fact"), lambda: "inside")
    blocks = MarkdownBlocks(2)
    assert blocks.fold(Fold("Part", "fact"), lambda: str(blocks.table(table(1)))) == "\nPart: fact\n"
    assert blocks.tables == 1


def test_a_report_is_shortened_step_by_step(monkeypatch, h100):
    whole = (h100 / "report.md").read_text(encoding="utf-8")
    assert "This version is shortened" not in whole
    tried = []

    class Recording(MarkdownBlocks):
        def __init__(self, shortened):
            tried.append(shortened)
            super().__init__(shortened)

    monkeypatch.setattr(page, "MarkdownBlocks", Recording)
    monkeypatch.setattr(page, "MOST_BYTES", len(whole.encode()) - 1)
    made = page.report(
        page.Request(["timing", "ceilings"], h100.parent / "tables", h100.parent / "figures", ROOT / "report", "Title",
                     "snakemake report", False)
    )  # fmt: skip
    assert tried == [0, 1]
    assert "This version is shortened" in made[0] and "This version is shortened" not in made[1]
    assert len(made[0].encode()) < len(whole.encode())
