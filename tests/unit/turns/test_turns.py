"""Two sides in turns: what is measured, in which order, and what is refused in one line."""

import csv
import json
import sys

import pytest
from stepscope.machine import locks
from stepscope.turns import TurnsError, cells, sides
from stepscope.turns.measuring import measure, order, progress

CPU = "time_step.py --context 8 --device cpu"
PLAN = {
    "studies": {
        "timing": {
            "cells": [
                {
                    "cell": f"box/timing/{size}/ctx8/fp32",
                    "spec": {"study": "timing", "processes": 3, "context": 8, "device": "cpu"},
                    "command": "python scripts/time_step.py --context 8",
                }
                for size in ("small", "smaller")
            ]
        },
        "memory": {"cells": [{"cell": "box/memory/small/ctx8/fp32", "spec": {"device": "cpu"}, "command": ""}]},
    }
}


@pytest.fixture
def side(fake, tmp_path):
    """A function that checks out a side of the project and returns it."""

    def made(name, given):
        commit = sides.commit_of(fake, given)
        sides.checked_out(fake, commit, tmp_path / "sides" / name)
        return sides.Side(name, given, commit, sys.executable, tmp_path / "sides" / name)

    return made


def test_each_second_round_turns_the_order_round(side):
    both = [side("a", "old"), side("b", "new")]
    assert ["".join(each.name for each in order(both, number)) for number in (1, 2, 3)] == ["ab", "ba", "ab"]


def test_the_time_left_is_that_of_the_rounds_so_far():
    assert progress(2, 8, 120) == "2 of 8 rounds, about 6 min left"  # a minute a round
    assert progress(8, 8, 120) == "8 of 8 rounds"


def test_every_round_measures_each_cell_by_one_process_of_either_side(side, tmp_path):
    said, told = [], []
    both = [side("a", "old"), side("b", "worktree")]
    turns = cells.chosen([CPU], None)
    rows, seen = measure(both, turns, 2, tmp_path / "out", 1, said.append, told.append)
    assert [text.partition(",")[0] for text in told] == ["1 of 2 rounds", "2 of 2 rounds"]
    steps = [row for row in rows if row["phase"] == "step"]
    assert [(row["round"], row["position"], row["side"]) for row in steps] == [
        *((1, 1, "a"), (1, 2, "b"), (2, 1, "b"), (2, 2, "a"))
    ]
    # 10 ms, 2 times that for the files as they are, and one percent more from each process to the next
    assert [row["seconds"] for row in steps] == pytest.approx([0.01, 0.0202, 0.020402, 0.01030301])
    assert {(row["steps"], row["sm_clock_mhz"]) for row in steps} == {(3, 1500)}
    assert [row["seconds"] for row in rows if row["kind"] == "phased"] == pytest.approx(
        [row["seconds"] / 2 for row in steps]
    )
    assert [seen[name]["code"][turns[0].name] for name in "ab"] == ["1", "2"]
    assert said == [f"round {n} of 2: {name}, {turns[0].name}" for n, name in ((1, "a"), (1, "b"), (2, "b"), (2, "a"))]


def test_a_process_runs_in_its_side_alone_under_this_programs_lock(side, tmp_path):
    measure([side("a", "old"), side("b", "new")], cells.chosen([CPU], None), 1, tmp_path / "out", 7, lambda text: None)
    records = {name: json.loads((tmp_path / f"out/processes/01/{name}/001/record.json").read_bytes()) for name in "ab"}
    for name, record in records.items():
        assert record["folder"] == str(tmp_path / "sides" / name) and record["held"] == "cpu"
        words = " ".join(record["words"])
        assert "--context 8" in words and "--processes 1" in words and "--time-limit 7" in words
    assert (locks.lock_folder() / "cpu.lock").is_file()
    assert not (tmp_path / "sides/a/locks").exists()


def test_a_side_that_fails_ends_it_with_its_last_line(side, tmp_path):
    both = [side("a", "old"), side("b", "new")]
    with pytest.raises(
        TurnsError, match=r"a \(old\) cannot measure time_step.py .*: error: it does not work; its log is"
    ):
        measure(both, cells.chosen([f"{CPU} --fail"], None), 1, tmp_path / "out", 1, lambda text: None)


def test_a_commit_without_the_program_is_named(side, tmp_path):
    turns = cells.chosen(["time_attention.py --device cpu"], None)
    with pytest.raises(TurnsError, match=r"b \(new\) has no scripts/time_attention.py; choose a later commit"):
        measure([side("b", "new")], turns, 1, tmp_path / "out", 1, lambda text: None)


def test_a_commit_is_copied_as_it_was_and_the_files_as_they_are(side):
    factors = {
        given: (side(name, given).folder / "scripts/time_step.py").read_text().split("FACTOR = ")[1].split()[0]
        for name, given in zip("abc", ("old", "new", "worktree"), strict=True)
    }
    assert factors == {"old": "1", "new": "1.02", "worktree": "2"}


@pytest.mark.parametrize("given", ["nothing", "--help", "-h", "", "old:scripts", "a\nb", "old;id"])
def test_what_is_no_commit_is_one_line(given, fake):
    with pytest.raises(TurnsError, match="commit") as error:
        sides.commit_of(fake, given)
    assert str(error.value).isprintable()


def test_a_folder_outside_git_has_no_commits(tmp_path):
    with pytest.raises(TurnsError, match="there is no commit 'HEAD' in"):
        sides.commit_of(tmp_path, "HEAD")


@pytest.mark.parametrize("path", ["/none/python", "/bin/false"])
def test_a_python_that_does_not_run_is_one_line(path):
    with pytest.raises(TurnsError, match=f"^{path} "):
        sides.checked_python(path)


class TestCells:
    def test_a_part_of_a_path_means_the_cells_below_it(self):
        assert [turn.name for turn in cells.chosen(["timing/small"], PLAN)] == ["box/timing/small/ctx8/fp32"]
        assert len(cells.chosen(["timing"], PLAN)) == len(cells.chosen([], PLAN)) == 2

    def test_a_cell_is_measured_by_its_spec_with_one_process(self):
        (turn,) = cells.chosen(["results/box/timing/small"], PLAN)
        assert turn.program == "time_step" and turn.device == "cpu"
        assert turn.words == ("--processes", "1", "--context", "8", "--device", "cpu")

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            (["large"], "'large' is part of no cell's path; cells are like timing/small/ctx8/fp32"),
            (["memory"], "box/memory/small/ctx8/fp32 is measured by one process that cannot be repeated"),
            (
                ["profile_step.py --size nano"],
                "profile_step.py measures no time; the programs that do are time_step.py",
            ),
            (["time_step.py --processes 3"], "leave out --processes"),
            (["time_step.py --out=x"], "leave out --out"),
            (["time_step.py 'x"], "is no command"),
        ],
    )
    def test_what_cannot_be_measured_is_one_line(self, given, reason):
        with pytest.raises(TurnsError) as error:
            cells.chosen(given, PLAN)
        assert reason in str(error.value) and str(error.value).isprintable()

    def test_a_name_needs_a_plan(self):
        with pytest.raises(TurnsError, match="a cell's name needs --plan"):
            cells.chosen(["timing/small"], None)

    def test_a_file_that_is_no_plan_is_one_line(self, tmp_path):
        (tmp_path / "plan.json").write_text("[]")
        with pytest.raises(TurnsError, match=r"plan.json is no plan of the workflow"):
            cells.read_plan(tmp_path / "plan.json")


def test_samples_are_read_by_series_without_warm_up(tmp_path):
    from stepscope.turns.measuring import medians

    path = tmp_path / "samples.csv"
    with path.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["process", "length", "phase", "step", "warmup", "seconds"])
        table.writerows([1, 64, "forward", i, i == 0, seconds] for i, seconds in enumerate((9, 1, 2, 6)))
        table.writerow([1, 128, "forward", 0, False, 5])
    found = list(medians(path))
    assert [(each["length"], each["seconds"], each["steps"], each["sm_clock_mhz"]) for each in found] == [
        ("64", 2.0, 3, None),
        ("128", 5.0, 1, None),
    ]
