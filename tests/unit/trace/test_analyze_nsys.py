"""The program as a person runs it."""

import json
import os
import shlex
import sqlite3
from contextlib import closing

import pandas as pd
import pytest
from nsys_exports import Export
from pytest import approx
from stepscope.trace import comparison


@pytest.fixture
def trace(tmp_path):
    """An export with two steps, each with a forward pass of 20 kernels."""
    export = Export()
    for zero in (0, 1000):
        export.range("step", zero, zero + 900)
        export.range("forward", zero, zero + 500)
        times = range(zero, zero + 400, 20)
        export.launches(*times, name="void gemm<float>(int)", later=5, length=10)
    return export.write(tmp_path / "trace.sqlite")


def test_it_writes_tables_and_a_summary_and_prints_it(run_analyze, trace, tmp_path):
    folder = tmp_path / "new" / "out"
    done = run_analyze(trace, "--out", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == (folder / "summary.md").read_text().strip()
    assert "| forward | 2 |" in done.stdout
    names = {"phases", "kernels", "categories", "gaps", "modules", "timeline", "processes"}
    assert {path.stem for path in folder.iterdir()} == {"summary", *names}
    phases = pd.read_csv(folder / "phases.csv")
    assert phases[["phase", "kernels"]].to_numpy().tolist() == [["step", 20], ["forward", 20]]


def test_phases_and_layers_may_be_given(run_analyze, trace, tmp_path):
    done = run_analyze(trace, "--phases", "forward,", "--layers", 6, "--out", tmp_path)
    assert done.returncode == 0
    assert list(pd.read_csv(tmp_path / "phases.csv")["phase"]) == ["forward"]
    kernels = pd.read_csv(tmp_path / "kernels.csv")
    assert kernels[["calls", "layers", "per_layer"]].to_numpy().tolist() == [[20, 6, 3]] * 2


def bad_inputs(folder, trace):
    """What is typed behind the program, a file's name first → what its one line says."""
    whole = trace.read_bytes()
    (folder / "cut.sqlite").write_bytes(whole[: len(whole) // 2])
    (folder / "text.sqlite").write_text("no database\n" * 100)
    (folder / "empty.sqlite").write_bytes(b"")
    (folder / "report.nsys-rep").write_bytes(b"x")
    (folder / "notes.txt").write_text("x")
    (folder / "trace.json").write_text(json.dumps({"traceEvents": 1}))
    (folder / "blocked").write_text("a file, no folder")
    wrong = pd.DataFrame({"start": ["soon"], "end": "later", "text": "x", "globalTid": 1})
    for name, table in (("songs", pd.DataFrame({"name": ["x"]})), ("NVTX_EVENTS", wrong)):
        with closing(sqlite3.connect(folder / f"{name}.sqlite")) as database:
            table.to_sql(name, database)
    return {
        "nowhere.sqlite": "there is no such file",
        "''": "is a folder",
        "cut.sqlite": "cut off or damaged",
        "text.sqlite": "not a trace of Nsight Systems",
        "empty.sqlite": "not a trace of Nsight Systems",
        "songs.sqlite": "not a trace of Nsight Systems",
        "NVTX_EVENTS.sqlite": "cut off or damaged",
        "report.nsys-rep": "needs nsys",
        "notes.txt": "give a trace that ends in",
        "trace.json": "not a trace of torch.profiler",
        "trace.sqlite --phases forward,lunch": "'lunch'",
        "trace.sqlite --phases 'void gemm<float>(int)'": "no range named 'void gemm",
        f"trace.sqlite --out '{folder}/blocked/out'": "cannot write",
        f"trace.sqlite --out '{folder}/blocked'": "cannot write",
    }


def test_bad_input_is_one_line(run_analyze, trace, tmp_path):
    for typed, told in bad_inputs(tmp_path, trace).items():
        file, *words = shlex.split(typed)
        done = run_analyze(tmp_path / file, *words, path="/nowhere")
        assert (done.returncode, done.stdout) == (1, ""), told
        assert done.stderr.startswith("error: ") and told in done.stderr, done.stderr
        assert done.stderr.strip().count("\n") == 0, done.stderr


def test_nsys_exports_a_report(run_analyze, trace, tmp_path):
    (tmp_path / "bin").mkdir()
    nsys, report = tmp_path / "bin" / "nsys", tmp_path / "report.nsys-rep"
    report.write_bytes(b"x")
    # Its arguments: export --type sqlite --include-json true --force-overwrite true
    # --output FILE REPORT
    nsys.write_text(f'#!/bin/sh\n[ "$1 $2 $3" = "export --type sqlite" ] && cp {trace} "$9"\n')
    nsys.chmod(0o755)
    words = {"path": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    done = run_analyze(report, **words)
    assert done.returncode == 0 and "| forward | 2 |" in done.stdout
    nsys.write_text("#!/bin/sh\necho first >&2\necho 'the report is damaged' >&2\nexit 3\n")
    done = run_analyze(report, **words)
    assert done.returncode == 1
    assert done.stderr == f"error: {report}: nsys export failed: the report is damaged\n"


def test_a_name_with_commas_can_be_chosen(run_analyze, tmp_path):
    export = Export()
    export.range("load, tokenise", 0, 100)
    export.launches(10)
    path = export.write(tmp_path / "trace.sqlite")
    done = run_analyze(path, "--phase", "load, tokenise", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert list(pd.read_csv(tmp_path / "phases.csv")["phase"]) == ["load, tokenise"]


def test_names_are_text_on_the_terminal_and_in_markdown(run_analyze, tmp_path):
    export = Export()
    name = "\x1b[31mred\x07 \u202eturned [a](http://b.c) ![x](y) **z** <b> $m$ `c` | ~~d~~"
    export.range(name, 0, 100)
    export.launch("k\x1b]0;title\x07", 10, 20, 30)
    done = run_analyze(export.write(tmp_path / "trace.sqlite"))
    assert done.returncode == 0 and not set("\x1b\x07\u202e") & set(done.stdout)
    shown = (
        "\\[a\\](http&#58;//b.c) !\\[x\\](y) \\*\\*z\\*\\* &lt;b&gt; \\$m\\$ \\`c\\` \\|"
        " \\~\\~d\\~\\~"
    )
    assert shown in done.stdout


def test_two_traces_are_compared(run_analyze, tmp_path):
    paths = []
    for name, kernels in (("a", {"gemm": 100, "gone": 10}), ("b", {"gemm": 150, "new": 20})):
        export = Export()
        for zero in (0, 10_000):
            export.range("step", zero, zero + 1000)
            for kernel, length in kernels.items():
                export.launches(zero, name=kernel, length=length)
        paths.append(export.write(tmp_path / f"{name}.sqlite"))
    done = run_analyze(*paths)
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "out" / "compared.csv").set_index("name")
    kernels = table.query("kind == 'kernel'")
    assert kernels["change"].to_dict() == {"gemm": "grew", "new": "came", "gone": "went"}
    assert kernels["difference"].tolist() == approx([50e-9, 20e-9, -10e-9])
    step = table.loc["step", ["change", "before", "after"]].tolist()
    assert step == ["grew", approx(110e-9), approx(170e-9)]
    for side in ("before", "after"):
        assert (tmp_path / "out" / side / "kernels.csv").is_file()
    assert "Before and after" in done.stdout and "| gemm |" in done.stdout


def test_a_change_of_two_per_cent_is_none():
    def analysis(times):
        phases = pd.DataFrame({"phase": list("abcd"), "gpu_time": times, "kernels": 1})
        nothing = pd.DataFrame()
        return {"phases": phases, "kernels": nothing, "categories": nothing, "modules": nothing}

    table = comparison.compared(analysis([100.0] * 4), analysis([98, 102, 97.9, 102.1]))
    assert table.set_index("name")["change"].sort_index().tolist() == [
        "same",
        "same",
        "shrank",
        "grew",
    ]


def hostile(folder):
    """Files that were made to hang, and what is said of each; None where the file can be analysed
    after all."""
    long = Export()
    long.range("step", 0, 100)
    elementwise = "elementwise_kernel<" + "gpu_kernel_impl<" * 20_000
    for name in ("sm80_xmma_gemm_" * 20_000, elementwise, "a" * 300_000):
        long.launches(10, name=name)
    deep = Export()
    for at in range(200_000):
        deep.range("r", at, 10**7 - at)
    deep.launches(10)
    endless = Export().write(folder / "endless.sqlite")
    numbers = "WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n)"
    view = f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {numbers} SELECT start FROM n"
    with closing(sqlite3.connect(endless)) as database:
        database.execute(view)
    (folder / "deep.json").write_text("[" * 200_000)
    os.mkfifo(folder / "pipe.sqlite")
    return {
        long.write(folder / "long.sqlite"): None,
        deep.write(folder / "nested.sqlite"): "lie in each other; end each with range_pop()",
        endless: "it has no kernels",
        folder / "deep.json": "is not a trace of torch.profiler",
        folder / "pipe.sqlite": "is a pipe or a device",
    }


def test_files_that_were_made_to_hang(run_analyze, tmp_path):
    for path, told in hostile(tmp_path).items():
        done = run_analyze(path)
        assert done.returncode == (0 if told is None else 1), (path, done.stderr[-300:])
        assert (told or "") in done.stderr, (path, done.stderr)
        assert done.stderr.count("\n") == (told is not None), (path, done.stderr)


@pytest.mark.parametrize(
    "words, told",
    {
        "--phases ,": "names no range",
        "--layers 0": "use at least 1",
        "--steps 0": "use at least 1",
        "--most-seconds 0": "no number above 0",
    }.items(),
)
def test_wrong_flags_are_refused(run_analyze, trace, tmp_path, words, told):
    done = run_analyze(trace, *words.split())
    assert done.returncode == 2 and told in done.stderr
