"""Reports of made-up tables."""

import shutil
from pathlib import Path

import made_up
import pytest
from common import ROOT
from stepscope.report.book import Request
from stepscope.report.kit.data import Data


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Folders of tables: `gpu`, `cpu`, `both`, and an empty one."""
    root = tmp_path_factory.mktemp("tables")
    (root / "none").mkdir()
    return {
        "gpu": made_up.write_tables(root / "gpu"),
        "cpu": made_up.write_tables(root / "cpu", gpu=False, cpu=True),
        "both": made_up.write_tables(root / "both", cpu=True),
        "none": root / "none",
    }


@pytest.fixture(scope="session")
def gpu(folders):
    """The made-up GPU."""
    return Data(folders["gpu"], made_up.GPU)


@pytest.fixture(scope="session")
def cpu(folders):
    """The made-up processor."""
    return Data(folders["cpu"], made_up.CPU)


@pytest.fixture
def request_for(tmp_path):
    """A report's request for a folder of tables, of which some are left out; with a figure of each
    name."""

    def made(tables, *left_out):
        kept = tmp_path / "tables"
        shutil.copytree(
            tables,
            kept,
            ignore=lambda _, names: [name for name in names if Path(name).stem in left_out],
        )
        figures = tmp_path / "figures"
        figures.mkdir()
        return Request(
            kept, figures, ROOT / "report", tmp_path / "out", "snakemake --cores 1 report"
        )

    return made
