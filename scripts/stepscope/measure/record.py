"""How a cell's results are written: samples.csv and record.json, whole or not at all, the record last."""

import csv
import errno
import hashlib
import io
import json
import os
from pathlib import Path

SCHEMA_VERSION = 1


class WriteError(Exception):
    """The results cannot be written; the message is one line for the user."""


def write(folder: Path, columns: list[str], rows: list[dict], record: dict) -> None:
    """Write samples.csv and then record.json, which holds the samples' SHA-256.

    Raises WriteError in one line; what was there before is then still there.
    """
    samples = samples_csv(columns, rows).encode()
    record = {"schema_version": SCHEMA_VERSION, **record, "samples_sha256": hashlib.sha256(samples).hexdigest()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, indent=1, sort_keys=True) + "\n"
        _replace({folder / "samples.csv": samples, folder / "record.json": text.encode()})
    except OSError as error:
        raise WriteError(f"cannot write {error.filename or folder}: {_advice(error)}") from None


def read(folder: Path) -> tuple[list[dict], dict]:
    """(rows, record) as write() wrote them: numbers as numbers, an empty field as None."""
    with (folder / "samples.csv").open(newline="") as file:
        rows = [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]
    return rows, json.loads((folder / "record.json").read_text())


def _value(text: str) -> object:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return {"True": True, "False": False}.get(text, text)


def samples_csv(columns: list[str], rows: list[dict]) -> str:
    """A row a sample; numbers in full, None as an empty field."""
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _replace(contents: dict[Path, bytes]) -> None:
    """Write beside each path, force it to the disk, then rename all in order: no path ever shows a part."""
    beside = {path: path.with_name(f".{path.name}.part") for path in contents}
    try:
        for path, content in contents.items():
            with open(beside[path], "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path, part in beside.items():
            part.rename(path)
    except OSError as error:
        for part in beside.values():
            part.unlink(missing_ok=True)
        error.filename = str(path)
        raise


def _advice(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{error.strerror}; make room and run again, nothing that was finished is lost"
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{error.strerror}; make the folder writable, or choose another with --directory"
    return str(error.strerror)
