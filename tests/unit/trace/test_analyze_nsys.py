"""The program as a person runs it."""

import json
import sqlite3

import pandas as pd
import pytest
from nsys_exports import LAYOUTS, Export, thread
from stepscope.trace.table_names import COLUMNS, TABLES

MAIN = thread(1)


@pytest.fixture
def trace(tmp_path):
    """An export with two steps, each with a forward pass of 20 kernels."""
    export = Export(LAYOUTS["2025.3"])
    for zero in (0, 1000):
        export.range("step", zero, zero + 900, MAIN)
        export.range("forward", zero, zero + 500, MAIN)
        for at in range(zero, zero + 400, 20):
            export.launch("void gemm<float>(int)", at, at + 5, at + 15)
    return export.write(tmp_path / "trace.sqlite")


def test_it_writes_tables_and_a_summary_and_prints_it(run_analyze, trace, tmp_path):
    folder = tmp_path / "new" / "out"
    done = run_analyze(trace, "--out", folder)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.strip() == (folder / "summary.md").read_text().strip()
    assert "| forward | 2 |" in done.stdout
    assert {path.name for path in folder.iterdir()} == {"summary.md", *(f"{name}.csv" for name in TABLES)}
    for name in TABLES:
        assert tuple(pd.read_csv(folder / f"{name}.csv").columns) == COLUMNS[name]
    phases = pd.read_csv(folder / "phases.csv").set_index("phase")
    assert phases["kernels_total"].to_dict() == {"step": 40, "forward": 40}


def test_phases_and_layers_may_be_given(run_analyze, trace, tmp_path):
    done = run_analyze(trace, "--phases", "forward,", "--layers", 6, "--out", tmp_path / "out")
    assert done.returncode == 0
    assert list(pd.read_csv(tmp_path / "out" / "phases.csv")["phase"]) == ["forward"]
    kernels = pd.read_csv(tmp_path / "out" / "kernels.csv")
    assert kernels[["layers", "per_layer", "remainder"]].to_numpy().tolist() == [[6, 3, 2], [6, 3, 2]]


def test_no_phase_at_all_is_an_error(run_analyze, trace, tmp_path):
    done = run_analyze(trace, "--phases", " ,", "--out", tmp_path / "out")
    assert done.returncode == 2 and "names no range" in done.stderr


def bad_inputs(folder, trace):
    """Words for the program → what its one line says."""
    whole = trace.read_bytes()
    (folder / "cut.sqlite").write_bytes(whole[: len(whole) // 2])
    (folder / "text.sqlite").write_text("no database\n" * 100)
    (folder / "empty.sqlite").write_bytes(b"")
    (folder / "report.nsys-rep").write_bytes(b"x")
    (folder / "notes.txt").write_text("x")
    (folder / "trace.json").write_text(json.dumps({"traceEvents": 1}))
    (folder / "blocked").write_text("a file, no folder")
    with sqlite3.connect(folder / "other.sqlite") as database:
        database.execute("CREATE TABLE songs (name TEXT)")
    database.close()
    with sqlite3.connect(folder / "wrong.sqlite") as database:
        database.execute("CREATE TABLE NVTX_EVENTS (start TEXT, end TEXT, text TEXT, globalTid INTEGER)")
        database.execute("INSERT INTO NVTX_EVENTS VALUES ('soon', 'later', 'x', 1)")
    database.close()
    return {
        "missing": ([folder / "nowhere.sqlite"], "there is no such file"),
        "a folder": ([folder], "is a folder"),
        "truncated": ([folder / "cut.sqlite"], "cannot be read"),
        "no database": ([folder / "text.sqlite"], "cannot be read"),
        "nothing": ([folder / "empty.sqlite"], "not a trace of Nsight Systems"),
        "other database": ([folder / "other.sqlite"], "not a trace of Nsight Systems"),
        "wrong types": ([folder / "wrong.sqlite"], "cannot be read"),
        "no nsys": ([folder / "report.nsys-rep"], "needs nsys"),
        "other ending": ([folder / "notes.txt"], "give a trace that ends in"),
        "damaged JSON": ([folder / "trace.json"], "not a trace of torch.profiler"),
        "unknown phase": ([trace, "--phases", "forward,lunch"], "'lunch'"),
        "a kernel is no phase": ([trace, "--phases", "void gemm<float>(int)"], "no range named 'void gemm"),
        "unwritable": ([trace, "--out", folder / "blocked" / "out"], "cannot write"),
        "file as folder": ([trace, "--out", folder / "blocked"], "cannot write"),
    }


def test_bad_input_is_one_line(run_analyze, trace, tmp_path):
    for name, (words, told) in bad_inputs(tmp_path, trace).items():
        words = words if "--out" in words else [*words, "--out", tmp_path / "out"]
        done = run_analyze(*words, path="/nowhere")
        assert done.returncode == 1, name
        assert done.stderr.startswith("error: ") and told in done.stderr, (name, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1 and done.stdout == "", (name, done.stderr)


def test_nsys_exports_a_report(run_analyze, trace, tmp_path):
    (tmp_path / "bin").mkdir()
    nsys = tmp_path / "bin" / "nsys"
    (tmp_path / "report.nsys-rep").write_bytes(b"x")
    # Its arguments: export --type sqlite --force-overwrite true --output FILE REPORT
    nsys.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "export --type sqlite" ] && cp {trace} "$7"\n')
    nsys.chmod(0o755)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    done = run_analyze(tmp_path / "report.nsys-rep", "--out", tmp_path / "out", path=path)
    assert done.returncode == 0 and "| forward | 2 |" in done.stdout
    nsys.write_text("#!/bin/sh\necho first >&2\necho 'the report is damaged' >&2\nexit 3\n")
    done = run_analyze(tmp_path / "report.nsys-rep", "--out", tmp_path / "out", path=path)
    assert done.returncode == 1 and done.stderr.splitlines() == [
        f"error: {tmp_path / 'report.nsys-rep'}: nsys export failed: the report is damaged"
    ]


def test_wrong_flags_are_refused(run_analyze, trace, tmp_path):
    done = run_analyze(trace, "--layers", 0, "--out", tmp_path / "out")
    assert done.returncode == 2 and "use at least 1" in done.stderr
