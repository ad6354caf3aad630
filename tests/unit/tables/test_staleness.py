"""Why cells are to be measured, from results that were made and then changed by hand."""

import json

import pytest
from stepscope.tables.staleness import REASONS, Stale, stale_cells

NAME = "machine/timing/nano/ctx6/fp32"
SUMMARY = {"modes": {}, "phases": []}


@pytest.fixture
def cell(results, timing_spec):
    """Folder of a cell that is as it should be."""
    results.expect(NAME, timing_spec)
    return results.measure(NAME, timing_spec, SUMMARY)


def found(results, part=None):
    return stale_cells(results.plan(), results.folder, {"timing": part})


def changed(folder, **keys):
    path = folder / "record.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def test_a_cell_that_holds_is_not_among_them(results, cell):
    assert found(results) == {}


def test_a_cell_that_never_ran_is_missing_and_one_that_left_a_log_has_failed(results, timing_spec):
    results.expect(NAME, timing_spec)
    assert found(results) == {NAME: Stale("missing", "not measured yet")}
    (results.folder / NAME).mkdir(parents=True)
    (results.folder / NAME / "measure.log").write_text("error: no room\n")
    assert found(results) == {NAME: Stale("failed", "error: no room")}


def test_what_is_gone_is_made_again(results, cell):
    assert found(results, "trace") == {NAME: Stale("missing", "trace is gone")}
    (cell / "trace").mkdir()
    assert found(results, "trace") == {}
    (cell / "samples.csv").unlink()
    assert found(results, "trace") == {NAME: Stale("missing", "samples.csv is gone")}


def test_each_disagreement_has_its_reason(results, cell, timing_spec):
    record = json.loads((cell / "record.json").read_text())
    ways = {
        "spec": {"spec": timing_spec | {"seed": 7}},
        "code": {"code": "another"},
        "hardware": {"machine": record["machine"] | {"device": "other"}},
        "damaged": {"samples_sha256": "0" * 64},
    }
    assert set(ways) < set(REASONS)
    for why, keys in ways.items():
        (cell / "record.json").write_text(json.dumps(record))
        changed(cell, **keys)
        assert found(results)[NAME].why == why
    changed(cell, **ways["spec"])
    assert found(results)[NAME].reason.endswith(f"seed is 7 there, {timing_spec['seed']} now")
