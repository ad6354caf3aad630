"""Records and samples that cannot be: refused in one line that names what is wrong with them."""

import hashlib
import json
import math
import shutil
import zipfile
from pathlib import Path

import pytest
from stepscope.results import records

CELLS = Path(__file__).resolve().parents[3] / "report/example/h200/cells.zip"
TIMING = "timing/small/ctx128/bf16"
ATTENTION = "attention/naive/d64/bf16"
LADDER = "ladder/small/ctx128/fp32"
MEMORY = "memory/medium/ctx512/fp32"
CEILING = "ceilings/copy/fp32"
MEASURED = (TIMING, ATTENTION, LADDER, MEMORY, CEILING, "precision/normalisation", "profile/small/ctx256/fp32")
NUMBERS = (None, 0, -1, 1e308, math.nan, math.inf, "1.5", True, [])


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Cells of the committed example, as they were measured."""
    folder = tmp_path_factory.mktemp("cells")
    with zipfile.ZipFile(CELLS) as packed:
        for cell in MEASURED:
            for file in ("record.json", "samples.csv"):
                packed.extract(f"results/nvidia-h200/{cell}/{file}", folder)
    return folder / "results/nvidia-h200"


@pytest.fixture
def cell(archive, tmp_path):
    """A copy of one cell, which a test may change."""

    def copy(name):
        return Path(shutil.copytree(archive / name, tmp_path / name))

    return copy


def edit(folder, way, value):
    """Put a value at a place in the record; without one (...) take away what is there."""
    record = json.loads((folder / "record.json").read_text())
    parent = record
    for key in way[:-1]:
        parent = parent[key]
    if value is ...:
        del parent[way[-1]]
    else:
        parent[way[-1]] = value
    (folder / "record.json").write_text(json.dumps(record))


def complaint(folder):
    with pytest.raises(records.Damaged) as refused:
        records.read_samples(folder, records.read_record(folder)["samples_sha256"])
    line = str(refused.value)
    assert line.isprintable() and len(line) < 300
    return line


@pytest.mark.parametrize("name", MEASURED)
def test_what_was_measured_is_read(name, archive):
    record = records.read_record(archive / name)
    assert record == json.loads((archive / name / "record.json").read_text())
    samples = records.read_samples(archive / name, record["samples_sha256"])
    assert len(samples) == (archive / name / "samples.csv").read_text().count("\n") - 1


PHASE = ("summary", "phases", 0, "processes", 1)
PLACES = [
    (TIMING, (*PHASE, "median")),
    (TIMING, (*PHASE, "mean")),
    (ATTENTION, ("summary", "series", 3, "processes", 0, "median")),
    (CEILING, ("summary", "processes", 2, "mean")),
]


@pytest.mark.parametrize(("name", "way"), PLACES)
@pytest.mark.parametrize("value", NUMBERS, ids=map(repr, NUMBERS))
def test_a_time_that_cannot_be_is_named(name, way, value, cell):
    folder = cell(name)
    edit(folder, way, value)
    line = complaint(folder)
    assert line.startswith("record.json is damaged: ")
    if not (isinstance(value, float) and not math.isfinite(value)):
        assert f"processes[{way[-2]}].{way[-1]} must be" in line


@pytest.mark.parametrize(
    ("name", "way"),
    [
        (TIMING, ("summary", "modes", "step", "peak_allocated_bytes")),
        (TIMING, ("summary", "modes", "step", "first_step")),
        (LADDER, ("summary", "ladder", "kernels")),
        (LADDER, ("summary", "ladder", "loss")),
        (LADDER, ("summary", "ladder", "gradient_sample", 7)),
        (MEMORY, ("summary", "memory", "baselines", "model")),
        (TIMING, ("telemetry", "power_max_w")),
        (TIMING, ("provenance", "duration_s")),
        ("precision/normalisation", ("summary", "tables", "forced", 0, "value")),
    ],
)
@pytest.mark.parametrize("value", [1e308, math.nan, -math.inf])
def test_a_number_beyond_all_bounds_is_refused_wherever_it_stands(name, way, value, cell):
    folder = cell(name)
    edit(folder, way, value)
    assert complaint(folder).startswith("record.json is damaged: ")


@pytest.mark.parametrize(
    ("name", "way", "value"),
    [
        (TIMING, ("summary", "modes", "step", "peak_allocated_bytes"), 1.1e15),  # more than a petabyte
        (TIMING, (*PHASE, "median"), 3.3e7),  # more than a year
        (TIMING, (*PHASE, "std"), -1e-9),
        (MEMORY, ("summary", "memory", "baselines", "start"), -1),
        (TIMING, ("summary", "modes", "step", "status"), "fine"),
        (TIMING, ("summary", "modes", "step", "status"), ...),
        (TIMING, ("summary", "phases", 0, "status"), ...),
        (TIMING, (*PHASE, "median"), ...),
        (TIMING, ("summary",), []),
        (TIMING, ("provenance", "command"), ...),
        (TIMING, ("provenance", "started"), "yesterday"),
        (TIMING, ("machine", "device"), ...),
        (TIMING, ("spec",), "small"),
        (TIMING, ("code",), 5),
        (TIMING, ("schema_version",), 9),
        (TIMING, ("telemetry",), ...),
        (TIMING, ("samples_sha256",), "0"),
        (TIMING, ("samples_sha256",), "0" * 64),
    ],
)
def test_what_is_missing_or_of_another_kind_is_refused(name, way, value, cell):
    folder = cell(name)
    edit(folder, way, value)
    assert "damaged" in (line := complaint(folder)) or "is not the file" in line


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "5", "\x00", "{}", "half", "[" * 10**5, "9" * 5000])
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
    edit(folder, ("samples_sha256",), hashlib.sha256(text.encode()).hexdigest())


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
    assert complaint(path.parent).startswith("samples.csv is not the file that record.json was written with")
    path.unlink()
    assert complaint(path.parent) == "samples.csv is missing"
    path.mkdir()
    assert complaint(path.parent) == "samples.csv cannot be read: Is a directory"


VALUE = {"variant": "bf16", "process": None, "mode": "step", "quantity": "launches", "unit": "1", "value": 2364}


@pytest.fixture
def turns(cell):
    """A record of variants that were measured in turns."""
    folder = cell(TIMING)
    edit(folder, ("schema_version",), 3)
    variants = {"bf16": {"status": "ok", "reason": "", "limited": "launches"}}
    edit(folder, ("summary",), {"variants": variants, "values": [VALUE], "statuses": [{"status": "ok"}]})
    return folder


def test_a_record_of_variants_is_read(turns):
    assert records.read_record(turns)["summary"]["values"] == [VALUE]


@pytest.mark.parametrize(
    ("way", "value"),
    [
        (("variants",), ...),
        (("values",), ...),
        (("statuses",), ...),
        (("variants", "bf16", "status"), "slow"),
        (("variants", "bf16", "limited"), "lunch"),
        (("values", 0, "value"), None),
        (("values", 0, "value"), -1),
        (("values", 0, "unit"), ...),
        (("values", 0), VALUE | {"unit": "s", "value": 0}),
        (("values", 0), VALUE | {"unit": "s", "value": 3.3e7}),
        (("values", 0), VALUE | {"unit": "B", "value": 1.1e15}),
    ],
)
def test_a_record_of_variants_that_cannot_be_is_refused(way, value, turns):
    edit(turns, ("summary", *way), value)
    assert complaint(turns).startswith("record.json is damaged: ")
