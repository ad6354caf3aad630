"""How a cell's results are written: samples.csv and record.json, whole or not at all, the record
last."""

import csv
import hashlib
import io
import json
from pathlib import Path

from stepscope import files

from .samples import COLUMNS

RECORD_VERSION = 3  # of results/record.schema.json


def write(folder: Path, rows: list[dict], record: dict) -> None:
    """Write samples.csv and then record.json, which holds the samples' SHA-256.

    Raises OSError where they cannot be written; what was there before is then still there.
    """
    samples = samples_csv(rows).encode()
    record = {
        "schema_version": RECORD_VERSION,
        **record,
        "samples_sha256": hashlib.sha256(samples).hexdigest(),
    }
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    contents = {folder / "samples.csv": samples, folder / "record.json": text.encode()}
    files.write_whole(contents, to_disk=True)


def samples_csv(rows: list[dict]) -> str:
    """A row a sample; numbers in full, None as an empty field."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n", restval="")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()
