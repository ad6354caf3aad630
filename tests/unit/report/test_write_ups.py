"""docs/write-ups.md names cells, chapters, findings, tables and columns; all of them exist."""

import ast
import re
from pathlib import Path

import pytest
from stepscope.config.config import merged, read_yaml, validated
from stepscope.config.studies import CHAPTERS, STUDIES
from stepscope.tables.registry import TABLES

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/write-ups.md").read_text(encoding="utf-8")
PARTS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
SEEDS = {part.partition(":")[0]: part for part in PARTS if part.startswith("published-")}
NAMES = {study.name for study in STUDIES}
PUBLISHED = "published"  # the chapter that sets the write-ups' figures beside ours
# A question is a phrase of its own in the code that answers it, without a full stop.
QUESTION = re.compile(r"(what|which|how|why|when|where|do|does|did|is) [^.{}]+")


def rows(seed):
    """(item, cells, where) of each line of a write-up's table."""
    lines = [line for line in SEEDS[seed].splitlines() if line.startswith("| ")][1:]
    return [tuple(part.strip() for part in line.strip("| ").split(" |")) for line in lines]


def codes(text):
    return re.findall(r"`([^`]+)`", text)


def cells_of(preset):
    config = merged(read_yaml(ROOT / "config.yaml"), read_yaml(ROOT / f"rules/presets/{preset}.yaml"))
    config = validated(config, ROOT / "rules/config.schema.yaml")
    return {cell.name.removeprefix("gpu/") for study in STUDIES for cell in study.cells(config, "cuda", "gpu", 1)}


def questions():
    """Every question that a finding of the report answers."""
    found = set()
    for path in (ROOT / "scripts/stepscope/report").rglob("*.py"):
        values = (node.value for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Constant))
        found |= {value for value in values if isinstance(value, str) and QUESTION.fullmatch(value)}
    return found


ASKED = questions()


@pytest.fixture(scope="module", params=sorted(SEEDS))
def seed(request):
    return request.param


def test_every_write_up_is_there():
    assert sorted(SEEDS) == [path.stem for path in sorted((ROOT / "rules/presets").glob("published-0*.yaml"))]
    assert [len(rows(seed)) for seed in sorted(SEEDS)] == [17, 40, 20, 23, 21]


def test_every_line_has_a_place_or_a_reason(seed):
    for line in rows(seed):
        assert len(line) == 3, line
        item, _, where = line
        places = [*codes(where), *re.findall("“([^”]+)”", where)]
        assert item and (places or where.startswith("not measured: ")), line


def test_its_cells_are_in_its_preset(seed):
    named = {name for _, cells, _ in rows(seed) for name in codes(cells)}
    assert named and named - cells_of(seed) == set()


def test_its_findings_are_asked_in_the_report(seed):
    named = {question for *_, where in rows(seed) for question in re.findall("“([^”]+)”", where)}
    assert named and named - ASKED == set()


def test_its_chapters_tables_and_columns_exist(seed):
    for *_, where in rows(seed):
        chapters = re.findall(r"chapter `([^`]+)`", where)
        assert set(chapters) <= {*CHAPTERS, PUBLISHED}, where
        for name in (name for name in codes(where) if name not in chapters):
            table, _, column = name.partition(".")
            assert column in TABLES[table].by_name, name


def test_other_words_are_no_questions():
    """So that a question that nobody asks fails."""
    assert "what does the profiler cost" in ASKED and "what does the moon cost" not in ASKED
