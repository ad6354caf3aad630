"""A committed page for each study: its section of the data page in Markdown, made of synthetic tables.

`STEPSCOPE_RENEW_GOLDEN=1 pytest tests/unit/report` writes the pages anew; look at the difference before committing it.
"""

import os
from pathlib import Path

from pages import frame_of
from stepscope.report.content import FRONT
from stepscope.report.frame import without_gaps
from stepscope.report.page import Request
from stepscope.tables.reader import Tables

PAGES = Path(__file__).parent / "golden"
TEMPLATES = Path(__file__).resolve().parents[3] / "report"


def page_of(name: str, tables: Tables) -> str:
    """The section of a study or comparison; page one by its name."""
    folder = tables.folder.parent
    comparisons = () if name in tables.studies else (name,)
    request = Request(
        tables.studies,
        tables.folder,
        folder / "figures",
        TEMPLATES,
        folder / "report",
        "Title",
        "c",
        False,
        comparisons,
    )
    frame = frame_of(request, is_all_there=True)
    return without_gaps(frame.front() if name == FRONT else frame.section(name))


def check(name: str, tables: Tables) -> None:
    """Compare a page with the committed one."""
    page, path = page_of(name, tables), PAGES / f"{name}.md"
    if os.environ.get("STEPSCOPE_RENEW_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(page, encoding="utf-8")
    assert page == path.read_text(encoding="utf-8")
