"""Traces recorded on a real GPU, beside this file in recordings/: the tables agree with plain SQL on them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from stepscope.trace import analysis

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.sqlite"))
# Kernels of a phase: launched by a call of the same process that starts in one of the phase's ranges. A global id is
# machine, process and, in its last 24 bits, thread.
LAUNCHED = """
    SELECT COUNT(*), COALESCE(SUM(k.end - k.start), 0) FROM CUPTI_ACTIVITY_KIND_KERNEL k
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24
    WHERE EXISTS (
        SELECT * FROM NVTX_EVENTS n
        LEFT JOIN StringIds s ON s.id = n.textId
        WHERE COALESCE(n.text, s.value) = :phase AND n.eventType = 59 AND n.globalTid >> 24 = r.globalTid >> 24
        AND r.start >= n.start AND r.start < n.end AND (:any_thread OR n.globalTid = r.globalTid)
    )
"""


@pytest.fixture(params=RECORDINGS, ids=lambda path: path.stem)
def recording(request):
    """(tables, a function that runs SQL on the file)."""
    with closing(sqlite3.connect(request.param)) as database:
        yield (
            analysis.analyse(analysis.read(request.param)),
            lambda query, **given: database.execute(query, given).fetchall(),
        )


def test_kernels_and_their_time_by_phase(recording):
    tables, sql = recording
    kernels = tables["kernels"]
    assert len(tables["phases"]) > 0
    for row in tables["phases"].itertuples():
        (count, ns), *_ = sql(LAUNCHED, phase=row.phase, any_thread=1)
        assert row.kernels_total == count
        assert kernels[kernels["phase"] == row.phase]["total_ms"].sum() == pytest.approx(ns / 1e6)
        (count, _), *_ = sql(LAUNCHED, phase=row.phase, any_thread=0)
        assert row.kernels_by_thread_rule_total == count
        ((number, length),) = sql(
            "SELECT COUNT(*), SUM(end - start) FROM NVTX_EVENTS WHERE text = :phase", phase=row.phase
        )
        assert row.count == number and row.host_ms_total == pytest.approx(length / 1e6)


def test_kernels_by_name(recording):
    tables, sql = recording
    query = """
        SELECT s.value, COUNT(*), SUM(k.end - k.start), MIN(k.end - k.start), MAX(k.end - k.start)
        FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName GROUP BY 1
    """
    expected = {name: numbers for name, *numbers in sql(query)}
    table = tables["kernels"]
    table = table[table["phase"] == "all"].set_index("full_name")
    assert set(table.index) == set(expected)
    for name, (count, total, least, most) in expected.items():
        row = table.loc[name]
        assert [row["instances"], row["total_ms"] * 1e6] == pytest.approx([count, total])
        assert [row["min_us"] * 1e3, row["max_us"] * 1e3] == pytest.approx([least, most])


def test_calls_and_sums(recording):
    tables, sql = recording
    query = """
        SELECT s.value, SUM(r.end - r.start) / 1e6 FROM CUPTI_ACTIVITY_KIND_RUNTIME r
        JOIN StringIds s ON s.id = r.nameId GROUP BY 1
    """
    calls = tables["api_calls"].set_index("name")["total_ms"]
    assert calls.to_dict() == pytest.approx(dict(sql(query)))
    checks = dict(tables["checks"].to_numpy().tolist())
    assert checks["operations_not_linked_to_a_launch"] == 0
    assert checks["gpu_ms_in_phases"] + checks["gpu_ms_outside_every_phase"] == pytest.approx(checks["gpu_ms_total"])
    shares = tables["categories"].groupby("phase")["share_of_phase_gpu_time"].sum()
    assert shares.to_list() == pytest.approx([1] * len(shares))
    assert tables["busy"]["busy_share_of_wall"].between(0, 1).all()
