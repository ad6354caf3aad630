"""Makes whole reports of synthetic tables, for unit and browser tests."""

from pathlib import Path

import synthetic
from stepscope.figures import figures_of, theme
from stepscope.report.page import Request, write
from stepscope.tables.reader import Tables

ROOT = Path(__file__).resolve().parents[3]
STUDIES = ["timing", "ceilings"]


def request_of(folder: Path, partial: bool = False) -> Request:
    """What make_report() asks for."""
    places = folder / "tables", folder / "figures", ROOT / "report", folder / "report"
    return Request(STUDIES, *places, "Title", "snakemake report", partial)


def make_report(folder: Path, variant: str, change=None, partial: bool = False, draw: bool = True) -> Path:
    """Tables, figures and report of a variant below `folder`; returns the folder of the report."""
    tables = synthetic.write(variant, folder / "tables", change)
    for study in STUDIES:
        for name, function in figures_of(study).items():
            picture = function if draw else lambda _tables: theme.empty("not drawn in this test")
            theme.write(picture, Tables(tables, [study]), folder / "figures", name)
    write(request_of(folder, partial))
    return folder / "report"
