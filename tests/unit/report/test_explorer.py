"""The explorer's data and links, read again without a browser."""

import base64
import csv
import gzip
import json
import re

import pytest
from common import ROOT, picked
from stepscope.report import explorer


@pytest.fixture
def page_of(folders, tmp_path):
    """The explorer of a run, or of several."""

    def made(runs=None, command=""):
        return explorer.document(runs or {"": folders["both"]}, tmp_path, command, ROOT / "report")

    return made


def contents(page, name):
    """The columns of a table as the page holds them."""
    packed = re.search(rf'<script type="text/plain" id="data-{name}">([^<]+)</script>', page)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def about(page):
    return json.loads(re.search(r'id="about">(.+?)</script>', page)[1])


def test_every_number_of_a_csv_is_in_the_page(folders, page_of):
    page = page_of()
    rows = list(csv.DictReader((folders["both"] / "series.csv").read_text().splitlines()))
    names = picked(about(page)["tables"]["series"]["columns"], "name")
    columns = dict(zip(names, contents(page, "series"), strict=True))
    assert columns["median"] == [
        None if row["median"] == "" else pytest.approx(float(row["median"]), rel=1e-4)
        for row in rows
    ]
    for name, kind in (("cell", str), ("context", float)):
        keys, places = columns[name]
        assert [keys[place] for place in places] == [row[name] and kind(row[name]) for row in rows]
    size = {"name": "size", "kind": "text", "chosen": True}
    assert explorer._values(size, ["xl", "d64", "nano"], {"size": {"xl": 2, "nano": 1}}) == [
        ["nano", "xl", "d64"],
        [1, 2, 0],
    ]


def test_tables_that_are_too_large_are_named_and_left_out(page_of, monkeypatch):
    whole = page_of()
    monkeypatch.setattr(explorer, "MOST_BYTES", len(contents(whole, "series")))
    page = page_of()
    assert 'id="data-series"' in whole and 'id="data-series"' not in page
    assert "series.csv" in page.partition("<footer>")[2].partition("</footer>")[0]


def test_text_of_a_record_cannot_end_the_script(folders, page_of):
    page = page_of({"</script><b>": folders["both"], "two": folders["gpu"]}, "</script><b>")
    assert "<b>" not in page.split("<script")[1] and page.count("</script><b>") == 0
