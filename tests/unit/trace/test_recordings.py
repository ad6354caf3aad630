"""Traces recorded on a real GPU, beside this file in recordings/: the tables agree with plain SQL
on them."""

import sqlite3
from contextlib import closing

import pytest
from common import TRACES
from nsys_exports import by_phase
from pandas.testing import assert_series_equal
from pytest import approx
from stepscope.trace import analysis, comparison

STEPS = 2  # of each recording
RECORDINGS = sorted(TRACES.glob("*.sqlite"))
# Kernels of a phase: launched by a call of the same process that starts in one of the phase's
# ranges. A global id is machine, process and, in its last 24 bits, thread.
# With backtraces nsys records a launch twice under one id, as cudaLaunchKernel and as
# cudaLaunchKernel_v7000.
LAUNCHED = """
    SELECT COUNT(*), COALESCE(SUM(k.end - k.start), 0) FROM CUPTI_ACTIVITY_KIND_KERNEL k
    WHERE EXISTS (
        SELECT * FROM CUPTI_ACTIVITY_KIND_RUNTIME r, NVTX_EVENTS n
        LEFT JOIN StringIds s ON s.id = n.textId
        WHERE r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24
        AND COALESCE(n.text, s.value) = :phase AND n.eventType = 59
        AND n.globalTid >> 24 = r.globalTid >> 24
        AND r.start >= n.start AND r.start < n.end
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


def of_memory(tables):
    """Which rows of the table of kernels are copies and fills."""
    return tables["kernels"]["full_name"].str.startswith("[CUDA mem")


def test_kernels_and_their_time_by_phase(recording):
    tables, sql = recording
    times = tables["kernels"][~of_memory(tables)].groupby("phase")["time"].sum() * STEPS
    ranges = "SELECT COUNT(*), SUM(end - start) FROM NVTX_EVENTS WHERE text = :phase"
    assert len(tables["phases"]) > 0
    for row in tables["phases"].itertuples():
        ((count, ns),) = sql(LAUNCHED, phase=row.phase)
        assert [row.kernels * STEPS, times[row.phase]] == approx([count, ns / 1e9])
        ((number, length),) = sql(ranges, phase=row.phase)
        assert [row.count, row.host_time * STEPS] == approx([number, length / 1e9])


def test_kernels_by_name(recording):
    tables, sql = recording
    query = """
        SELECT s.value, COUNT(*), SUM(k.end - k.start), MIN(k.end - k.start), MAX(k.end - k.start)
        FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName GROUP BY 1
    """
    table = tables["kernels"][~of_memory(tables)].query("phase == 'all'").set_index("full_name")
    found = table[["calls", "time", "min", "max"]] * [STEPS, STEPS * 1e9, 1e9, 1e9]
    assert found.T.to_dict("list") == {name: approx(numbers) for name, *numbers in sql(query)}


def test_calls_and_sums(recording):
    tables, sql = recording
    query = """
        SELECT s.value, SUM(r.end - r.start) / 1e9 FROM CUPTI_ACTIVITY_KIND_RUNTIME r
        JOIN StringIds s ON s.id = r.nameId
        WHERE r.eventClass <> 67 GROUP BY 1  -- no second row of a call, which has its backtrace
    """
    table = tables["modules"]
    calls = table[table["kind"] == "call"].set_index("module")["host_time"] * STEPS
    assert calls.to_dict() == approx(dict(sql(query)))
    shares = tables["categories"].groupby("phase")["share"].sum()
    assert shares.to_list() == approx([1] * len(shares))
    assert (tables["gaps"]["busy"] <= tables["gaps"]["wall"]).all() and (
        tables["gaps"]["busy"] > 0
    ).all()


def test_copies_and_memsets(recording):
    tables, sql = recording
    table = tables["kernels"]
    own = table[of_memory(tables)].query("phase == 'all'")
    there = {name for (name,) in sql("SELECT name FROM sqlite_master WHERE type = 'table'")}
    expected = {}
    for name in ("MEMCPY", "MEMSET"):
        query = f"SELECT COUNT(*), COALESCE(SUM(end - start), 0) FROM CUPTI_ACTIVITY_KIND_{name}"
        ((count, ns),) = sql(query) if f"CUPTI_ACTIVITY_KIND_{name}" in there else [(0, 0)]
        expected |= {name: [count, ns / 1e9]} if count else {}
    kind = own["full_name"].str.extract(r"mem(cpy|set)", expand=False).radd("MEM").str.upper()
    sums = own.groupby(kind)[["calls", "time"]].sum() * STEPS
    assert {kind: approx(numbers) for kind, numbers in expected.items()} == sums.T.to_dict("list")
    assert "MEMCPY" in expected


def test_nsys_and_torch_profiler_find_the_same_kernels_in_the_same_phases():
    """Two recordings of one cell, by tools that share no code above CUPTI."""
    recordings = [TRACES / f"two_layers_bf16{end}" for end in (".sqlite", "_torch.json.gz")]
    ours, theirs = (analysis.analyse(analysis.read(recording)) for recording in recordings)
    counted = ["count", "kernels", "memory_operations"]
    counts = [by_phase(tables)[counted].T.to_dict() for tables in (ours, theirs)]
    assert counts[0] == counts[1] and counts[0]["backward"]["kernels"] == 200
    kernels = (tables["kernels"].groupby(["phase", "name"])["calls"] for tables in (ours, theirs))
    assert_series_equal(*(calls.sum() for calls in kernels))
    kernels = comparison.compared(ours, theirs).query("kind == 'kernel'")
    assert not {"came", "went"} & set(kernels["change"])
    assert (kernels["before_calls"] == kernels["after_calls"]).all()


def test_lines_of_python_behind_calls_and_calls_into_the_system():
    """By SQL: calls whose innermost frame of Python is a line of softmax.py, and their kernels."""
    path = TRACES / "two_layers_bf16_autograd.sqlite"
    frame = 'json_extract(n.jsonText, \'$."Python Backtrace on CUDA".Frames[0]'
    query = f"""
        SELECT {frame}.Line') AS line, COUNT(DISTINCT n.start), SUM(k.end - k.start) / 1e9
        FROM NVTX_EVENTS n JOIN StringIds f ON f.id = {frame}.File')
        JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.start = n.start AND r.globalTid = n.globalTid
        JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId
        WHERE f.value LIKE '%/model/softmax.py' GROUP BY 1
    """
    system = """
        SELECT s.value, COUNT(*), SUM(o.end - o.start) / 1e9
        FROM OSRT_API o JOIN StringIds s ON s.id = o.nameId GROUP BY 1
    """
    table = analysis.analyse(analysis.read(path))["modules"]
    with closing(sqlite3.connect(path)) as database:
        lines = {f"softmax.py:{line} softmax": rest for line, *rest in database.execute(query)}
        calls = {name: rest for name, *rest in database.execute(system)}
    assert len(lines) == 5 and len(calls) == 4
    for kind, time, expected in (("line", "gpu_time", lines), ("system", "host_time", calls)):
        own = table[table["kind"] == kind].assign(name=table["module"].str.split("/").str[-1])
        own = own[own["name"].isin(expected)].set_index("name")[["calls", time]] * STEPS
        assert own.T.to_dict("list") == {name: pytest.approx(row) for name, row in expected.items()}


def test_every_kernel_that_autograd_launches_stands_in_the_table_of_modules_once():
    path = TRACES / "two_layers_bf16_autograd.sqlite"
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
    assert parts | {"FFN", "FFN norm", "attention norm", "LM head", "embedding"} <= set(
        table["module"][table["backward_time"] > 0]
    )
    assert table["backward_kernels"].sum() * STEPS == count > 100
