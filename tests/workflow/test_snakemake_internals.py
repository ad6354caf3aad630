"""What is used of Snakemake beside its documentation: a version that changes it fails here, by the function's name."""

import dataclasses
import json

import pytest

# Each function's answer goes to said.json by its name, and so does what it raised, so that each fails by itself.
SNAKEFILE = """
import json, sys
from pathlib import Path
sys.path.insert(0, {scripts!r})
from stepscope.config import snakemake_internals as internals, time_left

said = {{}}

def ask(name, *words):
    try:
        answer = getattr(internals, name)(workflow, *words)
        said[name] = sorted(answer) if isinstance(answer, set) else answer
    except Exception as error:
        said[name] = f"raised {{error!r}}"
    Path("said.json").write_text(json.dumps(said, default=str))

for name in ("given_config", "given_files", "given_values", "uses_conda", "is_main_process"):
    ask(name)
ask("is_asked_for", "all")
ask("jobs_at_once", "gpu", 8)

def outdated(wildcards):
    if wildcards.cell == "second" and Path("second.json").exists():
        ask("measure_again", "second.json")
    return []

rule all:
    input: "first.json", "second.json"

rule cell:
    input: outdated
    output: record="{{cell}}.json"
    log: "results/{{cell}}/measure.log"
    shell: "echo made >> {{output.record}}"

onstart:
    for name in ("runs_jobs_here", "only_touches", "executor_settings"):
        ask(name)
    ask("to_measure", {{"cell"}})
    ask("has_rule", "all")
    left = time_left.TimeLeft({{"first": 3.6e6, "second": 3.6e6}}, 1)
    internals.follow(internals.Progress({{"cell"}}, total=9, done=4, left=left))
"""


@pytest.fixture
def small(bare_project, tmp_path):
    """Runs a small workflow of two cells with these words; what the functions said, and what was printed."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "Snakefile").write_text(SNAKEFILE.format(scripts=str(bare_project.folder / "scripts")))

    def run(*words):
        shown = bare_project.run("--cores", 1, *words, cwd=folder)
        assert shown.code == 0, shown.text
        return json.loads((folder / "said.json").read_text()), shown.text

    return run


def test_what_a_run_was_given_and_how_it_runs(small, tmp_path):
    (tmp_path / "small/mine.yaml").write_text("model: {seed: 3}\n")
    said, _ = small("all", "--configfile", "mine.yaml", "--config", "threads=2")
    assert said["given_config"] == {"model": {"seed": 3}, "threads": 2}
    assert [path.rpartition("/")[2] for path in said["given_files"]] == ["mine.yaml"]
    assert said["given_values"] == {"threads": 2}
    assert said["uses_conda"] is False
    assert said["is_main_process"] is True
    assert said["is_asked_for"] is True
    assert said["jobs_at_once"] == 1  # --cores 1
    assert said["runs_jobs_here"] is True
    assert said["only_touches"] is False
    assert not said["executor_settings"].startswith("raised")


def test_how_many_jobs_run_together(small):
    for words, expected in ((["--cores", 4, "--resources", "gpu=2"], 2), (["--cores", 4], 4), (["--cores", 16], 8)):
        said, _ = small(*words, "--", "first.json")
        assert said["jobs_at_once"] == expected
        assert said["is_asked_for"] is False  # of another target


def test_the_plugin_for_slurm_has_the_settings_that_are_looked_at():
    plugin = pytest.importorskip("snakemake_executor_plugin_slurm")
    names = {field.name for field in dataclasses.fields(plugin.ExecutorSettings)}
    assert {"status_command", "init_seconds_before_status_checks"} <= names


def test_conda_and_touching_are_seen(small):
    small("all")
    said, _ = small("all", "--touch", "--forceall", "--software-deployment-method", "conda")
    assert said["uses_conda"] is True
    assert said["only_touches"] is True


def test_a_cell_is_measured_again_and_counted(small):
    said, text = small("all")
    assert said["to_measure"] == ["first.json", "second.json"]
    assert said["has_rule"] is True
    told = [line for line in text.splitlines() if " of 9 cells" in line]
    # The first took next to nothing of its 1,000 hours; the plan weighs as much as one more: half of the second's.
    assert told == ["5 of 9 cells, about 500 h 00 min left", "6 of 9 cells"]
    said, text = small("all")
    assert said["measure_again"] is None
    assert said["to_measure"] == ["second.json"]
    assert "5 of 9 cells" in text


KILLED = """
import sys
sys.path.insert(0, {scripts!r})
from stepscope.config import snakemake_internals as internals, time_left

SPEC = config.get("spec", "one")
print("was killed:", internals.was_killed(workflow))

def taken_over(wildcards):
    cut = internals.in_the_making(workflow, ["cell.json", "folder", "never.json"])
    print("cut:", sorted(cut))
    if cut:
        internals.note_as_made(workflow, "cell", ["cell.json", "folder"], [SPEC, "code"])
    return []

rule cell:
    input: taken_over
    output: "cell.json", directory("folder")
    params: SPEC, "code"
    shell: "mkdir folder; echo made >> cell.json; kill -9 $PPID"
"""


def test_what_a_killed_run_had_made_is_noted_as_made_with_its_params(bare_project, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "Snakefile").write_text(KILLED.format(scripts=str(bare_project.folder / "scripts")))
    words = ("--cores", 1, "--nolock", "--rerun-incomplete", "cell")
    killed = bare_project.run(*words, cwd=folder)
    assert killed.code == -9
    assert ("was killed: False" in killed.text, "cut: []" in killed.text) == (True, True)

    again = bare_project.run(*words, cwd=folder)
    assert again.code == 0, again.text
    assert "was killed: True" in again.text
    assert "cut: ['cell.json', 'folder']" in again.text
    assert "Nothing to be done" in again.text
    noted = bare_project.run("-n", *words, cwd=folder)
    assert ("was killed: False" in noted.text, "Nothing to be done" in noted.text) == (True, True)
    changed = bare_project.run("-n", *words, "--config", "spec=two", cwd=folder)
    assert "Params have changed" in changed.text
