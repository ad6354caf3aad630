"""Records and samples that cannot be: refused in one line that names what is wrong with them."""

import hashlib
import json
import math

import pytest
from common import one_line
from stepscope.results import records

from tests.unit.results.cells import SHAPE, Results, change, sample, value

TIMING = "timing/small/ctx128/bf16"
LADDER = "ladder/small/ctx128"
ATTENTION = "attention/d64/bf16"
CEILING = "ceilings/copy/fp32"
MEMORY = "memory/medium/ctx512/fp32"
PRECISION = "precision/normalisation"
PARALLEL = "parallel/small/ctx128/bf16"
MEASURED = (TIMING, LADDER, ATTENTION, CEILING, MEMORY, PRECISION, PARALLEL)
VALUE = value("launches", "1", 2364)
CHECK = {"loss": 4.6, "gradient_norm": 1.5, "gradient_sample": [0.5] * 8, "same": True}
SUMMARIES = {
    LADDER: {"values": [VALUE], "checks": {"bf16": CHECK}},
    MEMORY: {"memory": {"baselines": {"start": 0, "model": 2**20}}},
    PRECISION: {
        "tables": {
            "forced": [{"format": "fp32", "value": 1e39}],
            "toy": [{"status": "unsupported"}, {"status": "ok", "role": "head", "kind": "Linear"}],
        }
    },
    PARALLEL: {
        "tables": {
            "collectives": [{"collective": "all_reduce", "bytes": 4096, "seconds": 6e-5}],
            "ranks": [{"variant": "ddp", "rank": 1, "clock": 0.5, "gone": -0.1}],
            "memory": [{"variant": "ddp", "point": "init", "held": 2**30, "formula": 2.0**30}],
        }
    },
}


@pytest.fixture
def cell(tmp_path):
    """What writes one cell, which a test may change."""
    made = Results(tmp_path)

    def write(name):
        samples = [
            sample(process=process, seconds=0.1 * process)
            for process in (1, 2, 3)
            for _ in range(3)
        ]
        return made.add(
            f"gpu/{name}", SHAPE, samples, {"values": [VALUE]} | SUMMARIES.get(name, {})
        )

    return write


def edit(folder, way, value):
    """Put a value at a place in the record, as summary.values.0.value; without one (...) take away
    what is there."""
    *above, last = (int(key) if key.isdigit() else key for key in way.split("."))

    def at_place(record):
        for key in above:
            record = record[key]
        if value is ...:
            del record[last]
        else:
            record[last] = value

    change(folder, at_place)


def samples_of(folder):
    """A cell's samples. Raises Damaged for its record or for them."""
    digest = records.read_record(folder)["samples_sha256"]
    samples, damaged = records.parsed({"cell": records.content(folder, digest)})
    for why in damaged.values():
        raise records.Damaged(why)
    return samples


def complaint(folder):
    line = one_line(records.Damaged, samples_of, folder)
    assert line.isprintable() and len(line) < 300
    return line


@pytest.mark.parametrize("name", MEASURED)
def test_what_was_measured_is_read(name, cell):
    record = records.read_record(folder := cell(name))
    assert record == json.loads((folder / "record.json").read_text())
    assert list(samples_of(folder)["seconds"]) == pytest.approx([0.1] * 3 + [0.2] * 3 + [0.3] * 3)


@pytest.mark.parametrize(
    "way, name",
    {
        "summary.values.0.value": TIMING,
        "summary.checks.bf16.gradient_sample.7": LADDER,
        "summary.memory.baselines.model": MEMORY,
        "provenance.duration_s": TIMING,
        "summary.tables.forced.0.value": PRECISION,
    }.items(),
)
@pytest.mark.parametrize("value", [1e308, math.nan, -math.inf])
def test_a_number_beyond_all_bounds_is_refused_wherever_it_stands(name, way, value, cell):
    folder = cell(name)
    edit(folder, way, value)
    assert complaint(folder).startswith("record.json is damaged: ")


@pytest.mark.parametrize(
    "name, way, value",
    [
        (MEMORY, "summary.memory.baselines.start", 1.1e15),  # more than a petabyte
        (TIMING, "summary.variants.step.status", ...),
        (TIMING, "summary", []),
        (TIMING, "summary.statuses", ...),
        (TIMING, "summary.variants.step.status", "lunch"),
        *((TIMING, "summary.values.0.value", number) for number in (None, -1, "1.5", True)),
        (TIMING, "summary.values.0.unit", ...),
        *(
            (TIMING, "summary.values.0", VALUE | {"unit": unit, "value": number})
            for unit, number in (("s", 0), ("s", 3.3e7), ("B", 1.1e15))
        ),
        (PRECISION, "summary.tables.toy.1.kind", ...),
        *(
            (PARALLEL, f"summary.tables.{name}", value)
            for name, value in (
                ("collectives.0.collective", ...),
                ("collectives.0.collective", "broadcast"),
                ("collectives.0.bytes", 4.1e-9),
                ("collectives.0.seconds", 1e9),
                ("ranks.0.clock", -0.5),
                ("ranks.0.clock ", 0.5),  # no table has such a column
                ("ranks.0.variant", ...),
                ("memory.0.held", "much"),
            )
        ),
        (TIMING, "provenance.started", "yesterday"),
        (TIMING, "machine.device", ...),
        (TIMING, "code", 5),
        (TIMING, "schema_version", 9),
        (TIMING, "telemetry", ...),
        (TIMING, "samples_sha256", "0"),
        (TIMING, "samples_sha256", "0" * 64),
    ],
)
def test_what_is_missing_or_of_another_kind_is_refused(name, way, value, cell):
    folder = cell(name)
    edit(folder, way, value)
    assert "damaged" in (line := complaint(folder)) or "is not the file" in line


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "5", "\x00", "{}", "half", "[" * 10**5, "9" * 5000]
)
def test_a_file_that_is_no_record_is_refused(text, cell):
    path = cell(TIMING) / "record.json"
    whole = path.read_text()
    path.write_text(whole[: len(whole) // 2] if text == "half" else text)
    assert complaint(path.parent).startswith("record.json is damaged")


def test_no_record_is_no_damage(tmp_path):
    with pytest.raises(FileNotFoundError):
        records.read_record(tmp_path)


def sampled(folder, change):
    """Change the samples' text, and the record's digest of it."""
    text = change((folder / "samples.csv").read_text())
    (folder / "samples.csv").write_text(text)
    edit(folder, "samples_sha256", hashlib.sha256(text.encode()).hexdigest())


@pytest.mark.parametrize("value", ["", "0", "-1", "1e308", "nan", "inf", "fast"])
def test_a_sample_that_cannot_be_is_named_by_its_line(value, cell):
    folder = cell(CEILING)

    def change(text):
        lines = text.splitlines()
        fields = lines[5].split(",")
        fields[lines[0].split(",").index("seconds")] = value
        return "\n".join([*lines[:5], ",".join(fields), *lines[6:]]) + "\n"

    sampled(folder, change)
    assert complaint(folder).startswith("samples.csv is damaged: in line 6 seconds is ")


@pytest.mark.parametrize("text", ["", "seconds\n1,2,3\n1\n", 'seconds\n"1'])
def test_samples_that_are_no_table_are_refused(text, cell):
    folder = cell(CEILING)
    sampled(folder, lambda _: text)
    assert complaint(folder).startswith("samples.csv is damaged: ")


def test_samples_that_are_lost_cut_or_a_folder_are_refused(cell):
    path = cell(CEILING) / "samples.csv"
    path.write_bytes(path.read_bytes()[:-40])
    assert complaint(path.parent).startswith(
        "samples.csv is not the file that record.json was written with"
    )
    path.unlink()
    assert complaint(path.parent) == "samples.csv is missing"
    path.mkdir()
    assert complaint(path.parent) == "samples.csv is no file"
