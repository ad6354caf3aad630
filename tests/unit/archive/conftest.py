"""A small results folder, and archives packed by hand, so that they can hold what ours never would."""

import hashlib
import json
import zipfile

import pytest

SAMPLES = b"step,phase,warmup,seconds\n0,step,False,0.25\n"
RECORD = {
    "schema_version": 1,
    "code": "0123456789abcdef",
    "samples_sha256": hashlib.sha256(SAMPLES).hexdigest(),
    **{part: {} for part in ("spec", "summary", "provenance", "telemetry")},
    "machine": {"device": "cpu", "cpu": "Some <b>CPU</b>"},
}
CELL = "timing/nano/ctx64/fp32"


@pytest.fixture
def results(tmp_path):
    """A results folder: a cell of each of two machines, a table, a page, a trace, a log and a time stamp."""
    folder = tmp_path / "results"
    contents = {f"{label}/{CELL}/samples.csv": SAMPLES for label in ("box", "other")}
    contents |= {f"{label}/{CELL}/record.json": json.dumps(RECORD).encode() for label in ("box", "other")}
    contents |= {
        f"box/{CELL}/trace/trace.json": b"{}",
        f"box/{CELL}/analysis/.snakemake_timestamp": b"",
        f"box/{CELL}/analysis/kernels.csv": b"name\n<i>k</i>\n",
        f"box/{CELL}/measure.log": b"said\n",
        "tables/timing.csv": b"cell\n",
        "report/index.html": b"<!doctype html>",
        "slurm/1.out": b"",
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def members():
    """Name → content of the files of a sound archive but its manifest."""
    return {
        "configuration.json": b"{}",
        f"results/box/{CELL}/record.json": json.dumps(RECORD).encode(),
        f"results/box/{CELL}/samples.csv": SAMPLES,
        "results/tables/timing.csv": b"cell\n",
    }


@pytest.fixture
def pack(tmp_path):
    """A function that writes an archive of (name or ZipInfo, content) pairs, with a manifest that fits them unless one
    is given, and returns its path. Names go into the file as they are."""

    def write(pairs, manifest=None, compression=zipfile.ZIP_DEFLATED):
        pairs = list(pairs.items() if isinstance(pairs, dict) else pairs)
        listed = [
            {
                "path": name if isinstance(name, str) else name.filename,
                "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
            for name, content in pairs
        ]
        sound = {"format": "stepscope archive", "version": 1, "files": listed}
        whole = json.dumps(sound) if manifest is None else manifest(sound)
        path = tmp_path / "theirs.zip"
        with zipfile.ZipFile(path, "w", compression) as archive:
            if whole is not None:
                archive.writestr("manifest.json", whole)
            for name, content in pairs:
                archive.writestr(name, content)
        return path

    return write
