"""How tables are read: each column with the type that its table declares."""

import math

import pytest
from stepscope.tables.reader import Tables


@pytest.fixture
def read(tmp_path):
    """Writes a table; gives its columns as lists."""

    def one(name, content):
        (tmp_path / f"{name}.csv").write_text(content, encoding="utf-8")
        return Tables(tmp_path, [name.partition("_")[0]])[name].to_dict("list")

    return one


def test_one_name_may_have_another_type_in_another_table(read):
    forced = read("precision_forced", "hardware,value,operation\ngpu,0.5,softmax\n")
    assert forced == {"hardware": ["gpu"], "value": [0.5], "operation": ["softmax"]}
    assert read("profile_checks", "quantity,value\nsteps,5\n") == {"quantity": ["steps"], "value": ["5"]}
    assert read("profile_ranges", "range,operator\na,True\nb,False\n")["operator"] == [True, False]
    assert read("precision_operators", "operator\nmul\n") == {"operator": ["mul"]}
    assert read("timing", "cell,warmup\na,5\n")["warmup"] == [5.0]
    assert read("timing_samples", "cell,warmup\na,True\nb,False\n")["warmup"] == [True, False]


def test_what_is_missing(read):
    table = read("timing", "cell,reason,seed,step_noisy,step_status\na,,,,\nNA,nan,nan,1,ok\n")
    assert table["cell"] == ["a", "NA"] and table["reason"] == [None, "nan"]
    assert all(map(math.isnan, table["seed"]))
    assert table["step_noisy"] == [False, True] and table["step_status"] == [None, "ok"]


def test_columns_and_tables_of_another_version_are_read_by_what_they_hold(read):
    table = read("timing", "cell,new_ms,new_name,new_empty\na,0.5,x,\nb,,1,\n")
    assert table["new_ms"][0] == 0.5 and math.isnan(table["new_ms"][1])
    assert table["new_name"] == ["x", "1"]
    assert all(map(math.isnan, table["new_empty"]))
    assert read("timing_new", "n,words\n1,a\n2,\n") == {"n": [1.0, 2.0], "words": ["a", None]}


def test_only_tables_of_the_studies_that_were_asked_for(tmp_path):
    (tmp_path / "timing.csv").write_text("cell\na\n")
    assert Tables(tmp_path, ["ladder"])["timing"].empty
    assert Tables(tmp_path, ["ladder"])["ladder"].empty


def test_samples_of_a_few_cells(tmp_path):
    text = 'cell,phase,step,warmup,seconds\na,step,0,True,0.5\n"b, c",step,1,False,0.25\nab,step,0,True,1\n'
    (tmp_path / "timing_samples.csv").write_text(text)
    tables = Tables(tmp_path, ["timing"])
    found = tables.samples("timing", ["a", "b, c"], ["cell", "phase", "warmup", "seconds"])
    assert found.to_dict("records") == [
        {"cell": "a", "phase": "step", "warmup": True, "seconds": 0.5},
        {"cell": "b, c", "phase": "step", "warmup": False, "seconds": 0.25},
    ]
    assert list(tables.samples("timing", [], ["cell"]).columns) == ["cell"]
