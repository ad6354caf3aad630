"""What ran: counted in cells, also where a study's table has several rows a cell."""

import pandas as pd
import pytest
import synthetic
import synthetic_attention as made
import synthetic_memory
from stepscope.report.data.machines import every_cell
from stepscope.report.machine import incomplete_box, machine_table, overview
from stepscope.tables.reader import Tables


def facts(folder, rows, studies=("attention",)) -> dict:
    return dict(overview(Tables(made.write(folder, rows), list(studies))))


def statuses(rows: list[dict], of: dict[int, str]) -> list[dict]:
    """The same rows with a status by length."""
    return [row | {"status": of.get(row["length"], "ok"), "reason": of.get(row["length"], "")} for row in rows]


def test_a_cell_of_many_rows_counts_once(tmp_path):
    rows = made.cell(duration_s=30.0) + made.cell("sdpa-flash", duration_s=30.0)
    found = facts(tmp_path, rows)
    assert found["Study attention"] == "2 cells (2 ok)" and found["Time spent measuring"] == "1 min 00 s"


@pytest.mark.parametrize(
    ("of", "status"),
    [
        ({}, "ok"),
        ({1024: "unsupported"}, "ok"),
        ({1024: "unsupported", 4096: "unsupported", 16384: "unsupported"}, "unsupported"),
        ({16384: "oom"}, "oom"),
        ({4096: "failed", 16384: "oom"}, "failed"),
        ({1024: "missing", 4096: "failed"}, "missing"),
    ],
)
def test_the_status_is_of_the_whole_cell(tmp_path, of, status):
    cells = every_cell(Tables(made.write(tmp_path, statuses(made.cell(), of)), ["attention"]))
    assert list(cells["status"]) == [status]
    assert list(cells["reason"].fillna("")) == [status if status in of.values() else ""]


def test_the_order_of_cells_stays(tmp_path):
    rows = [*made.cell("naive"), *statuses(made.cell("flex"), {4096: "failed"}), *made.cell("triton")]
    cells = every_cell(Tables(made.write(tmp_path, rows), ["attention"]))
    assert [name.split("/")[2] for name in cells["cell"]] == ["naive", "flex", "triton"]


def test_a_lost_cell_is_listed_once(tmp_path):
    rows = made.without_result(made.cell(), "missing", "not measured yet") + made.cell("flex")
    box = incomplete_box(Tables(made.write(tmp_path, rows), ["attention"]))
    assert len(box.table.rows) == 1 and box.sentence.startswith("1 of 2 cells are missing or failed")


def test_batches_are_those_of_the_models(tmp_path):
    timing = synthetic.VARIANTS["cpu"]()[0]
    made.write(tmp_path, made.cell() + made.cell(**made.PAPERS))
    timing.to_csv(tmp_path / "timing.csv", index=False)
    assert dict(overview(Tables(tmp_path, ["timing", "attention"])))["Batch size"] == "4"
    assert "Batch size" not in dict(overview(Tables(tmp_path, ["attention"])))


def test_the_log_of_an_analysis_that_failed(tmp_path):
    measured = {"started": "2026-10-01T12:00:00+00:00", "reason": "measured, but the memory is not analysed yet"}
    rows = [synthetic_memory.cell(status="failed", **measured)]
    rows.append(synthetic_memory.cell("bf16", status="failed", reason="exit code 3", started=None))
    tables = Tables(synthetic_memory.write(tmp_path / "tables", rows), ["memory"])
    assert [column.label for column in incomplete_box(tables).table.columns] == ["cell", "status", "reason", "log"]
    for row in rows:
        (tmp_path / row["cell"]).mkdir(parents=True)
        (tmp_path / row["cell"] / "analysis.log").touch()
    table = incomplete_box(tables).table
    assert [row[3].link for row in table.rows] == [row["log"] for row in rows]
    assert [row[4].link for row in table.rows] == [f"{rows[0]['cell']}/analysis.log", ""]


TOGETHER = "Cells that ran while another cell ran on the machine"


def cells_at(folder, spans, **more) -> Tables:
    """Timing cells that start so many minutes after noon and run for so many seconds: (hardware, minutes, seconds)."""
    rows = [
        {"cell": f"{hardware}/timing/{at}", "hardware": hardware, "status": "ok", "reason": "", "batch": 4}
        | {"started": f"2026-10-01T12:{minutes:02d}:00+00:00", "duration_s": seconds}
        | {name: values[at] for name, values in more.items()}
        for at, (hardware, minutes, seconds) in enumerate(spans)
    ]
    folder.mkdir(exist_ok=True)
    pd.DataFrame(rows).to_csv(folder / "timing.csv", index=False)
    return Tables(folder, ["timing"])


def test_cells_that_ran_at_once_are_counted(tmp_path):
    # The first runs for three minutes, the second within it; the third begins when the first ends, the last alone.
    spans = [("gpu", 0, 180.0), ("gpu", 1, 30.0), ("gpu", 3, 60.4), ("gpu", 4, 10.0), ("gpu", 9, 10.0)]
    assert dict(overview(cells_at(tmp_path, spans)))[TOGETHER] == "2 of 5"
    # A cell that starts within a long one counts even though another began and ended between.
    spans = [("gpu", 0, 600.0), ("gpu", 1, 10.0), ("gpu", 5, 10.0), ("other", 5, 10.0), ("other", 6, 10.0)]
    assert dict(overview(cells_at(tmp_path, spans)))[TOGETHER] == "3 of 3 on gpu; none of 2 on other"


def test_how_many_gpus_and_profilers_there_were(tmp_path):
    spans = [("gpu", 0, 10.0), ("gpu", 1, 10.0), ("gpu", 2, 10.0)]
    several = {"device_uuid": ["GPU-1", "GPU-2", "GPU-1"], "profiler_version": ["2025.3", None, "2024.6"]}
    table = machine_table(cells_at(tmp_path, spans, **several))
    facts = {row[0].text: row[1].text for row in table.rows}
    assert facts["devices seen (UUID)"] == "2: GPU-1, GPU-2" and facts["profiler"] == "2: 2024.6, 2025.3"


def test_how_many_processes_measured_a_cell(tmp_path):
    spans = [("gpu", 0, 10.0), ("gpu", 1, 10.0)]
    counts = {"step_processes": [3, 2], "forward_processes": [3, None], "other_processes": [7, 7]}
    tables = cells_at(tmp_path, spans, **counts)
    assert dict(overview(tables))["Processes that measured a series of a cell"] == "timing 2 and 3"
    assert "Processes that measured a series of a cell" not in dict(overview(cells_at(tmp_path, spans)))
