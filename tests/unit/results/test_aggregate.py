"""The program: all tables from a results folder, what it refuses and what it says."""

import math
import statistics
import sys

import aggregate
import pytest
from common import ROOT, one_line
from pytest import approx
from stepscope.formulas.flops import step_flops
from stepscope.model.shape import ModelShape
from stepscope.report.tables_page import page
from stepscope.results.schema import TABLES
from stepscope.results.tables import Tables

from tests.unit.results.cells import SHAPE, Results, change, sample, turns

TIMING = "lab/timing/nano/ctx32/fp32"
RUNGS = [
    {"name": "fp32", "precision": "fp32"},
    {"name": "sdpa", "attention": "sdpa", "after": "fp32"},
]


@pytest.fixture
def results(tmp_path):
    made = Results(tmp_path)
    made.add(TIMING, SHAPE | {"precision": "fp32"}, [sample(process=p) for p in (1, 2, 3)])
    made.add(
        "lab/ladder/nano/ctx32", SHAPE | {"variants": RUNGS}, turns({"fp32": 0.1, "sdpa": 0.05})
    )
    return made


def run(results, monkeypatch, plan=None):
    out = results.folder / "tables"
    plan = plan or results.plan()
    flags = ["--plan", plan, "--results", results.folder, "--out", out, "--published"]
    monkeypatch.setattr(sys, "argv", ["aggregate.py", *map(str, flags)])
    aggregate.main()
    return Tables(out)


def refused(results, monkeypatch, capsys):
    """(the tables, the lines about cells, the last line) of a run that cannot use a cell."""
    tables = run(results, monkeypatch)
    *lines, last = capsys.readouterr().err.splitlines(keepends=True)
    return tables, "".join(lines), last.strip()


def test_every_table_is_written_with_the_columns_of_the_schema(results, monkeypatch, capsys):
    run(results, monkeypatch)
    for name, table in TABLES.items():
        header = (results.folder / "tables" / f"{name}.csv").read_text().partition("\n")[0]
        assert header.split(",") == list(table.columns)
    assert "2 cells (2 ok)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "log, reason",
    [
        ("", "not measured"),
        ("$ python step.py\nerror: no data here\n", "not measured: no data here"),
    ],
)
def test_what_is_not_measured_has_a_row_that_says_so(results, monkeypatch, log, reason):
    """With the last line of its log, if it has one."""
    name = "lab/timing/nano/ctx64/fp32"
    path = results.folder / name / "measure.log"
    path.parent.mkdir(parents=True)
    path.write_text(log)
    cells = run(results, monkeypatch, results.plan(missing=(name,)))["cells"].set_index("cell")
    assert cells.loc[name, ["status", "reason"]].tolist() == ["missing", reason]
    assert cells.loc[TIMING, ["status", "command"]].tolist() == ["ok", "python timing.py"]


def test_a_cell_says_what_measured_it_and_whether_that_is_todays_code(results, monkeypatch):
    spec = SHAPE | {"context": 64, "precision": "fp32"}
    results.add("lab/timing/nano/ctx64/fp32", spec, [sample()], code="01d")
    cells = run(results, monkeypatch)["cells"].set_index("context")
    told = {"code": "01d", "cpu": "a processor", "torch": "2.0", "memory": 2**30}
    told |= {"power_max_w": 100, "throttle": "power cap", "is_current": False}
    assert cells.loc[64].to_dict().items() >= told.items()
    assert cells.loc[32, "is_current"].all()


def test_the_status_of_a_cell_is_ok_if_any_variant_is(results, monkeypatch):
    variants = {
        "fp32": {"status": "ok", "reason": ""},
        "sdpa": {"status": "unsupported", "reason": "no such kernel"},
    }
    spec, summary = SHAPE | {"variants": RUNGS}, {"variants": variants}
    results.add("lab/ladder/tiny/ctx32", spec, [sample("fp32")], summary)
    row = run(results, monkeypatch).row("cells", size="tiny")
    assert (row["status"], row["reason"]) == ("ok", "sdpa: unsupported: no such kernel")


@pytest.mark.parametrize(
    "edit, told",
    [
        (
            lambda record: record["spec"].update(context=64),
            "another spec: context is 64 there, 32 in the plan",
        ),
        (lambda record: record["summary"].pop("values"), "record.json is damaged"),
        (lambda record: record["provenance"].update(duration_s=1e308), "record.json is damaged"),
        (lambda record: record.update(samples_sha256="0" * 64), "samples.csv is not the file"),
    ],
)
def test_a_cell_that_is_not_the_plans_is_refused_by_name_with_what_measures_it_again(
    results, edit, told, monkeypatch, capsys
):
    change(results.folder / TIMING, edit)
    tables, lines, last = refused(results, monkeypatch, capsys)
    assert lines.startswith(f"WARNING: not used: results/{TIMING}: ")
    assert told in lines and lines.count("\n") == 1
    assert last.endswith(f"--forcerun results/{TIMING}/record.json")
    states = tables["cells"].set_index("cell")[["status", "reason"]]
    assert states.loc[TIMING, "status"] == "missing" and told in states.loc[TIMING, "reason"]
    assert states.loc["lab/ladder/nano/ctx32", "status"] == "ok"
    assert set(tables["series"]["cell"]) == {"lab/ladder/nano/ctx32"}


def test_results_of_another_run_may_have_been_measured_with_another_budget(results, monkeypatch):
    change(results.folder / TIMING, lambda record: record["spec"].update(steps=99))
    tables = run(results, monkeypatch, results.plan(lab={"how": "there"}))
    assert tables.row("cells", cell=TIMING)["command"] == "python there.py"
    again = run(results, monkeypatch, results.plan()).row("cells", cell=TIMING)
    assert again["status"] == "missing" and "steps is 99 there" in again["reason"]


def test_a_plan_that_is_none_is_told_in_one_line(results, tmp_path, monkeypatch):
    (tmp_path / "plan.json").write_text("[]")
    assert "is no plan" in one_line(SystemExit, run, results, monkeypatch, tmp_path / "plan.json")


def test_a_label_of_two_machines_is_said_in_the_log(results, monkeypatch, capsys):
    def another(record):
        record["provenance"]["hardware"]["cpu"] = "another"

    change(results.folder / TIMING, another)
    run(results, monkeypatch)
    said = f"WARNING: lab: measured with several of cpu: another ({TIMING}), a processor"
    assert said in capsys.readouterr().out


def test_own_models_have_the_operations_of_the_record(tmp_path, monkeypatch):
    results = Results(tmp_path)
    spec = {"model": "models/mine.py:build", "context": 6, "batch": 3, "precision": "fp32"}
    about = {"class": "Stack", "parameters": 216, "unknown": ["a", "b"], "blocks": {"count": 2}}
    about["flops"] = {"counter": 23_328, "uncounted": ["aten.mv"]}
    results.add("lab/timing/mine/ctx6/fp32", spec, [sample(seconds=0.5)], {"model": about})
    tables = run(results, monkeypatch)
    told = {"flop": 23_328, "flop_from": "at least", "num_layers": 2, "unknown": "a; b"}
    assert tables.row("models", size="mine").items() >= told.items()
    assert tables.row("series", quantity="flops")["median"] == approx(23_328 / 0.5)
    assert tables.row("series", quantity="tokens_per_second")["median"] == approx(18 / 0.5)


def test_warm_up_is_read_off_the_steps_from_the_very_first_one(tmp_path, monkeypatch):
    """Steps of 8, 4, 2, 2, … s in two processes, in a third of twice that; forward and optimizer
    half each."""
    results, rows = Results(tmp_path), []
    for process, slower in ((1, 1.0), (2, 1.0), (3, 2.0)):
        for step, seconds in enumerate([8.0, 4.0, *[2.0] * 10]):
            for phase in ("forward", "optimizer"):
                more = {"kind": "phased", "phase": phase, "step": step, "warmup": step < 2}
                rows.append(sample(process=process, seconds=slower * seconds / 2, **more))
    results.add(TIMING, SHAPE | {"precision": "fp32"}, rows)
    tables = run(results, monkeypatch)
    got = tables.rows("warmup", phase="step").set_index("skipped")
    mean = 4 / 3  # of the processes' 1, 1 and 2: in all of them alike
    expected = {0: 2.8 * mean, 1: 2.2 * mean, 2: 2.0 * mean, 5: 2.0 * mean, 10: 2.0 * mean}
    assert got["mean"].to_dict() == approx(expected)
    squares = (1 + 1 + 4) / 3
    assert got.loc[0, "std"] == approx(statistics.stdev([8, 4, *[2] * 8]) * squares**0.5)
    assert got["first"].to_list() == approx([8.0 * mean] * 5)
    assert got["steady"].to_list() == approx([2.0 * mean] * 5)
    assert tables.row("warmup", phase="forward", skipped=0)["mean"] == approx(1.4 * mean)
    assert set(tables["warmup"]["phase"]) == {"step", "forward", "forward+backward", "optimizer"}


def test_a_cells_place_stands_in_tables_that_do_not_say_it(tmp_path, monkeypatch):
    results = Results(tmp_path)
    for context in (32, 64):
        spec = SHAPE | {"context": context, "precision": "bf16"}
        rows = {"categories": "phase,category,calls,time,share\nstep,matmul,2,0.5,1\n"}
        results.add(f"lab/profile/nano/ctx{context}/bf16", spec, [sample()], analysis=rows)
    got = run(results, monkeypatch).rows("categories", context=64, precision="bf16")
    assert got[["category", "time", "cell"]].to_numpy().tolist() == [
        ["matmul", 0.5, "lab/profile/nano/ctx64/bf16"]
    ]


def phased(seconds, step):
    return sample(seconds=seconds, kind="phased", phase="forward", step=step)


def test_a_profiled_phase_stands_beside_the_clock_with_and_without_the_profiler(
    tmp_path, monkeypatch
):
    results = Results(tmp_path)
    spec = SHAPE | {"precision": "fp32"}
    results.add("lab/timing/nano/ctx32/fp32", spec, [phased(0.2, 1), phased(0.2, 2)])
    slow = [phased(0.2, 1), phased(0.3, 2), phased(0.4, 3)]
    trace = {"trace": {"profiler": "nsys", "version": "2025.3"}}
    rows = {"phases": "phase,host_time\nstep,0.5\nforward,0.31\nbackward,0.1\noptimizer,0.1\n"}
    rows["warnings"] = "about,text\nprofiler,events lost\n"
    for name, more in {"": {}, "/detail=python": {"detail": "python"}}.items():
        results.add(f"lab/profile/nano/ctx32/fp32{name}", spec | more, slow, trace, rows)
    tables = run(results, monkeypatch)
    for own in tables.rows("phases", phase="forward").to_dict("records"):
        assert (own["host_time"], own["clock"], own["clock_std"]) == approx((0.31, 0.3, 0.1))
        assert own["overhead"] == approx(0.3 / 0.2)
    phases = tables.rows("phases", options="").set_index("phase")
    shape = ModelShape.of(SHAPE)
    assert phases["flop"]["step"] == step_flops(shape, 4, 32) == 3 * phases["flop"]["forward"]
    assert phases["bytes"]["optimizer"] == 72 * shape.parameters
    assert len(tables["warnings"]) == 2
    assert set(tables.rows("cells", study="profile")["profiler_version"]) == {"2025.3"}
    # What a profiler slows down has no rate.
    profiled = tables.rows("series", study="profile")
    assert set(profiled["quantity"]) == {"time"}


@pytest.mark.parametrize(
    ("option", "scores"), [({}, 4 * 4 * 2 * 32 * 32 * 2), ({"compile": "block"}, None)]
)
def test_a_range_has_its_work_where_it_runs_as_written(tmp_path, monkeypatch, option, scores):
    results = Results(tmp_path)
    name = "".join(f"/{key}={value}" for key, value in option.items())
    spec = SHAPE | {"precision": "bf16"} | option
    modules = "kind,module,calls,gpu_time\nmodule,mask,2,0.5\ncall,mask,2,\nmodule,own,1,1\n"
    rows = {
        "modules": modules,
        "categories": "phase,category,time\nstep,matmul,1\nforward,matmul,1\n",
    }
    results.add(f"lab/profile/nano/ctx32/bf16{name}", spec, [sample()], analysis=rows)
    tables = run(results, monkeypatch)
    assert tables.row("categories", phase="step")["flop"] == step_flops(ModelShape.of(SHAPE), 4, 32)
    assert math.isnan(tables.row("categories", phase="forward")["flop"])
    for row in tables["modules"].to_dict("records"):
        is_known = scores and (row["kind"], row["module"]) == ("module", "mask")
        assert math.isnan(row["bytes"]) != is_known
        assert row["bytes"] == scores or not is_known


def test_a_damaged_analysis_is_refused(tmp_path, monkeypatch, capsys):
    results = Results(tmp_path)
    spec = SHAPE | {"precision": "bf16"}
    folder = results.add("lab/profile/nano/ctx32/bf16", spec, [sample()])
    (folder / "analysis/kernels.csv").write_bytes(b"phase,na\xff")
    _, lines, _ = refused(results, monkeypatch, capsys)
    assert "analysis/kernels.csv is damaged" in lines


def test_the_page_of_the_tables_is_current():
    assert (ROOT / "docs/tables.md").read_text() == page()


def test_an_interval_belongs_to_columns_that_are_there():
    for table in TABLES.values():
        for column in table.columns.values():
            assert {column.low, column.high} - {""} <= set(table.columns)
            assert column.meaning and (column.unit != "" or column.kind != "number")


def test_a_table_that_is_not_there_is_an_empty_one(tmp_path):
    tables = Tables(tmp_path)
    assert tables["kernels"].empty
    assert tables.row("series", quantity="time") == {}
    assert tables.machines == []
