"""The run's control: a cell that is measured once more, at another time."""

import csv
import json
import math


def test_a_control_is_planned_measured_and_shown(project):
    """Of one cell of two processes. What the report shows is worked out from the records."""
    cell = {"size": ["beta"], "context": [8], "precision": ["fp32"]}
    again = f"{project.BETA}/repeat=2"
    project.configure(
        lambda config: config["timing"].update(processes={"cpu": 2}, grid={"cpu": [cell]}, control={"cpu": [cell]})
    )
    assert project.planned().cells == {project.BETA, again}  # the first because of its processes

    made = project.run("--cores", 1, "report", *project.UNTIL_TABLES)
    assert made.code == 0, made.text
    folders = ("--tables", "results/tables", "--figures", "results/figures", "--templates", "report")
    shown = project.python("scripts/write_report.py", "--study", "timing", *folders, "--out", "shown")
    assert shown.code == 0, shown.text
    records = [json.loads((project.result(name) / "record.json").read_text()) for name in (project.BETA, again)]
    assert [record["spec"].get("repeat", 1) for record in records] == [1, 2]
    rows = csv.DictReader((project.folder / "shown/tables/control.csv").read_text().splitlines())
    names = ("median: first (ms)", "median: again (ms)")
    (medians,) = [
        tuple(row[name] for name in names) for row in rows if row["size"] == "beta" and row["phase"] == "step"
    ]
    assert medians == tuple(four_digits(step_ms(record)) for record in records)


def step_ms(record):
    """The step of a record: the geometric mean of its two processes' medians, in ms."""
    (step,) = [each for each in record["summary"]["phases"] if each["phase"] == "step"]
    first, second = (process["median"] for process in step["processes"])
    return 1000 * math.sqrt(first * second)


def four_digits(value):
    return f"{value:.{3 - math.floor(math.log10(value))}f}"
