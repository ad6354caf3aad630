"""Results are written whole or not at all."""

import csv
import hashlib
import json
import os

from common import picked
from stepscope.measure import record
from stepscope.measure.samples import COLUMNS

ROWS = [
    {"step": 0, "phase": "forward+backward", "warmup": True, "seconds": 0.1 + 0.2, "power_w": None},
    {"step": 1, "phase": "a, b", "warmup": False, "seconds": 1e-9, "power_w": 71.5},
]


def test_the_record_holds_the_samples_hash_and_both_can_be_read_again(tmp_path):
    folder = tmp_path / "new/cell"
    record.write(folder, ROWS, {"spec": {"b": 1, "a": "×"}, "none": None})
    found = json.loads((folder / "record.json").read_text())
    digest = hashlib.sha256((folder / "samples.csv").read_bytes()).hexdigest()
    assert found == {
        "schema_version": 3,
        "spec": {"a": "×", "b": 1},
        "none": None,
        "samples_sha256": digest,
    }
    with open(folder / "samples.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["seconds"]) for row in rows] == [0.1 + 0.2, 1e-9]
    assert picked(rows, "power_w") == ["", "71.5"]
    assert rows[1]["phase"] == "a, b"


def test_no_samples_are_a_header():
    assert record.samples_csv([]) == ",".join(COLUMNS) + "\n"


def test_the_record_comes_last_and_both_are_on_the_disk_before(tmp_path, monkeypatch):
    events = []
    rename, fsync = record.Path.rename, os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (events.append("sync"), fsync(descriptor)))
    monkeypatch.setattr(record.Path, "rename", lambda a, b: (events.append(b.name), rename(a, b)))
    record.write(tmp_path, ROWS, {})
    assert [name for name in events if name != "sync"] == ["samples.csv", "record.json"]
    assert events.count("sync") == 2
    assert events[0] == "sync"


def test_a_file_that_may_not_grow_is_left_out_whole(run_python, tmp_path):
    """The kernel's own limit, in a process of its own."""
    code = f"""
import pathlib, resource
from stepscope.files import complaint
from stepscope.measure import record
from stepscope.measure.samples import COLUMNS
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    record.write(pathlib.Path({str(tmp_path)!r}), [{{"step": 1}}] * 2000, {{}})
except OSError as error:
    print(complaint(error, None))
"""
    _, out, err = run_python(code)
    assert "File too large; make room" in out
    assert (err, list(tmp_path.iterdir())) == ("", [])
