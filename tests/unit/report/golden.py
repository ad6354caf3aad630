"""A committed page for each study: its findings and its section in Markdown, made of synthetic tables.

`STEPSCOPE_RENEW_GOLDEN=1 pytest tests/unit/report` writes the pages anew; look at the difference before committing it.
"""

import os
from pathlib import Path

from stepscope.report.kit.finding import texts
from stepscope.report.page import section_markdown
from stepscope.report.studies import section_of
from stepscope.tables.reader import Tables

PAGES = Path(__file__).parent / "golden"
TEMPLATES = Path(__file__).resolve().parents[3] / "report"


def page_of(study: str, tables: Tables) -> str:
    """The study's findings as a list, then its section."""
    sentences = texts(section_of(study).findings(tables), several_machines=True)
    return "\n".join(f"- {sentence}" for sentence in sentences) + "\n\n" + section_markdown(study, tables, TEMPLATES)


def check(study: str, tables: Tables) -> None:
    """Compare a study's page with the committed one."""
    page, path = page_of(study, tables), PAGES / f"{study}.md"
    if os.environ.get("STEPSCOPE_RENEW_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(page, encoding="utf-8")
    assert page == path.read_text(encoding="utf-8")
