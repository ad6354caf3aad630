"""Traces recorded on a real GPU, beside this file in recordings/: the tables agree with plain SQL on them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from stepscope.trace import analysis

FOLDER = Path(__file__).parent / "recordings"
RECORDINGS = sorted(FOLDER.glob("*.sqlite"))
# Kernels of a phase: launched by a call of the same process that starts in one of the phase's ranges. A global id is
# machine, process and, in its last 24 bits, thread.
# With backtraces nsys records a launch twice under one id, as cudaLaunchKernel and as cudaLaunchKernel_v7000.
LAUNCHED = """
    SELECT COUNT(*), COALESCE(SUM(k.end - k.start), 0) FROM CUPTI_ACTIVITY_KIND_KERNEL k
    WHERE EXISTS (
        SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME r, NVTX_EVENTS n
        LEFT JOIN StringIds s ON s.id = n.textId
        WHERE r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24
        AND COALESCE(n.text, s.value) = :phase AND n.eventType = 59 AND n.globalTid >> 24 = r.globalTid >> 24
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


def test_copies_and_memsets(recording):
    tables, sql = recording
    table = tables["memory_operations"]
    own = table[(table["phase"] == "all") & (table["kind"] != "fill")]
    there = {name for (name,) in sql("SELECT name FROM sqlite_master WHERE type = 'table'")}
    expected = {}
    for kind, name in (("copy", "MEMCPY"), ("memset", "MEMSET")):
        query = f"SELECT COUNT(*), COALESCE(SUM(end - start), 0) FROM CUPTI_ACTIVITY_KIND_{name}"
        ((count, ns),) = sql(query) if f"CUPTI_ACTIVITY_KIND_{name}" in there else [(0, 0)]
        expected |= {kind: [count, ns / 1e6]} if count else {}
    sums = own.groupby("kind")[["instances", "total_ms"]].sum()
    assert {kind: pytest.approx(numbers) for kind, numbers in expected.items()} == sums.T.to_dict("list")
    assert "copy" in expected


def test_nsys_and_torch_profiler_find_the_same_kernels_in_the_same_phases():
    """Two recordings of one cell, by tools that share no code above CUPTI."""
    ours, theirs = (
        analysis.analyse(analysis.read(FOLDER / f"two_layers_bf16{end}")) for end in (".sqlite", "_torch.json.gz")
    )
    counts = [tables["phases"].set_index("phase")["kernels_total"].to_dict() for tables in (ours, theirs)]
    assert counts[0] == counts[1]
    assert counts[0]["backward"] > 100
    names = [tables["kernels"].groupby(["phase", "name"])["instances"].sum().to_dict() for tables in (ours, theirs)]
    assert names[0] == names[1]


def test_lines_of_python_are_those_of_the_marks_at_the_start_of_the_calls():
    path = FOLDER / "two_layers_bf16_autograd.sqlite"
    with closing(sqlite3.connect(path)) as database:
        query = """
            SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE EXISTS (
                SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN NVTX_EVENTS n
                ON n.eventType = 34 AND n.globalTid = r.globalTid AND n.start = r.start
                WHERE r.correlationId = k.correlationId AND n.jsonText IS NOT NULL
            )
        """
        ((count,),) = database.execute(query).fetchall()
    table = analysis.analyse(analysis.read(path))["lines"]
    assert table["operations_per_step"].sum() * 2 == count > 100
    assert table["file"].str.contains("/stepscope/model/").any()
    assert not table["file"].str.contains("site-packages/torch").any()


def test_every_kernel_that_autograd_launches_stands_in_the_table_of_modules_once():
    path = FOLDER / "two_layers_bf16_autograd.sqlite"
    with closing(sqlite3.connect(path)) as database:
        query = """
            SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k WHERE EXISTS (
                SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN NVTX_EVENTS n
                ON n.text LIKE 'autograd::engine%' AND n.globalTid = r.globalTid
                AND r.start >= n.start AND r.start < n.end WHERE r.correlationId = k.correlationId
            )
        """
        ((count,),) = database.execute(query).fetchall()
    table = analysis.analyse(analysis.read(path))["modules"]
    parts = {
        "QKV projection",
        "RoPE(Q)",
        "RoPE(K)",
        "attention scores",
        "softmax",
        "attention × V",
        "output projection",
    }
    assert parts | {"FFN", "FFN norm", "attention norm", "LM head", "embedding"} <= set(table["module"])
    assert table["kernels_per_step"].sum() * 2 == count > 100
    assert table["share_of_backward_gpu_time"].sum() == pytest.approx(1)
