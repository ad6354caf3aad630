"""Reports of made-up tables."""

import made_up
import pytest
from common import ROOT
from stepscope.report import book
from stepscope.report.kit.data import Data


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Folders of tables: `gpu`, `cpu`, `both`, and an empty one."""
    root = tmp_path_factory.mktemp("tables")
    (root / "none").mkdir()
    gpu, cpu = made_up.gpu(), made_up.cpu()
    return {
        "gpu": made_up.write_tables(root / "gpu", gpu),
        "cpu": made_up.write_tables(root / "cpu", cpu),
        "both": made_up.write_tables(root / "both", gpu, cpu),
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
    """A report's request for a folder of tables; there are no figures."""
    figures = tmp_path / "figures"
    figures.mkdir()
    places = figures, ROOT / "report", tmp_path / "out"
    return lambda tables: book.Request(tables, *places, "snakemake --cores 1 report")


@pytest.fixture
def pages(request_for, folders):
    """From a machine's tables to its chapters: name → Markdown."""
    request = request_for(folders["none"])

    def made(data):
        templates = book.templates_of(request, data.machine, [data.machine])
        found = book.pages_of(book.facts_of(data), templates)
        return {page.name: page.markdown for page in found}

    return made
