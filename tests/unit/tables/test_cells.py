"""Which cells are taken, and why others are refused."""

import json

import pytest
from stepscope.tables import cells, columns

NAME = "machine/timing/nano/ctx6/fp32"
SUMMARY = {"modes": {}, "phases": []}


@pytest.fixture
def cell(results, timing_spec):
    """Folder of a cell that is as it should be."""
    results.expect(NAME, timing_spec)
    return results.measure(NAME, timing_spec, SUMMARY)


def read(results, partial=False):
    return cells.read_cells(results.plan(), "timing", results.folder, partial)


def refusal(results):
    """The one line that says why the cell is refused; the same that its row shows in a partial table."""
    with pytest.raises(cells.Refusal) as refused:
        read(results)
    ((name, problem),) = refused.value.problems.items()
    assert name == NAME
    assert len(problem.splitlines()) == 1
    (shown,) = read(results, partial=True)
    assert (shown.name, shown.record, shown.samples) == (NAME, {}, ())
    return shown.status, problem, shown.reason


def edit(folder, change):
    record = json.loads((folder / "record.json").read_text())
    change(record)
    (folder / "record.json").write_text(json.dumps(record))


def test_a_good_cell_is_read_with_its_samples(results, cell):
    (found,) = read(results)
    assert (found.name, found.status, found.reason) == (NAME, "measured", "")
    assert found.record["summary"] == SUMMARY
    assert found.samples == ("mode,step,seconds", "step,0,0.25", "step,1,0.5")


def test_cells_come_in_the_plans_order(results, timing_spec):
    names = [f"machine/timing/{size}/ctx6/fp32" for size in "cab"]
    for name in names:
        results.expect(name, timing_spec)
    for name in sorted(names):
        results.measure(name, timing_spec, SUMMARY)
    assert [found.name for found in read(results)] == names


def test_a_damaged_record_is_refused(results, cell):
    (cell / "record.json").write_bytes(b"\xff\xfe\x00")
    damaged = "record.json is damaged (truncated or edited by hand)"
    assert refusal(results) == ("failed", damaged, damaged)


@pytest.mark.parametrize(
    "change, shown",
    [
        ({"context": 7}, "context is 7 there, 6 now"),
        ({"d_model": 16, "d_ff": 8}, "d_ff is 8 there, 16 now"),
        ({"attention": "sdpa"}, "attention is 'sdpa' there, None now"),
    ],
)
def test_a_record_of_another_spec_is_refused_with_the_difference(change, shown, results, cell):
    edit(cell, lambda record: record["spec"].update(change))
    assert refusal(results)[1] == f"record.json is of another spec: {shown}"


def test_a_record_that_lacks_a_key_of_the_spec_is_refused_with_it(results, cell):
    edit(cell, lambda record: record["spec"].pop("seed"))
    assert refusal(results)[1] == "record.json is of another spec: seed is None there, 5 now"


def test_a_record_of_other_code_is_taken_and_says_so(results, cell):
    """Whether it is to be measured again is for Snakemake to say, which `--touch` may have told that it is not."""
    edit(cell, lambda record: record.update(code="fedcba"))
    (found,) = (each for each in read(results) if each.record["code"] == "fedcba")
    assert found.status == "measured"
    assert columns.run_columns(found)["is_current"] == "no"


@pytest.mark.parametrize(
    "key, value, shown",
    [
        ("cpu", "Intel", "cpu is 'Intel' there, 'AMD EPYC' now"),
        ("device", "cuda", "device is 'cuda' there, 'cpu' now"),
        ("python", "3.11", "python is '3.11' there, '3.12' now"),
        ("torch", "2.12.0+cpu", "torch is '2.12.0+cpu' there, '2.13.0+cpu' now"),
        ("torch", "2.13.0+cu130", "torch is '2.13.0+cu130' there, '2.13.0+cpu' now"),
        ("torch", "2.13.0", "torch is '2.13.0' there, '2.13.0+cpu' now"),
        ("torch", None, "torch is None there, '2.13.0+cpu' now"),
    ],
)
def test_a_record_of_another_machine_is_refused_with_the_difference(key, value, shown, results, cell):
    edit(cell, lambda record: record["machine"].update({key: value}))
    assert refusal(results)[1] == f"measured on another machine: {shown}"


def test_a_plan_that_pins_a_release_takes_any_build_of_it(results, cell):
    results.machine["torch"] = "2.13.0"
    assert read(results)[0].status == "measured"
    edit(cell, lambda record: record["machine"].update(torch="2.13.1+cpu"))
    assert "torch is '2.13.1' there, '2.13.0' now" in refusal(results)[1]


def test_the_difference_that_is_named_is_the_one_that_counts(results, cell):
    """Neither the build of the same release nor what the plan does not know."""
    results.machine |= {"torch": "2.13.0", "triton": "3.5.0"}
    edit(cell, lambda record: record["machine"].update(triton="3.4.0", a_new_key=1))
    assert refusal(results)[1] == "measured on another machine: triton is '3.4.0' there, '3.5.0' now"


def test_what_the_plan_does_not_know_of_the_machine_is_not_compared(results, cell):
    edit(cell, lambda record: record["machine"].update(triton="3.4.0"))
    assert read(results)[0].status == "measured"


def test_a_package_that_a_cells_own_model_imports_counts_for_this_cell(results, cell):
    edit(cell, lambda record: record["machine"].update(packages={"timm": "1.0", "einops": "1"}))
    assert read(results)[0].status == "measured"
    results.entries[0]["machine"] = results.machine | {"packages": {"timm": "1.0"}}
    assert read(results)[0].status == "measured"
    results.entries[0]["machine"]["packages"]["timm"] = "2.0"
    assert refusal(results)[1] == (
        "measured on another machine: packages is {'timm': '1.0'} there, {'timm': '2.0'} now"
    )


@pytest.mark.parametrize("damage", ["step,0,0.26", "", "cut"])
def test_edited_or_cut_samples_are_refused(damage, results, cell):
    text = (cell / "samples.csv").read_text()
    (cell / "samples.csv").write_text(text[:-3] if damage == "cut" else text.replace("step,0,0.25", damage))
    assert refusal(results)[1].startswith("samples.csv is not the file that record.json was written with")


def test_missing_samples_are_refused(results, cell):
    (cell / "samples.csv").unlink()
    assert refusal(results)[1] == "samples.csv is missing"


def test_a_record_that_cannot_be_read_is_refused(results, cell):
    (cell / "record.json").unlink()
    (cell / "record.json").mkdir()
    assert refusal(results)[1] == "record.json cannot be read: Is a directory"


def test_a_cell_without_a_record_is_missing_or_failed(results, timing_spec):
    results.expect(NAME, timing_spec)
    assert refusal(results) == ("missing", "there is no record.json", "not measured yet")
    log = results.folder / NAME / "measure.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\nerror: the last line \n\n")
    assert refusal(results) == ("failed", "there is no record.json", "error: the last line")
    log.write_text("\n")
    assert refusal(results)[2] == "the log is empty"


def test_good_cells_stand_beside_refused_ones_in_a_partial_table(results, cell, timing_spec):
    results.expect("machine/timing/gone", timing_spec)
    assert [found.status for found in read(results, partial=True)] == ["measured", "missing"]
    with pytest.raises(cells.Refusal) as refused:
        read(results)
    assert list(refused.value.problems) == ["machine/timing/gone"]


def test_a_machine_that_is_not_the_expected_one_is_refused(results, cell):
    results.expected = "epyc"
    assert read(results)[0].status == "measured"
    results.expected = "H100"
    assert refusal(results)[1].startswith("measured on AMD EPYC, but the configuration expects 'H100'; correct what")


def another(results, spec, started, name="machine/timing/other", **machine):
    """A second cell of the label, measured at that time on such a machine."""
    results.expect(name, spec)
    results.measure(name, spec, {"modes": {}, "phases": []})
    folder = results.folder / name
    edit(folder, lambda record: record["machine"].update(machine))
    edit(folder, lambda record: record["provenance"].update(started=started))


@pytest.mark.parametrize("how", ["jobs", "there"])
@pytest.mark.parametrize("key", ["cpu", "driver", "torch", "python"])
def test_cells_of_one_label_on_two_kinds_of_machines_are_refused_but_for_the_newest(
    how, key, results, cell, timing_spec
):
    results.how, results.machine = how, None
    another(results, timing_spec, "2025-06-01T00:00:00+00:00", **{key: "new"})
    with pytest.raises(cells.Refusal) as refused:
        read(results)
    (name,) = refused.value.problems
    assert name != "machine/timing/other"
    problem = refused.value.problems[name]
    assert problem.startswith(f"measured on another machine than the newest of machine: {key} is ")
    assert problem.endswith(", 'new' on the newest")
    first, second = read(results, partial=True)
    assert (first.status, first.record, second.status) == ("failed", {}, "measured")


def test_the_newest_record_may_be_of_another_study(results, cell, timing_spec):
    results.how, results.machine = "jobs", None
    plan = results.plan()
    another(results, timing_spec, "2025-06-01T00:00:00+00:00", "machine/ceilings/copy", driver="new")
    plan["studies"]["timing"]["cells"] = results.entries[:1]
    plan["studies"]["ceilings"] = plan["studies"]["timing"] | {"cells": results.entries[1:]}
    assert [found.status for found in cells.read_cells(plan, "ceilings", results.folder)] == ["measured"]
    with pytest.raises(cells.Refusal):
        cells.read_cells(plan, "timing", results.folder)


def test_neither_a_record_of_the_future_nor_an_unexpected_one_says_what_holds(results, cell, timing_spec):
    results.how, results.machine, results.expected = "jobs", None, "EPYC"
    another(results, timing_spec, "2999-01-01T00:00:00+00:00", "machine/timing/future", torch="new")
    another(results, timing_spec, "2025-06-01T00:00:00+00:00", "machine/timing/xeon", cpu="Xeon")
    found = read(results, partial=True)
    assert [one.status for one in found] == ["measured", "failed", "failed"]
    assert "torch is 'new' there" in found[1].reason and "expects 'EPYC'" in found[2].reason


def test_a_tool_of_one_study_is_no_difference_between_studies(results, cell, timing_spec):
    results.how, results.machine = "jobs", None
    plan = results.plan()
    another(results, timing_spec, "2025-06-01T00:00:00+00:00", "machine/profile/x", tools={"nsys": "2025.3"})
    plan["studies"]["timing"]["cells"] = results.entries[:1]
    plan["studies"]["profile"] = plan["studies"]["timing"] | {"cells": results.entries[1:]}
    for study in ("timing", "profile"):
        assert [found.status for found in cells.read_cells(plan, study, results.folder)] == ["measured"]


@pytest.mark.parametrize(
    "change, said",
    [
        ({"spec": {"d_model": 16}}, "another point than its folder: d_model is 16 there, 8 now"),
        ({"provenance": {"started": "2025"}}, "provenance must contain"),
    ],
)
def test_results_that_are_only_used_have_to_be_of_their_point_and_whole(change, said, results, cell):
    results.how, results.machine = "there", None
    edit(cell, lambda record: record.update(change | {"spec": record["spec"] | change.get("spec", {})}))
    assert said in refusal(results)[1]


def test_results_that_are_only_used_count_as_they_were_measured(results, cell):
    results.how, results.machine = "there", None
    edit(cell, lambda record: record.update(code="older", spec=record["spec"] | {"threads": 8}))
    (found,) = read(results)
    assert (found.status, found.entry["spec"]["threads"]) == ("measured", 8)
    assert found.entry["command"] == found.record["provenance"]["command"]


def test_the_remedy_measures_exactly_the_refused_cells():
    records = "results/a/b/record.json results/c/x=2/record.json"
    said = f"To measure exactly these again: {{}} --forcerun {records}"
    problems = {"a/b": "why", "c/x=2": "why"}
    here, jobs, there = ({"how": how} for how in ("here", "jobs", "there"))
    assert cells.remedy(problems, {"a": here, "c": here}) == said.format("snakemake --cores 1 report")
    assert cells.remedy(problems, {"a": jobs, "c": jobs}, "snakemake x") == said.format("snakemake x")
    first, second = cells.remedy(problems, {"a": here, "c": there}).splitlines()
    assert first == "To measure exactly these again: snakemake --cores 1 report --forcerun results/a/b/record.json"
    assert second.startswith("Nothing is measured for c here: copy results of one machine")


@pytest.mark.parametrize("text", ["", "{}", "[]", "null"])
def test_a_file_that_is_no_plan_is_one_line(text, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"^{path} is no plan of this workflow \(.*\); delete it and run again$"):
        cells.read_plan(path)
