"""Names of files, kernels and lines that a terminal, a spreadsheet or UTF-8 does not take as they
are."""

import csv
import os
from pathlib import Path

import pandas as pd
import pytest
from common import STRANGERS
from stepscope.recordings.tables import write_tables


def written(folder, *names):
    write_tables({"some": pd.DataFrame({"name": names, "time": -1.5})}, folder)
    with open(folder / "some.csv", encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t"])
def test_a_name_that_a_spreadsheet_would_run_is_quoted(tmp_path, first):
    name = f"{first}cmd|' /C calc'!A0"
    assert written(tmp_path, name, "gemm") == [["'" + name, "-1.5"], ["gemm", "-1.5"]]


def test_names_that_utf_8_does_not_hold(tmp_path):
    assert written(tmp_path, "tr\udcffain.py") == [["tr?ain.py", "-1.5"]]


@pytest.mark.parametrize(
    "program, name",
    [
        ("analyze_nsys.py", "12_list.json"),
        ("analyze_nsys.py", "15_diagnostics.sqlite"),
        ("analyze_snapshot.py", "01_line.pickle"),
    ],
)
def test_files_whose_names_are_no_utf_8(tmp_path, run_script, program, name):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff" + name.encode()))
    path.write_bytes((STRANGERS / name).read_bytes())
    out = tmp_path / "out"
    words = [path, "--out", out, "--html", tmp_path / "page.html"]
    done = run_script(program, *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(out.glob("*.csv")) and (tmp_path / "page.html").stat().st_size > 0
    path.unlink()
    done = run_script(program, *words)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
