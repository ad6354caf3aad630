"""Archives of ours: what goes into one, that the same content gives the same bytes, and that it is read back."""

import json
import os
import subprocess
import sys
import zipfile

import committed_example
import pytest
from stepscope.archive import ArchiveError, labels_of, manifest_of, opened, unpack_label
from stepscope.archive_making import make

CELL = "timing/nano/ctx64/fp32"
PLAIN = {
    *(f"{label}/{CELL}/{name}" for label in ("box", "other") for name in ("record.json", "samples.csv")),
    *(f"box/{CELL}/analysis/kernels.csv", "tables/timing.csv", "report/index.html"),
}


def names(folder):
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def test_what_is_read_back_is_what_was_packed(results, tmp_path):
    make(tmp_path / "mine.zip", results, {"preset": "smoke"})
    with opened(tmp_path / "mine.zip") as folder:
        assert names(folder) == PLAIN
        assert all((folder / name).read_bytes() == (results / name).read_bytes() for name in PLAIN)
        assert json.loads((folder.parent / "configuration.json").read_text()) == {"preset": "smoke"}
        assert labels_of(folder) == ["box", "other"]
    assert not folder.exists()


def test_traces_go_in_if_they_are_asked_for(results, tmp_path):
    make(tmp_path / "mine.zip", results, traces=True)
    with opened(tmp_path / "mine.zip") as folder:
        assert names(folder) - PLAIN == {f"box/{CELL}/trace/trace.json"}


def test_the_same_content_gives_the_same_bytes(results, tmp_path):
    make(tmp_path / "first.zip", results)
    for file in results.rglob("*"):
        os.utime(file, (1, 1))
        file.chmod(0o700)
    make(tmp_path / "second.zip", results)
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()


def test_cells_that_are_in_no_plan_stay_out(results, tmp_path):
    (results / "plan").mkdir()
    cells = [{"cell": f"other/{CELL}"}, {"cell": "other/timing/gone/ctx64/fp32"}]
    (results / "plan/1.json").write_text(json.dumps({"studies": {"timing": {"cells": cells}}}))
    make(tmp_path / "mine.zip", results)
    with opened(tmp_path / "mine.zip") as folder:
        assert labels_of(folder) == ["other"]


def test_the_manifest_counts_cells_by_machine(results, tmp_path):
    make(tmp_path / "mine.zip", results)
    machines = manifest_of(tmp_path / "mine.zip")["machines"]
    assert {label: each["cells"] for label, each in machines.items()} == {"box": 1, "other": 1}


def test_any_unzip_program_reads_it(results, tmp_path):
    make(tmp_path / "mine.zip", results)
    with zipfile.ZipFile(tmp_path / "mine.zip") as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == "manifest.json"


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda folder: (folder / f"box/{CELL}/record.json").write_text("{"), "record.json is damaged"),
        (
            lambda folder: (folder / f"box/{CELL}/samples.csv").write_text("step\n"),
            "mine.zip is not written: results/box",
        ),
        (lambda folder: (folder / f"box/{CELL}/samples.csv").unlink(), "cannot read"),
        (lambda folder: (folder / "tables/a b.csv").write_text(""), "'results/tables/a b.csv' is no name"),
        (lambda folder: folder.rename(folder.with_name("gone")), "holds no cell with a record"),
    ],
)
def test_results_that_are_not_whole_make_no_archive(harm, reason, results, tmp_path):
    harm(results)
    with pytest.raises(ArchiveError) as error:
        make(tmp_path / "mine.zip", results)
    assert reason in str(error.value) and str(error.value).isprintable()
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == []


@pytest.mark.parametrize("inside", ["results", "."])
def test_a_folder_is_given_as_it_is(inside, results):
    with opened(results / ".." if inside == "results" else results) as folder:
        assert folder.resolve() == results


def test_a_path_without_a_file_is_one_line(tmp_path):
    with (
        pytest.raises(ArchiveError, match=r"none\.zip: there is no such folder of results, nor such an archive"),
        opened(tmp_path / "none.zip"),
    ):
        pass


class TestUnpacking:
    @pytest.fixture
    def archive(self, results, tmp_path):
        make(tmp_path / "theirs.zip", results)
        return tmp_path / "theirs.zip"

    def test_a_machines_cells_come_to_its_label_here(self, archive, tmp_path):
        here = tmp_path / "here"
        assert unpack_label(archive, here, "theirs", "other")
        assert names(here) == {"theirs/archive.json", f"theirs/{CELL}/record.json", f"theirs/{CELL}/samples.csv"}
        assert not unpack_label(archive, here, "theirs", "other")

    def test_its_own_name_is_found(self, archive, tmp_path):
        assert unpack_label(archive, tmp_path / "here", "box")
        assert (tmp_path / "here/box" / CELL / "analysis/kernels.csv").is_file()

    def test_one_of_several_has_to_be_named(self, archive, tmp_path):
        with pytest.raises(
            ArchiveError, match="it holds no machine 'theirs', but box, other; name one of them as its machine"
        ):
            unpack_label(archive, tmp_path / "here", "theirs")

    def test_a_label_that_is_taken_is_left_alone(self, archive, results):
        with pytest.raises(ArchiveError, match="results/box is there and was not unpacked from an archive"):
            unpack_label(archive, results, "box")
        assert names(results / "box") >= {f"{CELL}/measure.log"}

    def test_another_archive_replaces_what_was_unpacked(self, archive, results, tmp_path):
        unpack_label(archive, tmp_path / "here", "box")
        (results / f"box/{CELL}/analysis/kernels.csv").unlink()
        make(archive, results)
        assert unpack_label(archive, tmp_path / "here", "box")
        assert not (tmp_path / "here/box" / CELL / "analysis").exists()

    def test_a_refused_one_leaves_what_was_there(self, archive, tmp_path):
        here = tmp_path / "here"
        unpack_label(archive, here, "box")
        before = names(here)
        archive.write_bytes(archive.read_bytes()[:-1])
        with pytest.raises(ArchiveError, match="its end is missing"):
            unpack_label(archive, here, "box")
        assert names(here) == before


def test_the_program_makes_checks_lists_and_unpacks(results, tmp_path, project_root):
    def run(*words):
        program = [sys.executable, str(project_root / "scripts/archive.py"), *map(str, words)]
        done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert run("make", "--out", "mine.zip")[1:] == ["  box: 1 cells", "  other: 1 cells"]
    assert run("check", "mine.zip")[0].startswith("mine.zip: 7 files, 0.0 MB")
    assert {line.split()[-1] for line in run("list", "mine.zip")} == {f"results/{name}" for name in PLAIN}
    assert run("unpack", "mine.zip", "--label", "mine", "--machine", "box")[0] == "results/mine: unpacked"
    assert (results / "mine" / CELL / "record.json").is_file()


def test_the_archive_to_try_it_with_is_whole():
    with opened(committed_example.SITE / "cells.zip") as results:
        records = [json.loads(path.read_bytes()) for path in results.rglob("record.json")]
    assert len(records) == 238
    machines = {(each["machine"]["gpu"], each["machine"]["driver"], each["machine"]["torch"]) for each in records}
    assert machines == {("NVIDIA H200", "580.159.04", "2.11.0+cu130")}
