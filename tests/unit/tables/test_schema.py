"""The fields that tables are declared with, against the tables that stand in the repository."""

import csv
import subprocess
import sys
from pathlib import Path

import committed_example
import pytest
from stepscope.measure.series import TRAINING_COLUMNS
from stepscope.snapshot import table_names as snapshot_tables
from stepscope.tables import registry, training
from stepscope.tables.schema import FLAG, NUMBER, TEXT, Group, Table, chosen, number, text
from stepscope.trace import table_names as trace_tables

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = sorted(committed_example.tables().glob("*.csv"))
# How a column's name ends → its unit.
UNITS = {
    "_ms": "ms", "_us": "us", "_bytes": "bytes", "_mhz": "MHz", "_w": "W", "_c": "°C", "_s": "s", "seconds": "s",
    "_tflops": "TFLOP/s", "tokens_per_s": "tokens/s", "gb_per_s": "GB/s", "_share": "share", "_mfu": "share",
    "_ms_per_step": "ms", "_over_steady": "ratio",
}  # fmt: skip


def test_the_committed_tables_are_of_studies():
    assert {path.stem.partition("_")[0] for path in EXAMPLE} <= {*registry.STUDIES, *registry.COLLECTED}
    assert len(EXAMPLE) > 30


@pytest.mark.parametrize("path", EXAMPLE, ids=lambda path: path.stem)
def test_a_committed_table_has_the_declared_columns_in_their_order(path):
    with path.open(newline="", encoding="utf-8") as file:
        header = next(csv.reader(file))
    fields = registry.TABLES[path.stem].fields
    assert header == [each.name for each in fields if each.name in header or not each.is_optional]


@pytest.mark.parametrize("path", EXAMPLE, ids=lambda path: path.stem)
def test_the_values_of_a_committed_table_are_of_the_declared_types(path):
    fields = registry.TABLES[path.stem].by_name
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for name, value in row.items():
                if fields[name].kind == NUMBER and value:
                    float(value)
                if fields[name].kind == FLAG:
                    assert value in ("True", "False", ""), f"{name} is {value}"


@pytest.mark.parametrize("study", registry.STUDIES)
def test_a_studys_tables_are_named_after_it_its_cells_and_samples_first(study):
    names = [table.name for table in registry.STUDIES[study]]
    assert names[:2] == [study, f"{study}_samples"]
    assert registry.more_tables(study) == names[2:]
    assert all(name.startswith(f"{study}_") for name in names[1:])


def test_every_table_of_an_analysis_has_its_columns_after_the_cells_key():
    key = ["cell", "hardware", "size", "context", "precision", "repeat"]
    for name, columns in trace_tables.COLUMNS.items():
        assert registry.TABLES[f"profile_{name}"].columns == [*key, *columns]
    for name, columns in snapshot_tables.COLUMNS.items():
        more = ["formula"] if name in ("largest", "saved") else []
        assert registry.TABLES[f"memory_{name}"].columns == [*key, *columns, *more]


def test_samples_have_the_columns_that_the_programs_write():
    assert training.SAMPLES.names == TRAINING_COLUMNS


@pytest.mark.parametrize("table", registry.TABLES.values(), ids=lambda table: table.name)
def test_every_field_says_what_it_is(table):
    assert table.row
    for each in table.fields:
        assert each.meaning and each.kind in (TEXT, NUMBER, FLAG)
        assert each.kind == NUMBER or not each.unit
        expected = [unit for end, unit in UNITS.items() if f"_{each.name}".endswith(end)]
        if each.kind == NUMBER and expected:
            assert each.unit in expected, f"{each.name} is in {each.unit!r}"


def test_a_group_repeats_its_columns_for_each_of_several_things():
    group = Group("phase", (text("status", "how"), number("ms", "ms", "time")), {"a_": "first", "b_": "second"})
    assert group.names == ["a_status", "a_ms", "b_status", "b_ms"]
    assert group.fields[3] == number("b_ms", "ms", "second: time")


def test_a_column_is_declared_once():
    with pytest.raises(ValueError, match="table t declares a, b more than once"):
        Table("t", "a cell", tuple(text(name, "x") for name in "abcab"))


def test_of_several_vocabularies_the_last_wins():
    first, second = [text("a", "1"), text("b", "1")], [text("b", "2")]
    assert [each.meaning for each in chosen(["b", "a"], first, second)] == ["2", "1"]
    with pytest.raises(KeyError, match="c"):
        chosen(["c"], first)


def test_rules_can_import_it_without_any_package():
    program = "import sys; sys.path[:] = [each for each in sys.path if 'site-packages' not in each]; "
    program += f"sys.path.insert(0, {str(ROOT / 'scripts')!r}); from stepscope.tables import registry"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_page_about_the_tables_is_the_one_that_the_fields_give():
    made = subprocess.run([sys.executable, ROOT / "scripts/describe_tables.py"], check=True, capture_output=True)
    assert made.stdout.decode() == (ROOT / "docs/tables.md").read_text(encoding="utf-8"), (
        "run: python scripts/describe_tables.py > docs/tables.md"
    )
    assert "`memory_largest.csv`" in made.stdout.decode()
