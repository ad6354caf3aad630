"""Pages of results of which a part cannot be used."""

import json
import sys

import aggregate
import pytest
import write_report
from stepscope.report import book

from tests.unit.results.cells import SHAPE, Results, sample

GOOD, SPOILT, BROKEN = (f"lab/timing/nano/ctx{context}/fp32" for context in (32, 64, 128))
FAILED = {"variants": {"step": {"status": "failed", "reason": "loss is NaN at step 3"}}}
ROOT = book.__file__.partition("/scripts/")[0]


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The report of three cells: a good one, one with a damaged record, one whose loss was NaN."""
    results = Results(tmp_path)
    samples = [sample(process=number) for number in (1, 2, 3)]
    for name, rows, summary in ((GOOD, samples, {}), (SPOILT, samples, {}), (BROKEN, [], FAILED)):
        context = int(name.split("/")[3].removeprefix("ctx"))
        results.add(name, SHAPE | {"context": context, "precision": "fp32"}, rows, summary)
    path = results.folder / SPOILT / "record.json"
    record = json.loads(path.read_text())
    del record["summary"]["values"]
    path.write_text(json.dumps(record))
    tables, figures, out = (str(tmp_path / name) for name in ("tables", "figures", "report"))
    plan, of_cells = str(results.plan()), str(results.folder)
    words = ["--plan", plan, "--results", of_cells, "--out", tables, "--published"]
    monkeypatch.setattr(sys, "argv", ["aggregate.py", *words])
    aggregate.main()
    words = ["--tables", tables, "--figures", figures, "--templates", f"{ROOT}/report"]
    monkeypatch.setattr(sys, "argv", ["write_report.py", *words, "--out", out, "--command", "go"])
    write_report.main()
    return (tmp_path / "report/report.md").read_text()


def test_a_damaged_cell_is_on_the_page_with_what_measures_it_again(page):
    assert f"`go --forcerun results/{SPOILT}/record.json` measures exactly them again" in page
    assert f"- {SPOILT}: record.json is damaged" in page


def test_a_cell_whose_loss_was_no_number_is_on_the_page_with_its_step(page):
    assert f"- {BROKEN}: loss is NaN at step 3" in page
