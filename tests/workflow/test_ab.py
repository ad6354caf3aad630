"""`snakemake ab`: two sides measured in turns, by a measuring program that takes no time."""

import json
import subprocess

import pytest

# Writes what a step takes by its FACTOR; a percent more for each process before it.
PROGRAM = """
import json, os, pathlib, sys
FACTOR = 1.0
out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
count = pathlib.Path({counter!r})
number = int(count.read_text()) if count.exists() else 0
count.write_text(str(number + 1))
rows = [f"step,free,step,False,{{0.01 * FACTOR * 1.01**number}},\\n"]
out.mkdir(parents=True, exist_ok=True)
(out / "samples.csv").write_text("mode,kind,phase,warmup,seconds,sm_clock_mhz\\n" + "".join(rows))
provenance = {{"hardware": {{"cpu": "CPU"}}, "versions": {{"python": "3.12", "torch": "2.13"}}}}
record = {{"machine": {{}}, "provenance": provenance, "code": str(FACTOR), "words": sys.argv}}
(out / "record.json").write_text(json.dumps(record))
"""


@pytest.fixture
def versions(bare_project, tmp_path):
    """A project in git with a commit `old`; the files as they are take 1.05 times as long."""
    program = bare_project.folder / "scripts/time_step.py"
    program.write_text(PROGRAM.format(counter=str(tmp_path / "counter")))
    for words in (
        ["init", "--quiet"],
        ["add", "scripts", "config.yaml"],
        ["commit", "--quiet", "-m", "old"],
        ["tag", "old"],
    ):
        who = ["-c", "user.name=x", "-c", "user.email=x@y.z"]
        subprocess.run(["git", *who, *words], cwd=bare_project.folder, check=True, capture_output=True)
    bare_project.edit("scripts/time_step.py", "FACTOR = 1.0", "FACTOR = 1.05")
    return bare_project


def test_two_versions_are_measured_in_turns(versions):
    words = (
        "ab",
        "--config",
        "a_commit=old",
        "b_commit=worktree",
        "cells=timing/alpha,timing/beta/ctx8",
        "ab_rounds=4",
    )
    run = versions.run("--cores", 1, *words)
    assert run.code == 0, run.text
    table = [line for line in run.text.splitlines() if line.endswith("B is slower")]
    assert len(table) == 2 and all("+5.00" in line for line in table)
    (page,) = versions.folder.glob("results/ab/*-worktree-*/index.html")
    assert "B is slower" in page.read_text()
    record = json.loads((page.parent / "processes/04/b/001/record.json").read_bytes())
    assert "--d-model 32" in " ".join(record["words"]) and record["code"] == "1.05"
    assert not list(versions.folder.glob("results/*/timing"))
    assert "Nothing to be done" in versions.run("-n", *words).text
    versions.edit("scripts/time_step.py", "FACTOR = 1.05", "FACTOR = 1.1")
    assert "measure_ab" in versions.run("-n", *words).text
    assert versions.run("-n", "ab", "--config", "a_commit=none", "b_commit=old", "cells=timing").complaint.startswith(
        "config key a_commit: there is no commit 'none' in "
    )
