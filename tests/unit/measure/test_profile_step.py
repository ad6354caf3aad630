"""The profiling program: with torch.profiler for real, and behind an nsys that does as it is
told."""

import csv
import gzip
import json
import os
import stat
import statistics
from collections import Counter
from types import SimpleNamespace

import pytest
import torch
from common import picked
from stepscope.measure import nsys
from stepscope.measure.first_step import before_the_steps

SHAPE = "--d-model 8 --d-ff 16 --num-layers 2 --num-heads 2 --vocab-size 11 --context 6 --batch 2"
QUICK = f"{SHAPE} --device cpu --threads 1 --warmup 1 --steps 3"
# The program in a process where nsys may record a CPU; its flags are the first argument.
BEHIND_NSYS = """
import profile_step
profile_step.nsys.missing = lambda device: None
sys.argv = ["profile_step.py", *sys.argv[1].split()]
profile_step.main()
"""
# Writes down how it was called, runs the program behind it, and exports as many kernels as its turn
# says. A turn may also be `fail` (it ends with 3 before the program has written anything), `crash`
# (with 3 after it) or `oom`.
FAKE_NSYS = """#!{python}
import json, pathlib, sqlite3, subprocess, sys
here = pathlib.Path(__file__).parent
calls = here / "calls.json"
log = json.loads(calls.read_text()) if calls.exists() else []
if sys.argv[1] == "--version":
    print("NVIDIA Nsight Systems version 0.1")
elif sys.argv[1] == "profile":
    inner = next(i for i, word in enumerate(sys.argv) if i > 1 and not word.startswith("--"))
    turn = (here / "turns").read_text().split()[len(log)]
    calls.write_text(json.dumps([*log, [sys.argv[2:inner], sys.argv[inner:]]]))
    if turn == "fail":
        sys.exit("the program fell over")
    code = subprocess.run(sys.argv[inner:]).returncode
    out = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
    if turn == "crash":
        print("Illegal --trace argument"), sys.exit(3)
    if turn == "oom":
        record = json.loads((out / "record.json").read_text())
        record["summary"]["statuses"][0] |= {{"status": "oom", "reason": "CUDA out of memory"}}
        (out / "record.json").write_text(json.dumps(record))
    given = [word for word in sys.argv[2:inner] if word.startswith("--output=")]
    report = given[0].split("=", 1)[1]
    pathlib.Path(report + ".nsys-rep").write_text(turn)
    sys.exit(code)
elif sys.argv[1] == "export":
    count = int(pathlib.Path(sys.argv[-1]).read_text())
    path = sys.argv[sys.argv.index("--output") + 1]
    pathlib.Path(path).unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        if count:
            database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start)")
            rows = [(i,) for i in range(count)]
            database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?)", rows)
"""


@pytest.fixture
def behind_nsys(tmp_path, run_python):
    """Run the program with an nsys that takes these turns; gives (exit code, out, err, calls of
    nsys)."""

    def run(turns, flags=""):
        folder = tmp_path / "nsys"
        folder.mkdir()
        program = folder / "nsys"
        program.write_text(FAKE_NSYS.format(python=os.sys.executable))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (folder / "turns").write_text(turns)
        environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
        words = f"{QUICK} --profiler nsys --out {tmp_path}/cell {flags}"
        code, out, err = run_python(BEHIND_NSYS, words, env=environment)
        return code, out, err, json.loads((folder / "calls.json").read_text())

    return run


def _cell(folder):
    record = json.loads((folder / "record.json").read_text())
    rows = list(csv.DictReader((folder / "samples.csv").read_text().splitlines()))
    return record, rows, sorted(path.name for path in (folder / "trace").iterdir())


def _option(words, name):
    return next((word.split("=", 1)[1] for word in words if word.startswith(f"--{name}=")), None)


def test_torch_profiler_records_the_measured_steps_and_their_ranges(measured_cell):
    cell = measured_cell("profile_step.py", f"{QUICK} --profiler auto")
    assert cell.record["summary"]["trace"]["profiler"] == "torch"
    assert cell.record["machine"].get("tools") is None
    own = picked(cell.rows, phase="forward", warmup="False")
    measured = sorted(float(row["seconds"]) for row in own)
    assert f"{1000 * statistics.median(measured):.4f}" in cell.out
    (trace,) = (cell.folder / "trace").iterdir()
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    ranges = [each for each in events if each.get("cat") == "user_annotation"]
    counts = Counter(picked(ranges, "name"))
    # 3 measured steps of 2 layers; the warm-up step is not in the trace.
    for name in ("step", "forward", "loss", "backward", "optimizer"):
        assert counts[name] == 3
    for name in ("attention", "RoPE(Q)", "softmax", "FFN"):
        assert counts[name] == 3 * 2
    # The range of a phase and the clock of the same step time the same thing.
    forward = sorted(each["dur"] / 1e6 for each in ranges if each["name"] == "forward")
    assert all(ours <= theirs for ours, theirs in zip(measured, forward, strict=True))


def test_without_a_profiler_there_is_no_trace(measured_cell):
    cell = measured_cell("profile_step.py", f"{QUICK} --profiler none --mode inference")
    assert list((cell.folder / "trace").iterdir()) == []
    assert cell.record["summary"]["trace"]["file"] is None
    warm = [("inference", "False")] * 3
    assert picked(cell.rows, "phase", "warmup") == [("inference", "True"), *warm]


def test_nsys_stands_in_front_of_the_same_cell(behind_nsys, tmp_path):
    code, out, err, calls = behind_nsys("7")
    assert (code, err) == (0, "")
    record, rows, files = _cell(tmp_path / "cell")
    assert files == ["trace.nsys-rep", "trace.sqlite"]
    trace = record["summary"]["trace"]
    assert (trace["profiler"], trace["version"]) == ("nsys", "NVIDIA Nsight Systems version 0.1")
    assert "--trace=cuda,nvtx" in trace["options"]
    [(options, inner)] = calls
    assert _option(options, "trace") == "cuda,nvtx"
    assert _option(options, "capture-range") == "cudaProfilerApi"
    assert _option(options, "sample") == "none"
    # The program behind nsys is this one with the same cell, and is not kept waiting by its
    # parent's lock.
    assert inner[inner.index("--profiler") + 1] == "none"
    assert inner[inner.index("--context") + 1] == "6"
    assert "waiting" not in out
    assert record["spec"]["profiler"] == "nsys"
    assert len(rows) == 4 * 3  # its samples: 4 steps of 3 phases


@pytest.mark.parametrize(
    "turn, said", [("0", "an empty capture"), ("crash", "Illegal --trace argument")]
)
def test_without_kernels_it_is_unsupported_with_the_reason(turn, said, behind_nsys, tmp_path):
    code, out, _, calls = behind_nsys(turn)
    assert (code, len(calls)) == (0, 1)
    record, rows, files = _cell(tmp_path / "cell")
    assert (rows, files) == ([], [])
    mode = record["summary"]["variants"]["step"]
    assert mode["status"] == "unsupported"
    assert mode["reason"].startswith(
        f"NVIDIA Nsight Systems version 0.1 recorded no kernels here ({said}); use --profiler"
    )
    assert mode["reason"] in out


def test_a_program_that_fails_behind_nsys_is_a_failure(behind_nsys, tmp_path):
    code, _, err, _ = behind_nsys("fail")
    assert code == 1
    assert err == "error: the profiled program failed (exit code 1): the program fell over\n"
    assert not (tmp_path / "cell").exists()


def test_running_out_of_memory_behind_nsys_is_a_result(behind_nsys, tmp_path):
    code, out, _, calls = behind_nsys("oom")
    assert (code, len(calls)) == (0, 1)
    record, rows, files = _cell(tmp_path / "cell")
    assert record["summary"]["variants"]["step"]["status"] == "oom"
    assert files == []
    assert len(rows) == 12  # what finished before is kept
    assert "step: oom: CUDA out of memory" in out


def test_nsys_cannot_record_a_processor(measured_cell):
    cell = measured_cell("profile_step.py", f"{QUICK} --profiler nsys")
    assert cell.record["summary"]["variants"]["step"]["status"] == "unsupported"
    assert "on a CPU use --profiler torch" in cell.out


def test_the_options_of_nsys_follow_the_spec():
    assert nsys.options({"nsys_trace": "cuda,nvtx,osrt"})["trace"] == "cuda,nvtx,osrt"
    assert nsys.options({"nsys_pytorch": "autograd-nvtx"})["pytorch"] == "autograd-nvtx"
    with_stacks = nsys.options({"nsys_python_backtrace": "cuda"})
    assert (with_stacks["python-backtrace"], with_stacks["sample"]) == ("cuda", "process-tree")
    assert "python-backtrace" not in nsys.options({})


def test_a_cold_start_compares_the_first_step_with_a_later_one(measured_cell):
    cell = measured_cell("profile_step.py", f"{QUICK} --start cold")
    first = cell.record["summary"]["first"]
    assert picked(first["parts"], "part")[-2:] == ["operators", "Python and the rest"]
    (products,) = picked(first["parts"], part="matrix products")
    assert products["calls_first"] == products["calls_second"] == products["calls_steady"] > 0
    assert all(part["second_seconds"] >= 0 for part in first["parts"])
    # The first two steps, a warm-up one, three in the trace, one more that is profiled.
    assert picked(cell.rows, "warmup", phase="forward") == ["True"] * 3 + ["False"] * 3 + ["True"]
    assert cell.record["spec"]["start"] == "cold" and "Python and the rest" in cell.out


def test_what_the_gpu_does_before_the_steps_is_told_by_copies_and_kernels():
    on_gpu, on_host = torch.autograd.DeviceType.CUDA, torch.autograd.DeviceType.CPU
    names = ["Memcpy HtoD (Pageable -> Device)", "fill<float>", "normal<float>", "aten::normal_"]
    devices, times = [on_gpu, on_gpu, on_gpu, on_host], [5, 3, 4, 9]
    events = [
        SimpleNamespace(key=name, device_type=device, self_device_time_total=time, count=2)
        for name, device, time in zip(names, devices, times, strict=True)
    ]
    found = before_the_steps(SimpleNamespace(key_averages=lambda: events))
    told = {row["part"]: (row["first_seconds"] * 1e6, row["calls_first"]) for row in found}
    assert told == {names[0]: (pytest.approx(5), 2), "kernels": (pytest.approx(7), 4)}
