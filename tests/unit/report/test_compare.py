"""Two runs: what is exact is judged, the clock is not."""

import itertools
import re
import shutil
import sys
import zipfile

import compare_runs
import pandas as pd
import pytest
from common import ROOT, one_line, picked
from stepscope.report import compare


@pytest.fixture
def changed(folders, tmp_path):
    """A copy of the GPU's run, in which a quantity of a cell has another value: its folder."""

    def made(cell, quantity, **value):
        folder = shutil.copytree(folders["gpu"], tmp_path / "after/tables")
        frame = pd.read_csv(folder / "series.csv", dtype=str, keep_default_na=False)
        own = (frame["quantity"] == quantity) & (frame["cell"] == cell)
        for column, told in value.items():
            frame.loc[own, column] = str(told)
        frame.to_csv(folder / "series.csv", index=False)
        return folder.parent

    return made


@pytest.fixture
def compared(tmp_path):
    """Two runs beside each other."""
    return lambda before, after, **paired: compare.compared(before, after, paired, tmp_path)


LITTLE, BIG = "gpu-a/timing/little/ctx256/bf16", "gpu-a/timing/big/ctx1024/fp32"


def test_a_run_is_the_same_as_itself(compared, folders):
    found = compared(folders["gpu"], folders["gpu"])
    assert not found.series["worse"] and not found.series["better"]
    assert all(row["before"] == row["after"] for row in found.measured_by)
    assert found.counts["times"].value > 30


@pytest.mark.parametrize("seconds, verdict", [(0.0152, "same"), (0.0158, "more"), (0.0140, "less")])
def test_host_free_times_have_a_margin_of_3_percent(compared, folders, changed, seconds, verdict):
    after = changed(LITTLE, "host_free_time", median=seconds)
    rows = compared(folders["gpu"], after).series.values()
    pairs = {(row["cell"], row["quantity"]): row for row in itertools.chain(*rows)}
    assert pairs[LITTLE, "host_free_time"]["verdict"] == verdict


def test_the_clock_has_no_verdict(compared, folders, changed):
    found = compared(folders["gpu"], changed(BIG, "time", median=9.0))
    assert not found.series["worse"] and found.shown["times"][0]["cell"] == BIG


def test_what_no_longer_fits_is_worse(compared, folders, changed):
    after = changed(BIG, "time", status="oom")
    found = compared(folders["gpu"], after)
    assert set(picked(found.series["worse"], "verdict")) == {"broke"}
    back = compared(after, folders["gpu"])
    assert set(picked(back.series["better"], "verdict")) == {"works"}


def test_machines_of_other_labels_are_paired(compared, folders):
    other = compared(folders["gpu"], folders["cpu"])  # the only one of each
    assert not other.series["worse"] and not other.series["better"]
    assert other.before["alone"] > 100
    assert "machines x=y" in one_line(
        compare.CompareError, compared, folders["gpu"], folders["gpu"], x="y"
    )


def ended(*words):
    """The exit code of the program."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as end:
        patch.setattr(sys, "argv", ["compare_runs.py", *map(str, words)])
        patch.setattr(compare_runs, "show", print)
        compare_runs.main()
    return end.value.code


@pytest.mark.parametrize("worse", [False, True])
def test_the_program_writes_pages_and_says_it_by_its_exit_code(
    folders, changed, tmp_path, capsys, worse
):
    after = changed(LITTLE, "launches", median=3001) if worse else folders["gpu"]
    out = tmp_path / "out"
    assert ended(folders["gpu"], after, "--out", out) == int(worse)
    assert sorted(path.name for path in out.iterdir()) == sorted(compare.FILES)
    assert ("1 worse" in capsys.readouterr().out) is worse
    assert ("## Worse" in (out / "compare.md").read_text()) is worse


def test_nothing_to_compare_is_one_line(tmp_path, capsys):
    assert ended(tmp_path, tmp_path) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1


def test_archives_and_cells_without_tables_are_compared(tmp_path, capsys):
    """The committed example's records, zipped and unzipped: over a hundred series repeat."""
    zipped = {run: ROOT / f"report/example/compare/{run}.zip" for run in ("before", "after")}
    with zipfile.ZipFile(zipped["before"]) as archive:
        archive.extractall(tmp_path / "before")
    assert ended(tmp_path / "before", zipped["after"], "--out", tmp_path / "out") == 0
    said = re.match(r"0 worse, 0 better, (\d+) the same", capsys.readouterr().out)
    assert int(said[1]) > 100
    page = (tmp_path / "out" / "compare.md").read_text()
    assert "12 cells." in page and "| day | 2026-11-2" in page
    text = tmp_path / "none.zip"
    text.write_text("no archive")
    assert ended(text, zipped["after"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
