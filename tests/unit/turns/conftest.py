"""A project of its own whose measuring program takes no time: it writes what a commit's constant says."""

import os
import subprocess

import pytest

# Takes FACTOR times as long as the processes before it leave the machine: one percent more from each to the next.
PROGRAM = """
import hashlib, json, os, pathlib, sys
FACTOR = {factor}
words = sys.argv[1:]
out = pathlib.Path(words[words.index("--out") + 1])
if "--fail" in words:
    sys.exit("error: it does not work")
count = pathlib.Path(os.environ["COUNTER"])
number = int(count.read_text()) if count.exists() else 0
count.write_text(str(number + 1))
seconds = 0.01 * FACTOR * 1.01**number
samples = "process,mode,kind,step,phase,warmup,seconds,sm_clock_mhz\\n"
samples += "1,step,free,0,step,True,9.0,1000\\n"
samples += "".join(f"1,step,free,{{i}},step,False,{{seconds}},1500\\n" for i in (1, 2, 3))
samples += f"1,step,phased,1,forward,False,{{seconds / 2}},1500\\n"
out.mkdir(parents=True, exist_ok=True)
(out / "samples.csv").write_text(samples)
provenance = {{"hardware": {{"cpu": "CPU"}}, "versions": {{"python": "3.12", "torch": "2.13"}}}}
record = {{"machine": {{}}, "provenance": provenance, "code": str(FACTOR)}}
record["words"], record["held"], record["folder"] = words, os.environ["STEPSCOPE_HELD"], os.getcwd()
(out / "record.json").write_text(json.dumps(record))
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A git repository: the commit tagged `old` takes 1 time, `new` 1.02 times, the files as they are 2 times."""
    folder = tmp_path / "project"
    (folder / "scripts").mkdir(parents=True)
    (folder / "config.yaml").write_text("sizes: {}\n")
    monkeypatch.setenv("COUNTER", str(tmp_path / "counter"))
    monkeypatch.setenv("STEPSCOPE_LOCKS", str(tmp_path / "locks"))
    who = {f"GIT_{role}_{key}": "x@y.z" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}

    def git(*words):
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env=os.environ | who)

    git("init", "--quiet")
    for tag, factor in (("old", 1), ("new", 1.02)):
        (folder / "scripts/time_step.py").write_text(PROGRAM.format(factor=factor))
        git("add", ".")
        git("commit", "--quiet", "--message", tag)
        git("tag", tag)
    (folder / "scripts/time_step.py").write_text(PROGRAM.format(factor=2))
    return folder
