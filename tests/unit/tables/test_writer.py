"""How tables are written: by their schema, whole or not at all."""

import os

import pytest
from stepscope.tables import writer
from stepscope.tables.cells import CellResult
from stepscope.tables.schema import Table, number, text

CELL, N = text("cell", "which"), number("n", "", "of it")
STUDY = (
    Table("study", "a cell", (CELL, number("x", "", "one"), number("y", "", "another"))),
    Table("study_samples", "a sample", (CELL, N, number("step", "", "its number"), number("seconds", "s", "its time"))),
)


def cell(*lines):
    return CellResult(entry={}, status="measured", samples=("step,seconds", *lines))


def test_tables_have_all_declared_columns_in_their_order_and_every_sample_with_its_key(tmp_path):
    rows = [{"x": 1, "cell": "a"}, {"cell": 'b, "c"', "x": 0.1 + 0.2}, {"cell": "none", "x": None}]
    cells = [cell("0,0.5", "1,0.6"), cell("0,0.7"), cell()]
    writer.write_study(tmp_path / "new", STUDY, rows, cells, [["a", 1], ['b, "c"', 2], ["none", 3]])
    assert (tmp_path / "new/study.csv").read_text() == 'cell,x,y\na,1,\n"b, ""c""",0.30000000000000004,\nnone,,\n'
    assert (tmp_path / "new/study_samples.csv").read_text() == (
        'cell,n,step,seconds\na,1,0,0.5\na,1,1,0.6\n"b, ""c""",2,0,0.7\n'
    )
    assert sorted(os.listdir(tmp_path / "new")) == ["study.csv", "study_samples.csv"]


def test_a_column_that_is_not_declared_is_refused(tmp_path):
    with pytest.raises(ValueError, match="study: no field is declared for z, zz"):
        writer.write_study(tmp_path, STUDY, [{"cell": "a", "z": 1, "zz": None}], [], [])
    assert os.listdir(tmp_path) == []


def test_an_analysis_has_as_many_values_as_its_table_has_columns(tmp_path):
    writer.write_analyses(tmp_path, STUDY[0], [["a"], ["b"], ["c"]], [[["1", "2"]], [], [["3", ""], [4, 5.5]]])
    assert (tmp_path / "study.csv").read_text() == "cell,x,y\na,1,2\nc,3,\nc,4,5.5\n"
    with pytest.raises(ValueError, match="study: 1 values after the key; expected 3 in all"):
        writer.write_analyses(tmp_path, STUDY[0], [["a"]], [[["1"]]])


def test_a_table_that_cannot_be_finished_leaves_the_one_before(tmp_path):
    writer.write_study(tmp_path, STUDY, [{"cell": "old"}], [cell("0,0.5")], [["old", 1]])

    def no_space():
        yield cell("0,0.6")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError):
        writer.write_study(tmp_path, STUDY, [{"cell": "new"}], no_space(), [["new", 1], ["new", 2]])
    assert (tmp_path / "study.csv").read_text() == "cell,x,y\nold,,\n"
    assert (tmp_path / "study_samples.csv").read_text() == "cell,n,step,seconds\nold,1,0,0.5\n"
    assert sorted(os.listdir(tmp_path)) == ["study.csv", "study_samples.csv"]
