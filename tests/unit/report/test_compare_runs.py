"""Two results folders beside each other: what belongs together, what may be said of it, and what the pages say."""

import csv
import dataclasses
import hashlib
import io
import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))

import made_up_runs
from made_up_runs import LABEL, Point, grid, results
from stepscope.report.kit.compare import LEAST_MARGIN
from stepscope.report.runs import changes, page, recorded, tables, words
from stepscope.report.runs.judging import common_cells, compared, machines
from stepscope.report.runs.reading import Results, ResultsError, read
from stepscope.report.runs.series import in_words
from stepscope.report.runs.shift import shifts
from stepscope.tables.cells import CellResult

ROOT = Path(__file__).resolve().parents[3]
QUIET = {limit: made_up_runs.Spreads(0.001, 0.0005, 0.0) for limit in made_up_runs.KNOWN}
SMALL = list(grid(sizes=("small", "medium", "xl"), contexts=(128, 512)))


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Runs whose spreads are so small that what is planted decides."""
    monkeypatch.setattr(made_up_runs, "KNOWN", QUIET)
    monkeypatch.setattr(made_up_runs, "HOST", 0.0)


def run(seed, change=lambda point, phase: 1.0, clock=1.0, **machine) -> Results:
    return results(seed, change, SMALL, clock, **machine)


def relabelled(found: Results, label: str) -> Results:
    """The same on a machine of another name."""
    records = {f"{label}/{cell.partition('/')[2]}": record for cell, record in found.records.items()}
    rows = {
        study: [row | {"hardware": label, "cell": f"{label}/{row['cell'].partition('/')[2]}"} for row in own]
        for study, own in found.rows.items()
    }
    return dataclasses.replace(found, records=records, rows=rows)


def with_records(found: Results, edit) -> Results:
    """The same with every record changed by a function."""
    records = {cell: json.loads(json.dumps(record)) for cell, record in found.records.items()}
    for cell, record in records.items():
        edit(cell, record)
    return dataclasses.replace(found, records=records)


def verdicts(found) -> set[tuple[str, str]]:
    return {(pair.verdict, pair.why) for pair in found.pairs}


def backward_of_xl(point: Point, phase: str) -> float:
    return 1.10 if (point.size, phase) == ("xl", "backward") else 1.0


def test_what_is_planted_is_slower_and_nothing_else():
    found = compared(run(1), run(2, backward_of_xl))
    planted = {
        f"{LABEL}/timing/xl/ctx{context}/{precision}" for context in (128, 512) for precision in ("fp32", "bf16")
    }
    assert {(pair.place.cell, pair.place.what) for pair in found.of("slower")} == {
        (each, "backward") for each in planted
    }
    assert found.of("faster") == []
    (low, high) = next(pair.ends for pair in found.of("slower"))
    assert low < 1.10 < high
    assert found.exit_code() == 1
    assert tables.worst(found).caption.endswith("takes longest.")
    back = compared(run(2, backward_of_xl), run(1))
    assert len(back.of("faster")) == 4 and back.of("slower") == [] and back.exit_code() == 0


def test_unchanged_runs_are_the_same_and_strict_asks_for_that():
    found = compared(run(1), run(2))
    assert verdicts(found) == {("same", "")}
    assert (found.exit_code(), found.exit_code(strict=True)) == (0, 0)
    single = run(2)
    for row in single.rows["timing"]:
        row["step_processes"] = 1
    found = compared(run(1), single)
    assert {(pair.verdict, pair.why) for pair in found.pairs if pair.place.what == "step"} == {
        ("unclear", "single process")
    }
    assert (found.exit_code(), found.exit_code(strict=True)) == (0, 3)


def test_a_shift_of_everything_is_named_and_one_of_the_clock_is_told_from_it():
    found = compared(run(1), run(2, lambda point, phase: 1.08))
    (shift,) = shifts(found.pairs)
    assert shift.factor == pytest.approx(1.08, rel=0.005) and shift.clocks is None
    assert "which points to one cause" in words.shift(shift)
    assert {pair.verdict for pair in found.pairs if pair.limited_by == "gpu"} == {"slower"}
    found = compared(run(1), run(2, clock=0.92))
    gpu = [pair for pair in found.pairs if pair.limited_by == "gpu"]
    assert {(pair.verdict, pair.why) for pair in gpu} == {("not comparable", "other clock")}
    assert [pair.cycles for pair in gpu] == pytest.approx([1.0] * len(gpu), rel=0.01)
    (shift,) = shifts(found.pairs)
    assert (shift.what, shift.clocks) == ("gpu", (1980.0, pytest.approx(1821.6)))
    assert "1,980 MHz before and 1,822 MHz now" in words.shift(shift)
    assert shifts(compared(run(1), run(2, backward_of_xl)).pairs) == []


def test_a_slowdown_at_another_clock_is_one_in_cycles_too():
    found = compared(run(1), run(2, lambda point, phase: 1.2, clock=0.95))
    assert {pair.verdict for pair in found.pairs if pair.limited_by == "gpu"} == {"slower"}


def test_what_launches_limit_is_not_comparable_on_another_host():
    slow = run(2)
    for row in slow.rows["timing"]:
        row["host_python_ms"] *= 1.2
    found = compared(run(1), slow)
    for pair in found.pairs:
        expected = ("not comparable", "other host") if pair.limited_by == "launches" else ("same", "")
        assert (pair.verdict, pair.why) == expected


def test_launches_that_take_longer_on_the_same_host_are_a_slowdown():
    def change(point, phase):
        return 1.3 if point.size == "small" else 1.0

    slower = run(2, change)
    for row in slower.rows["timing"]:
        row["host_launches_ms"] *= 1.3
    found = compared(run(1), slower)
    assert {pair.verdict for pair in found.pairs if pair.limited_by == "launches"} == {"slower"}


def test_a_cell_of_another_spec_is_not_comparable_and_one_measured_more_often_is():
    def edit(cell, record):
        record["spec"] |= {"batch": 8} if "/xl/" in cell else {"steps": 50}

    found = compared(run(1), with_records(run(2), edit))
    assert {pair.why for pair in found.pairs if "/xl/" in pair.place.cell} == {"other spec: batch 4 → 8"}
    assert {pair.verdict for pair in found.pairs if "/xl/" not in pair.place.cell} == {"same"}
    told = changes.changes(found.before, found.after, common_cells(found.before, found.after, found.machines))
    assert [(each.fact, each.before, each.after) for each in told] == [("configuration: steps", "3", "50")]


def test_a_cell_that_does_not_fit_any_more_is_worse_and_one_with_another_batch_is_not():
    gone = run(2)
    row = next(row for row in gone.rows["timing"] if "/xl/" in row["cell"])
    row |= {"step_status": "oom", "step_median_ms": None}
    for each in (gone, run(1)):
        for one in each.rows["timing"]:
            one.setdefault("step_status", "ok")
    found = compared(run(1), gone)
    assert [(each.place.what, each.before, each.after) for each in found.lost] == [("step", "ok", "oom")]
    assert found.exit_code() == 1
    assert any("Out of memory now" in each and "timing/xl/" in each for each in words.summary(found, []))
    larger = with_records(gone, lambda cell, record: record["spec"].update(batch=64))
    assert compared(run(1), larger).lost == []


def test_the_control_fires_and_takes_every_verdict_back():
    def change(point, phase):
        is_again = point.repeat == 2 and (point.size, point.precision) == ("medium", "fp32")
        return 1.3 if is_again else backward_of_xl(point, phase)

    found = compared(run(1), run(2, change))
    (fired,) = found.alarms.values()
    assert {(alarm.pair.run, alarm.pair.cells[1]) for alarm in fired} == {
        ("results", f"{LABEL}/timing/medium/ctx512/fp32/repeat=2")
    }
    assert verdicts(found) == {("unclear", "the control fired")}
    assert found.exit_code(strict=True) == 3
    assert tables.worst(found).caption.endswith("takes longest; none of them is called slower.")
    told = words.summary(found, [])
    assert "The control fired in the results: 1 cell that did not change within a run" in " ".join(told)


def test_a_control_of_one_point_does_not_judge_itself():
    points = [each for each in SMALL if each.repeat == 1 or (each.size, each.precision) == ("medium", "fp32")]
    alone = [each for each in points if each.repeat == 1]

    def change(point, phase):
        return 1.3 if point.repeat == 2 else 1.0

    found = compared(results(1, points=alone), results(2, change, points))
    assert not any(found.alarms.values())
    gpu = [pair for pair in found.pairs if pair.limited_by == "gpu"]
    assert {pair.verdict for pair in gpu} == {"unclear"}  # 30 % is the floor now, more than what can be called the same
    assert {pair.comparison.margin for pair in gpu} != {math.exp(LEAST_MARGIN)}


def test_machines_belong_together_by_label_or_as_the_only_ones_or_as_they_are_told():
    one, other = run(1), relabelled(run(2), "renamed")
    (found,) = machines(one, other, {})
    assert (found.before, found.after, found.same_type) == (LABEL, "renamed", True)
    assert verdicts(compared(one, other)) == {("same", "")}
    both = dataclasses.replace(one, records=one.records | relabelled(one, "second").records)
    with pytest.raises(
        ResultsError, match="no machine has one label in both: run 1 has made-up, second; run 2 has ren"
    ):
        machines(both, other, {})
    (found,) = machines(both, other, {"second": "renamed"})
    assert (found.before, found.after) == ("second", "renamed")
    with pytest.raises(ResultsError, match="nobody is no machine of run 2; choose from renamed"):
        machines(both, other, {"second": "nobody"})


def test_another_type_of_gpu_need_not_hold_in_cycles():
    def edit(cell, record):
        record["machine"]["gpu"] = "Another GPU"

    found = compared(run(1), with_records(run(2, lambda point, phase: 0.5, clock=0.7), edit))
    assert {pair.verdict for pair in found.pairs if pair.limited_by == "gpu"} == {"faster"}
    assert not found.machines[0].same_type


def test_no_cell_in_common_is_said():
    other = relabelled(run(2), LABEL)
    other = dataclasses.replace(other, records={cell.replace("ctx", "ctx9"): r for cell, r in other.records.items()})
    with pytest.raises(ResultsError, match="no cell in common, such as made-up/timing/small/ctx128/fp32 and "):
        compared(run(1), other)


def test_what_changed_is_told():
    def edit(cell, record):
        record["provenance"]["versions"]["torch"] = "3.1"
        record["provenance"]["hardware"]["driver"] = "2.0"
        record["code"] = "feed"

    before, after = run(1), with_records(run(2), edit)
    common = common_cells(before, after, machines(before, after, {}))
    told = {each.fact: (each.before, each.after, each.cells) for each in changes.changes(before, after, common)}
    assert told == {
        "torch": ("3.0", "3.1", len(SMALL)),
        "driver": ("1.0", "2.0", len(SMALL)),
        "code that measured": ("c0de" * 4, "feed", len(SMALL)),
    }


def kernel(name, ms, phase="all", cell="a/profile/small/ctx128/fp32"):
    return {"cell": cell, "phase": phase, "name": name, "full_name": f"void {name}", "category": "matmul",
            "total_ms": 5 * ms, "instances": 50.0, "instances_per_step": 10.0}  # fmt: skip


def test_kernels_that_came_went_and_grew():
    cell = "a/profile/small/ctx128/fp32"
    phases = pd.DataFrame([{"cell": cell, "phase": "step", "gpu_ms_per_step": 10.0, "kernels_per_step": 20.0}])

    def side(*kernels):
        return Results("x", {cell: {}}, {}, {}, {"profile_kernels": pd.DataFrame(kernels), "profile_phases": phases})

    before = side(kernel("gemm", 6.0), kernel("old", 3.0), kernel("tiny", 0.01), kernel("copy", 1.0))
    after = side(kernel("gemm", 7.0), kernel("new", 2.5), kernel("tiny", 0.02), kernel("copy", 1.01))
    found = recorded.kernels(before, after, [(cell, cell)])
    assert [(each.name, each.change, each.before_ms, each.after_ms) for each in found] == [
        ("old", "went", 3.0, None),
        ("new", "came", None, 2.5),
        ("gemm", "grew", 6.0, 7.0),
    ]  # tiny is 0.1 % of a step, copy grew by 1 %
    assert words.about_kernels(found) == "Kernels: 1 came, 1 went, 1 grew, 0 shrank."
    assert recorded.kernels(before, dataclasses.replace(after, tables={}), [(cell, cell)]) is None


def test_what_fills_more_of_the_memory():
    cell, mib = "a/memory/small/ctx128/fp32", 2**20

    def side(**sizes):
        rows = [{"cell": cell, "category": name, "bytes": float(size * mib)} for name, size in sizes.items()]
        return Results("x", {cell: {}}, {}, {}, {"memory_peak": pd.DataFrame(rows)})

    found = recorded.fillings(side(parameters=100, gradients=50), side(parameters=101, activations=7), [(cell, cell)])
    assert [(each.category, each.before / mib, each.after / mib) for each in found] == [
        ("gradients", 50.0, 0.0),
        ("activations", 0.0, 7.0),
    ]


def test_the_pages_say_the_same_and_names_are_text(tmp_path):
    hostile = "<script>alert(1)</script>|**x**"

    def edit(cell, record):
        record["provenance"]["hardware"]["driver"] = hostile

    named = dataclasses.replace(with_records(run(2, backward_of_xl), edit), name="<b>later</b>")
    found = compared(run(1), named)
    sentences = page.write(found, tmp_path, ROOT / "report", "a command")
    assert sentences[0] == "Of 112 series in 16 cells: 4 slower, 0 faster, 108 the same, 0 unclear, 0 not comparable."
    html, text = (tmp_path / "index.html").read_text(), (tmp_path / "compare.md").read_text()
    assert "<b>later" not in html and "&lt;b&gt;later" in html
    assert "<script>alert" not in html and "<script>" not in text and "\\*\\*x\\*\\*" in text
    assert sentences[0] in html and sentences[0] in text
    rows = list(csv.DictReader(io.StringIO((tmp_path / "compare.csv").read_text())))
    assert len(rows) == 112
    (slow,) = [row for row in rows if row["cell"].endswith("xl/ctx512/bf16") and row["series"] == "backward"]
    pair = next(each for each in found.of("slower") if each.place.cell == slow["cell"])
    assert float(slow["times_as_long"]) == float(slow["results_ms"]) / float(slow["baseline_ms"])
    assert (slow["verdict"], float(slow["ci_low"])) == ("slower", pair.ends[0])
    worst = re.sub(r"<wbr>|</?span[^>]*>", "", html[html.index("The 5 worst") :])
    assert worst.index("timing/xl/ctx") < worst.index("timing/medium/ctx")


def written(folder: Path, found_cells: list[CellResult]) -> Path:
    """A results folder with these cells' records."""
    for cell in found_cells:
        place = folder / cell.name
        place.mkdir(parents=True)
        (place / "samples.csv").write_text("mode,kind\n")
        record = cell.record | {"samples_sha256": hashlib.sha256(b"mode,kind\n").hexdigest()}
        (place / "record.json").write_text(json.dumps(record))
    return folder


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Folders `results/` of two runs, made by name."""

    def make(name, seed, change=lambda point, phase: 1.0):
        kept = []
        monkeypatch.setattr(made_up_runs, "results_of", lambda cells, _: kept.extend(cells))
        run(seed, change)
        return written(tmp_path / name / "results", kept)

    return make


def test_damaged_cells_are_left_out_by_name(folders):
    folder = folders("one", 1)
    places = [folder / f"{LABEL}/timing/{size}/ctx128/fp32" for size in ("small", "medium", "xl")]
    places[0].joinpath("record.json").write_text("[" * 100_000)
    places[1].joinpath("samples.csv").write_text("other")
    record = json.loads(places[2].joinpath("record.json").read_text())
    record["summary"]["phases"][0]["processes"][0]["median"] = float("nan")
    places[2].joinpath("record.json").write_text(json.dumps(record))
    found = read(folder.parent, "one")
    assert len(found.records) == len(SMALL) - 3
    assert {cell.split("/")[2]: why for cell, why in found.left_out.items()} == {
        "small": "record.json is damaged (truncated or edited by hand)",
        "medium": "samples.csv is not the file that record.json was written with (truncated or edited by hand)",
        "xl": "record.json is damaged: it holds NaN, which is no number",
    }


@pytest.mark.parametrize("key", ["spec", "summary", "provenance", "telemetry", "machine"])
@pytest.mark.parametrize("value", [{}, {"study": "timing", "phases": "x", "modes": 3}])
def test_whatever_a_record_holds_it_is_read_or_left_out(folders, key, value):
    folder = folders("one", 1)
    place = folder / f"{LABEL}/timing/small/ctx128/fp32/record.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {key: value}))
    found = read(folder, "one")
    assert len(found.records) + len(found.left_out) == len(SMALL)
    compared(found, found)


def program(*arguments):
    ended = subprocess.run(
        [sys.executable, ROOT / "scripts/compare_runs.py", *map(str, arguments)], capture_output=True, text=True
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_the_program_says_by_its_exit_code_what_it_found(folders, tmp_path):
    before, after = folders("one", 1), folders("two", 2, backward_of_xl)
    code, said, _ = program(before.parent, after, "--out", tmp_path / "out")
    assert code == 1 and said.startswith("Of 112 series in 16 cells: 4 slower, ")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"index.html", "compare.md", "compare.csv"}
    assert program(after, before)[0] == 0
    (tmp_path / "empty").mkdir()
    code, said, complaint = program(tmp_path / "empty", after, "--out", tmp_path / "out")
    assert (code, said) == (2, "")
    assert list((tmp_path / "out").iterdir()) == []  # the earlier comparison's pages would pass for this one's
    assert complaint == (
        f"error: {tmp_path}/empty: there are no results; give a folder with LABEL/STUDY/…/record.json, one that holds "
        "it as results, or an archive\n"
    )


def test_results_that_were_not_measured_again_are_said_to_be_the_same_measurements(folders):
    folder = folders("one", 1)
    again = folder / f"{LABEL}/timing/xl/ctx128/fp32"
    found = read(folder, "one")
    (again / "samples.csv").write_text("measured again\n")
    record = json.loads((again / "record.json").read_text())
    record["samples_sha256"] = hashlib.sha256(b"measured again\n").hexdigest()
    (again / "record.json").write_text(json.dumps(record))
    alike = folder / f"{LABEL}/timing/xl/ctx128/bf16/record.json"  # measured later, with the same samples
    record = json.loads(alike.read_text())
    record["provenance"]["started"] = "2026-11-23T08:00:00+00:00"
    alike.write_text(json.dumps(record))
    told = words.summary(compared(found, read(folder, "two")), [])
    assert "14 of 16 cells of the results were not measured again: their samples are the baseline's." in told


def test_cells_in_common_that_were_timed_in_one_run_alone_are_nothing_to_compare():
    untimed = dataclasses.replace(run(2), rows={study: [] for study in run(2).rows})
    with pytest.raises(ResultsError, match="have no timed cell in common"):
        compared(run(1), untimed)


def test_every_column_of_the_csv_is_described():
    text = (ROOT / "docs/comparing.md").read_text()
    assert [
        each.name for each in tables.CSV.fields if f"| `{each.name}` | {each.unit} | {each.meaning} |" not in text
    ] == []


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("free_forward", "forward, free steps"),
        ("forward_backward", "forward+backward"),
        ("512 backward", "512 backward"),
    ],
)
def test_series_have_the_reports_words(what, words):
    assert in_words(what) == words
