"""docs/write-ups.md names cells, chapters, tables and columns; all of them exist."""

import re

import pytest
from common import ROOT
from snakemake.utils import update_config
from stepscope.config.config import validated
from stepscope.config.studies import STUDIES
from stepscope.machine.labels import Hardware
from stepscope.report.book import CHAPTERS
from stepscope.results.schema import QUANTITIES, TABLES
from stepscope.yaml_files import read_yaml

LENGTHS = {"000": 17, "001": 41, "002": 20, "003": 23, "004": 22}  # items of each write-up
PAGE = (ROOT / "docs/write-ups.md").read_text(encoding="utf-8")
OF_SERIES = re.compile(r"series\[(\w+)\]")
COLUMN = re.compile(r"(\w+)\.(\w+)")
NOT_HERE = (
    "`trace/`",
    "not measured: ",
    "`compare`",
)  # where a line names neither chapter nor column


def rows():
    """(write-up, item, cells, where) of each line of the tables."""
    seed = ""
    for line in PAGE.splitlines():
        if line.startswith("## published-"):
            seed = line[len("## published-") :][:3]
        if line.count(" | ") == 2 and not line.startswith("the write-up"):
            item, cells, where = (part.strip() for part in line.split(" | "))
            yield seed, item, re.findall(r"`([^`]+)`", cells), where


def test_every_item_has_a_place_or_a_reason():
    found = list(rows())
    assert {seed: sum(row[0] == seed for row in found) for seed in LENGTHS} == LENGTHS
    for _, item, _, where in found:
        named = (
            re.findall("“[^”]+”", where)
            or any(each in where for each in NOT_HERE)
            or COLUMN.search(where)
        )
        assert item and (named or OF_SERIES.search(where)), (item, where)


def test_its_chapters_exist():
    files = [path for name in CHAPTERS for path in (ROOT / "report/chapters").glob(f"{name}*.j2")]
    titles = {
        title for path in files for title in re.findall(r"^# (.+)$", path.read_text(), re.MULTILINE)
    }
    named = set(re.findall("“([^”]+)”", PAGE)) - {"chapter"}
    assert len(named) > 8 and named <= titles


def test_its_tables_columns_and_quantities_exist():
    codes = re.findall(r"`([^`]+)`", PAGE)
    quantities = {found[1] for code in codes if (found := OF_SERIES.fullmatch(code))}
    columns = {found.groups() for code in codes if (found := COLUMN.fullmatch(code))} - {
        ("config", "yaml"),
        ("published", "csv"),
        ("series", "csv"),
    }
    assert len(columns) > 60 and quantities <= set(QUANTITIES)
    assert {
        f"{table}.{column}" for table, column in columns if column not in TABLES[table].columns
    } == set()


@pytest.mark.parametrize("seed", LENGTHS)
def test_its_cells_are_in_its_preset(seed):
    files = [ROOT / "config.yaml", ROOT / f"rules/presets/published-{seed}.yaml"]
    config = {}
    for path in files:
        update_config(config, read_yaml(path))
    config = validated(config, ROOT / "rules/config.schema.yaml")
    planned = {
        cell.name.removeprefix("gpu/")
        for study in STUDIES
        for cell in study.cells(config, Hardware("gpu", "cuda", 1))
    }
    named = {cell for row in rows() if row[0] == seed for cell in row[2]}
    assert named and named - planned == set()
