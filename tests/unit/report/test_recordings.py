"""Pages of a stranger's trace and snapshot, of recordings that the project keeps."""

import html
import re

import pandas as pd
import pytest
from common import ROOT
from stepscope.report import recordings
from stepscope.snapshot import analysis as snapshots
from stepscope.trace import analysis as traces

TEMPLATES = ROOT / "report"
BAD = "<script>alert(1)</script>|*x*"


def said(page):
    """The text of a page."""
    return html.unescape(re.sub(r"<[^>]+>", " ", page.split("<main>")[1]))


@pytest.fixture(scope="module")
def snapshot():
    """Precision → the tables of a recorded step."""
    folder = ROOT / "tests/unit/snapshot/recordings"
    found = {name: folder / f"step_{name}" / "snapshot.pickle.gz" for name in ("bf16", "fp32")}
    return {name: snapshots.analyse_file(path, None) for name, path in found.items()}


def test_a_snapshot_says_its_peak_first(snapshot):
    page = recordings.of_snapshot(snapshot["bf16"], BAD, TEMPLATES)
    peak = snapshot["bf16"]["memory_summary"]["peak"].iloc[0]
    assert f"{peak / 2**20:.0f}" in said(page).split("At the peak")[0]
    assert page.count("<figure>") == 1 and "<script>" not in page


def test_a_trace_has_its_tables_and_one_step():
    path = ROOT / "tests/unit/trace/recordings/two_layers_bf16.sqlite"
    tables = traces.analyse(traces.read(path), None, None)
    tables["kernels"] = pd.concat([tables["kernels"].assign(name=BAD), tables["kernels"]])
    page = recordings.of_trace(tables, "trace", TEMPLATES)
    assert "<h2" in page and page.count("<figure>") == 1
    assert "<script>alert" not in page and "<script>alert(1)</script>|*x*" in said(page)
