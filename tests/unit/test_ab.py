"""Two sides in turns: what is said of made-up rounds, and what takes turns with what."""

import json
import math
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import ab
import pandas as pd
import pytest
from common import one_line
from pytest import approx

# Logarithms that add up to nothing.
NOISE = (0.002, -0.001, -0.002, 0.001, 0.0005, -0.0005, 0.0015, -0.0015)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """A working directory of a test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ab, "die_with_parent", lambda: None)


def rounds(*ratios, noise=1.0, limits="unknown"):
    """Times of a series for each ratio of A and B; the host's speed, which both of a round share,
    differs by a lot."""
    rows = []
    for number, ratio in enumerate(ratios):
        for at, error in enumerate(NOISE, 1):
            slow = math.exp(0.3 * math.sin(at))
            for side, seconds in (("a", slow * ratio * math.exp(noise * error)), ("b", slow)):
                rows.append({"phase": f"p{number}", "round": at, "side": side, "seconds": seconds})
    same = dict.fromkeys(ab.SERIES, "") | {"cell": "timing/x", "limits": limits}
    own = pd.DataFrame(rows)
    return own.assign(**{name: value for name, value in same.items() if name not in own})


def test_the_ratio_is_of_each_round_and_its_interval_students():
    found = ab.compared(rounds(1.05)).iloc[0]
    assert found["ratio"] == approx(1.05)
    # Deviation of the eight logarithms by hand: sqrt(15e-6 / 7); t of 7 degrees of freedom is
    # 2.365.
    half = 2.3646 * math.sqrt(2 * (4 + 1 + 0.25 + 2.25) * 1e-6 / 7) / math.sqrt(8)
    ends = [1.05 * math.exp(-half), 1.05 * math.exp(half)]
    assert found[["low", "high"]].tolist() == approx(ends, rel=1e-5)
    assert (found["rounds"], found["a_s"] / found["b_s"]) == (8, approx(1.05, rel=0.01))


@pytest.mark.parametrize(
    "ratio, noise, limits, verdict",
    [
        (1.05, 1, "unknown", "faster"),
        (0.95, 1, "unknown", "slower"),
        (1.0, 1, "unknown", "same"),
        (1.05, 30, "unknown", "unclear"),
        (1.015, 1, "unknown", "same"),  # within 2 %
        (1.015, 1, "gpu", "faster"),  # beyond 1 %
        (1.015, 5, "unknown", "unclear"),
    ],
)
def test_the_verdict_is_of_b_beyond_a_margin(ratio, noise, limits, verdict):
    assert ab.compared(rounds(ratio, noise=noise, limits=limits)).iloc[0]["verdict"] == verdict


def test_a_series_of_one_side_alone_is_left_out_and_the_order_kept():
    times = rounds(1.0, 1.1, 0.9)
    times = times[~((times["phase"] == "p1") & (times["side"] == "a"))]
    assert list(ab.compared(times)["phase"]) == ["p0", "p2"]


def test_warm_up_does_not_count(tmp_path):
    samples = "process,mode,kind,step,phase,warmup,seconds\n1,step,free,0,step,True,9\n"
    for step, seconds in enumerate((1, 3, 2), 1):
        samples += f"1,step,free,{step},step,False,{seconds}\n"
    samples += f"1,step,host-free,,step,False,{2.0 / 1.14}\n"
    (tmp_path / "samples.csv").write_text(samples)
    record = {"spec": {"study": "timing", "device": "cuda"}}
    (tmp_path / "record.json").write_text(json.dumps(record))
    row, _ = ab.medians(tmp_path).to_dict("records")
    assert (row["seconds"], row["phase"], row["variant"], row["limits"]) == (2.0, "step", "", "gpu")


@pytest.mark.parametrize(
    "said, words",
    {
        "give --cells, or --command": "main worktree",
        "--rounds 5: use an even number from 4": "main worktree --cells x --rounds 5",
        "no measured cell has 'nothing' in its path": "main worktree --cells nothing",
        "rm measures no time; the programs": "main worktree --command 'rm -r x'",
        "'nonsense' cannot be checked out": "nonsense worktree --command time_step.py",
        "/none does not run": "worktree worktree --command time_step.py --a-python /none",
        "arguments: --contxt 3": "worktree worktree --command 'time_step.py --contxt 3'",
    }.items(),
)
def test_a_mistake_is_one_line(words, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ab.py", *shlex.split(words)])
    with pytest.raises(SystemExit) as end:
        ab.main()
    told = end.value.code if isinstance(end.value.code, str) else capsys.readouterr().err
    assert said in told.splitlines()[-1]


def test_a_commit_and_what_is_not_committed_take_turns(tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / "scripts").mkdir(parents=True)
    shutil.copy2(Path(__file__).with_name("made_up_program.py"), project / "scripts/time_step.py")
    seconds = project / "scripts/seconds"
    seconds.write_text("0.100")
    git = ["git", "-C", project, "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "init", "--quiet", project], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "first"], check=True)
    seconds.write_text("0.105")  # 5 % slower
    monkeypatch.setattr(ab, "PROJECT", project)
    words = ["HEAD", "worktree", "--command", "time_step.py --size x", "--out", "ab"]
    monkeypatch.setattr(sys, "argv", ["ab.py", *words])
    ab.main()
    (row,) = pd.read_csv("ab/ab.csv").to_dict("records")
    # "unknown" without a time alone
    place = {"cell": "time_step.py --size x", "phase": "step", "rounds": 8, "limits": "unknown"}
    assert place.items() <= row.items()
    # the median of steps 1 to 3
    assert [row["a_s"], row["b_s"]] == approx([0.1 * 1.0004, 0.105 * 1.0004])
    assert (row["ratio"], row["verdict"]) == (approx(1 / 1.05), "slower")
    records = sorted(Path("ab/processes").rglob("record.json"))
    assert len(records) == 16
    assert json.loads(records[0].read_text())["words"][:4] == ["--size", "x", "--processes", "1"]
    assert not list(Path("ab/.checkouts").iterdir())
    shown = subprocess.run([*git, "worktree", "list"], capture_output=True, check=True).stdout
    assert shown.count(b"\n") == 1


def test_cells_are_found_by_parts_of_their_paths(tmp_path):
    for name, command in (
        ("timing/small", "time_step.py --a 1"),
        ("memory/small", "snapshot_memory.py"),
        ("timing/large", "time_step.py --a '[2]'"),
    ):
        folder = tmp_path / "gpu" / name
        folder.mkdir(parents=True)
        record = {"provenance": {"command": f"python scripts/{command}"}}
        (folder / "record.json").write_text(json.dumps(record))
    for part, cell, value in (("small", "small", "1"), ("timing/large", "large", "[2]")):
        command = ["scripts/time_step.py", "--a", value]
        assert ab.measured([part], tmp_path) == {f"gpu/timing/{cell}": command}
    assert "of memory no cell is of time_step" in one_line(
        SystemExit, ab.measured, ["memory"], tmp_path
    )
