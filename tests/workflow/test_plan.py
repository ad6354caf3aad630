"""`snakemake plan`: what it says before a run, after it and after edits; that it runs nothing; how a run is judged."""

import csv
import re


def shown(project, *words, **options):
    """What `snakemake plan` prints on its own, without Snakemake's banner."""
    before = project.state_of_cells() if any(project.folder.glob("results/*/timing")) else {}
    run = project.run("plan", *words, **options)
    assert run.code == 0, run.text
    assert "Building DAG" not in run.text
    assert (project.state_of_cells() if before else {}) == before
    return run.text[run.text.index("Preset ") :]


def line(text, name):
    """Heading → number in one line of the table."""
    table = [re.split(r"  +", one.strip()) for one in text.split("\n\n")[1].splitlines()]
    numbers = {one[0]: one[1:] for one in table[1:]}
    return dict(zip(table[0][1:], numbers[name], strict=True))


def test_before_any_run_all_cells_are_missing_and_nothing_is_made(bare_project):
    text = shown(bare_project)
    assert "11 of 11 cells are to be measured" in text
    assert (line(text, "all")["cells"], line(text, "all")["missing"]) == ("11", "11")
    assert (line(text, "timing")["to measure"], line(text, "ceilings")["to measure"]) == ("3", "2")
    assert "100% by FLOP and another machine's rates" in text
    assert not (bare_project.folder / "results").exists()
    assert "Next      snakemake --cores 1 report" in text


def test_after_a_run_all_cells_hold(project):
    text = shown(project)
    assert "all 11 cells hold; nothing is to be measured" in text
    assert line(text, "all")["to measure"] == "–"


def test_it_counts_what_snakemake_would_run_and_says_why(project):
    (project.result(project.COPY) / "record.json").unlink()
    project.edit("scripts/stepscope/model/attention/sdpa.py", "is_causal=is_causal", "is_causal=bool(is_causal)")
    project.configure(lambda config: config["memory"].update(steps={"cpu": 2}))
    planned = project.planned().cells
    assert planned == {project.COPY, project.SDPA, project.MEMORY}
    text = shown(project)
    found = line(text, "all")
    assert [found[name] for name in ("to measure", "failed", "spec", "code")] == ["3", "1", "1", "1"]
    assert "steps is 1 there, 2 now (memory/alpha/ctx8/fp32)" in re.sub(r"\s+", " ", text)
    assert line(text, "timing")["code"] == "1" and line(text, "memory")["spec"] == "1"
    assert "records of the same cells" not in text.partition("Time")[0]
    assert "FLOP" in text.partition("Time")[2]


def test_other_software_is_a_reason_of_its_own(project):
    def older(record):
        record["machine"]["torch"] = "1.0"

    project.edit_json(project.result(project.COPY) / "record.json", older)
    text = shown(project)
    assert line(text, "ceilings")["hardware"] == "1"
    assert "torch is '1.0' there" in text


def test_a_preset_and_a_configuration_count(bare_project):
    text = shown(bare_project, "--config", "threads=2")
    assert text.rstrip().endswith("--config threads=2")
    (bare_project.folder / "rules/presets/tiny.yaml").write_text("precision: {probes: [accumulation, normalisation]}\n")
    text = shown(bare_project, "--config", "preset=tiny")
    assert text.startswith("Preset tiny on ")
    assert line(text, "precision")["cells"] == "2"


def test_it_runs_nothing_beside_other_targets_either(project):
    (project.result(project.COPY) / "record.json").unlink()
    for words in (["report", "--cores", "1"], ["-n"]):
        assert "1 of 11 cells are to be measured" in shown(project, *words)
    assert not (project.result(project.COPY) / "record.json").exists()


def test_a_run_is_held_against_what_was_expected(measured_once):
    lines = (measured_once / "run.txt").read_text().splitlines()
    assert any(re.fullmatch(r"10 of 11 cells, about \d+ s left", one) for one in lines)
    (end,) = [one for one in lines if one.startswith("11 cells took ")]
    assert re.fullmatch(r"11 cells took .*; the plan expected .* \(\d+\.\d\d times that\)", end)
    with (measured_once / "results/tables/estimate.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == 11 and {row["basis"] for row in rows} == {"formula"}
    report = (measured_once / "results/report/report.md").read_text()
    assert re.search(r"\*\*Expected by the plan\*\*: .* for 11 cells, which took ", report)
    assert "What the plan expected" in (measured_once / "results/report/data.html").read_text()


def test_a_second_run_is_expected_to_take_as_long_as_the_first(project):
    project.edit("scripts/stepscope/model/attention/sdpa.py", "is_causal=is_causal", "is_causal=bool(is_causal)")
    text = shown(project)
    assert line(text, "timing")["code"] == "1"
    assert "100% by records of the same cells" in text
    run = project.run("--cores", 1, "report", *project.UNTIL_TABLES)
    assert run.code == 0, run.text
    assert "\n1 cell took " in run.text
    with (project.folder / "results/tables/estimate.csv").open(newline="") as file:
        bases = {row["cell"].partition("/")[2]: row["basis"] for row in csv.DictReader(file)}
    assert bases.pop(project.SDPA) == "same"
    assert len(bases) == 10 and set(bases.values()) == {"formula"}
    assert "all 11 cells hold" in shown(project)
