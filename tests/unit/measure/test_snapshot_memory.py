"""The program that records a cell's memory, run as a person runs it."""

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
    snapshot = pickle.loads((cell.folder / "snapshot" / memory["snapshot"]).read_bytes())
    assert {"segments", "device_traces"} <= set(snapshot)
    known = json.loads((cell.folder / "snapshot" / memory["known"]).read_text())
    assert known["schema_version"] == 1
    assert len(cell.rows) == 3 * 3  # three phases of three steps, one of them warm-up
    assert "forward" in cell.out and "peak resident" in cell.out
