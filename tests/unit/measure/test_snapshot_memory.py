"""The program that records a cell's memory, run as a person runs it."""

import csv
import json
import pickle

QUICK = (
    "--d-model 8 --d-ff 16 --num-layers 2 --num-heads 2 --vocab-size 11 --context 6 --batch 2 "
    "--device cpu --threads 1 --warmup 1 --steps 2"
)


def test_a_cell_has_a_record_samples_a_snapshot_and_what_is_known_of_it(measured_cell):
    cell = measured_cell("snapshot_memory.py", QUICK)
    record = cell.record
    assert record["study"] == "memory"
    assert record["summary"]["variants"]["step"]["status"] == "ok"
    memory = record["summary"]["memory"]
    assert (memory["recorder"], memory["recorded"]) == ("torch.profiler", "measured steps")
    snapshot = pickle.loads((cell.folder / "snapshot" / memory["snapshot"]).read_bytes())
    assert {"segments", "device_traces"} <= set(snapshot)
    known = json.loads((cell.folder / "snapshot" / memory["known"]).read_text())
    assert known["schema_version"] == 1
    assert len(cell.rows) == 3 * 3  # three phases of three steps, one of them warm-up
    assert "forward" in cell.out and "peak resident" in cell.out


def test_what_the_machine_cannot_do_is_unsupported_and_has_no_snapshot(measured_cell):
    cell = measured_cell("snapshot_memory.py", f"{QUICK} --precision tf32")
    summary = cell.record["summary"]
    assert summary["variants"]["step"]["status"] == "unsupported"
    assert summary["memory"]["snapshot"] is None
    assert list((cell.folder / "snapshot").iterdir()) == []


def test_without_warm_up_the_recording_shows_the_optimizers_state_being_made(
    measured_cell, run_program, tmp_path
):
    cell = measured_cell("snapshot_memory.py", QUICK.replace("--warmup 1", "--warmup 0"))
    (line,) = (each for each in cell.out.splitlines() if each.startswith("parameters:"))
    # Embedding and LM head of 11 x 8; in each of 2 blocks four products of 8 x 8, three of 8 x 16,
    # two norms; a norm.
    parameters = 2 * 11 * 8 + 2 * (4 * 8 * 8 + 3 * 8 * 16 + 2 * 8) + 8
    assert line.split()[1] == f"{parameters / 1e6:.3f}"
    code, _, err = run_program(
        "analyze_snapshot.py", f"{cell.folder}/snapshot/snapshot.pickle --out {tmp_path}/tables"
    )
    assert code == 0, err
    with (tmp_path / "tables/memory_timeline.csv").open() as file:
        rows = [(row["step"], row["phase"], int(row["active"])) for row in csv.DictReader(file)]
    own = [[at for at, row in enumerate(rows) if row[:2] == (step, "optimizer")] for step in "01"]
    grown = [rows[places[-1]][2] - rows[places[0] - 1][2] for places in own]
    assert grown == [2 * 4 * parameters, 0]  # two moments in fp32, made once
