"""The program that records a cell's memory, run as a person runs it."""

import csv
import json
import pickle

QUICK = (
    "--d-model 8 --d-ff 16 --num-layers 2 --num-heads 2 --vocab-size 11 --context 6 --batch 2 "
    "--device cpu --threads 1 --warmup 1 --steps 2"
)


def test_a_cell_has_a_record_samples_a_snapshot_and_what_is_known_of_it(run_program, tmp_path):
    code, out, err = run_program("snapshot_memory.py", f"{QUICK} --out {tmp_path}")
    assert code == 0, err
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["study"] == "memory"
    assert record["summary"]["variants"]["step"]["status"] == "ok"
    memory = record["summary"]["memory"]
    assert (memory["recorder"], memory["recorded"]) == ("torch.profiler", "measured steps")
    snapshot = pickle.loads((tmp_path / "snapshot" / memory["snapshot"]).read_bytes())
    assert {"segments", "device_traces"} <= set(snapshot)
    known = json.loads((tmp_path / "snapshot" / memory["known"]).read_text())
    assert known["schema_version"] == 1
    lines = (tmp_path / "samples.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 3  # three phases of three steps, one of them warm-up
    assert "forward" in out and "peak resident" in out


def test_what_the_machine_cannot_do_is_unsupported_and_has_no_snapshot(run_program, tmp_path):
    code, _, err = run_program("snapshot_memory.py", f"{QUICK} --precision tf32 --out {tmp_path}")
    assert code == 0, err
    summary = json.loads((tmp_path / "record.json").read_text())["summary"]
    assert summary["variants"]["step"]["status"] == "unsupported"
    assert summary["memory"]["snapshot"] is None
    assert list((tmp_path / "snapshot").iterdir()) == []


def test_without_warm_up_the_recording_shows_the_optimizers_state_being_made(run_program, tmp_path):
    quick = QUICK.replace("--warmup 1", "--warmup 0")
    code, out, err = run_program("snapshot_memory.py", f"{quick} --out {tmp_path}")
    assert code == 0, err
    (line,) = (each for each in out.splitlines() if each.startswith("parameters:"))
    # Embedding and LM head of 11 x 8; in each of 2 blocks four products of 8 x 8, three of 8 x 16,
    # two norms; a norm.
    parameters = 2 * 11 * 8 + 2 * (4 * 8 * 8 + 3 * 8 * 16 + 2 * 8) + 8
    assert line.split()[1] == f"{parameters / 1e6:.3f}"
    code, _, err = run_program(
        "analyze_snapshot.py", f"{tmp_path}/snapshot/snapshot.pickle --out {tmp_path}/tables"
    )
    assert code == 0, err
    with (tmp_path / "tables/memory_timeline.csv").open() as file:
        rows = [(row["step"], row["phase"], int(row["active"])) for row in csv.DictReader(file)]
    own = [[at for at, row in enumerate(rows) if row[:2] == (step, "optimizer")] for step in "01"]
    grown = [rows[places[-1]][2] - rows[places[0] - 1][2] for places in own]
    assert grown == [2 * 4 * parameters, 0]  # two moments in fp32, made once
