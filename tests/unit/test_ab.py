"""Two sides in turns: what is said of made-up rounds, and a tiny cell of two worktrees."""

import json
import math
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import ab  # noqa: E402 - a program

NOISE = (0.002, -0.001, -0.002, 0.001, 0.0005, -0.0005, 0.0015, -0.0015)  # logarithms that add up to nothing


def rounds(*ratios, noise=1.0, limits="unknown", host=0.3):
    """Times of a series for each ratio of A and B; the host's speed, which both of a round share, differs by a lot."""
    rows = []
    for number, ratio in enumerate(ratios):
        for at, error in enumerate(NOISE, 1):
            key = {"cell": "timing/x", **dict.fromkeys(ab.SERIES, ""), "phase": f"p{number}", "round": at}
            slow = math.exp(host * math.sin(at))
            rows += [
                key | {"side": "a", "seconds": slow * ratio * math.exp(noise * error), "limits": limits},
                key | {"side": "b", "seconds": slow, "limits": limits},
            ]
    return pd.DataFrame(rows)


def test_the_ratio_is_of_each_round_and_its_interval_students():
    found = ab.compared(rounds(1.05)).iloc[0]
    assert found["ratio"] == pytest.approx(1.05)
    # Deviation of the eight logarithms by hand: sqrt(15e-6 / 7); t of 7 degrees of freedom is 2.365.
    half = 2.3646 * math.sqrt(2 * (4 + 1 + 0.25 + 2.25) * 1e-6 / 7) / math.sqrt(8)
    assert (found["low"], found["high"]) == pytest.approx((1.05 * math.exp(-half), 1.05 * math.exp(half)), rel=1e-5)
    assert (found["rounds"], found["a_s"] / found["b_s"]) == (8, pytest.approx(1.05, rel=0.01))


@pytest.mark.parametrize(
    ("ratio", "noise", "limits", "verdict"),
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


def test_the_page_has_a_row_a_series():
    given = Namespace(a="v1", b="v2", a_python="python", b_python="python", rounds=8)
    lines = ab.markdown(ab.compared(rounds(1.05, 1.0)), given).splitlines()
    assert [line.split(" | ")[-1] for line in lines[-2:]] == ["faster |", "same |"]
    assert "| timing/x | p0 |" in lines[-2] and "| 1.0500 |" in lines[-2]


def test_warm_up_does_not_count(tmp_path):
    (tmp_path / "samples.csv").write_text(
        "process,mode,kind,step,phase,warmup,seconds\n"
        "1,step,free,0,step,True,9\n1,step,free,1,step,False,1\n1,step,free,2,step,False,3\n1,step,free,3,step,False,2\n"
    )
    (tmp_path / "record.json").write_text(json.dumps({"summary": {"variants": {"": {"limited": "gpu"}}}}))
    (row,) = ab.medians(tmp_path).to_dict("records")
    assert (row["seconds"], row["phase"], row["variant"], row["limits"]) == (2.0, "step", "", "gpu")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["main", "worktree"], "give --cells, or --command"),
        (["main", "worktree", "--cells", "x", "--rounds", "5"], "--rounds 5: use an even number from 4"),
        (["main", "worktree", "--cells", "nothing"], "no measured cell has 'nothing' in its path"),
        (["main", "worktree", "--command", "rm -r x"], "rm measures no time; the programs that do are time_step.py"),
        (["nonsense", "worktree", "--command", "time_step.py"], "'nonsense' cannot be checked out"),
        (["worktree", "worktree", "--command", "time_step.py", "--a-python", "/none"], "/none does not run"),
        (["worktree", "worktree", "--command", "time_step.py --contxt 3"], "unrecognized arguments: --contxt 3"),
    ],
)
def test_a_mistake_is_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ab.py", *words])
    with pytest.raises(SystemExit) as end:
        ab.main()
    lines = (end.value.code if isinstance(end.value.code, str) else capsys.readouterr().err).splitlines()
    assert said in lines[-1]


def test_two_worktrees_are_measured_in_turns_and_leave_nothing(tmp_path):
    project = tmp_path / "project"
    shutil.copytree(ROOT / "scripts", project / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "config.yaml", project)
    git = ["git", "-C", project, "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "init", "--quiet", project], check=True)
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "first"], check=True)
    size = "--d-model 16 --d-ff 16 --num-layers 1 --num-heads 2 --vocab-size 16 --context 8 --batch 1"
    command = f"time_step.py {size} --mode inference --warmup 1 --steps 2 --max-seconds 0.01 --device cpu --threads 1"
    words = ["HEAD", "worktree", "--command", command, "--rounds", "4", "--out", "ab"]
    done = subprocess.run(
        [sys.executable, project / "scripts/ab.py", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    order = [line.split(": ")[1][0] for line in done.stdout.splitlines() if line.startswith("round ")]
    assert "".join(order) == "abbaabba"
    found = pd.read_csv(tmp_path / "ab/ab.csv")
    assert set(found["rounds"]) == {4} and (found["low"] <= found["ratio"]).all() and (found["a_s"] > 0).all()
    assert "| B is |" in (tmp_path / "ab/ab.md").read_text()
    assert not list((tmp_path / "ab/.checkouts").iterdir())
    assert len(list((tmp_path / "ab/processes").rglob("record.json"))) == 8
