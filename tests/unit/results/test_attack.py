"""A sample of hostile records and samples: none does harm (benchmarks/attack.py tries more)."""

import importlib.util
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "benchmarks/attack.py"


@pytest.fixture(scope="module")
def attack():
    spec = importlib.util.spec_from_file_location("attack", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["records", "samples"])
def test_hostile_files_are_refused_or_do_no_harm(kind, attack, tmp_path):
    found = attack.attacked(kind, 20, 0, tmp_path)
    assert [one for one in found if one[0] in attack.DEFECTS] == []
    assert sum(verdict == "refused" for verdict, _, _ in found) > 5


@pytest.mark.parametrize(
    "spoil, said",
    [
        (lambda cell: cell.write_rows(cell.samples[:1]), "the spec asks for"),
        (lambda cell: scaled(cell, 1e-12), "seconds is"),
        (lambda cell: scaled(cell, 1e-5), "which no device reaches"),
    ],
)
def test_what_cannot_be_is_told(spoil, said, attack, tmp_path, monkeypatch):
    monkeypatch.setitem(attack.KINDS, "planted", (lambda cell, draw: spoil(cell) or "planted",))
    monkeypatch.setattr(attack, "sampled", lambda plan: ["nvidia-h200/timing/llama-1b/ctx128/fp32"])
    (found,) = attack.attacked("planted", 1, 0, tmp_path)
    assert found[0] == "refused"
    assert said in (tmp_path / "work/log").read_text()


def scaled(cell, factor):
    header, *rows = cell.samples
    place = header.index("seconds")
    for row in rows:
        row[place] = repr(factor * float(row[place]))
    cell.write_rows([header, *rows])
