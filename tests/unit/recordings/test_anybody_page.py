"""The page and the picture of anybody's file, as the programs write them."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from nsys_exports import LAYOUTS, Export, thread
from snapshot_simulator import FORWARD, MADE, Simulator, python_frame, written

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
NAME = "x</title><script>alert(1)</script>\x1b[1m $\\frac{1}{2}$ 日本 [a](javascript:b)"


def run(program, *words):
    command = [sys.executable, str(SCRIPTS / program), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def trace(tmp_path):
    """Two iterations, of a forward pass with a range of a hostile name, and a backward pass of another thread."""
    export = Export(LAYOUTS["2025.3"])
    for number in range(2):
        zero = 10_000 * number
        export.range(f"iteration {number}", zero, zero + 9000, thread(1))
        export.range("forward pass", zero, zero + 4000, thread(1))
        export.range(NAME, zero, zero + 3000, thread(1))
        export.range("backward pass", zero + 4000, zero + 8000, thread(1))
        export.launch(f"void gemm<float>({NAME})", zero + 100, zero + 500, zero + 900)
        export.launch("add", zero + 5000, zero + 6000, zero + 6300, thread(1, 9))
    export.add("DIAGNOSTIC_EVENT", severity=2, text="Not all NVTX events might have been collected.")
    return export.write(tmp_path / "trace.sqlite")


def text_of(page):
    """The page's text outside its style and script, in the order in which it stands."""
    html = re.sub(r"<(style|script)>.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    html = re.sub(
        r'<script type="?application/json[^>]*>[^<]*</script>', "", html
    )  # data, in which nothing opens a tag
    html = html[html.index("<main>") :]  # behind the contents
    assert "<script" not in html and "</title" not in html
    assert not re.search(r"(src|href)=\"?(https?:|//|javascript:)", html)
    assert "\x1b" not in html
    html = html.replace("<wbr>", "")  # where a word may go on in the next line, but is one
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_the_page_of_a_trace_has_warnings_first_then_the_picture_then_tables(trace, tmp_path):
    done = run("analyze_nsys.py", trace, "--out", tmp_path / "out", "--html", tmp_path / "page.html")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    text = text_of(tmp_path / "page.html")
    places = [text.index(each) for each in ("Not all NVTX events", "one step under nsys", "Kernels by phase")]
    assert places == sorted(places)
    assert "Ranges that were taken for phases by their names: step: iteration 0, iteration 1" in text
    assert "<svg" in (tmp_path / "page.html").read_text() and "alert(1)" in text


def test_the_page_of_two_traces(trace, tmp_path):
    done = run("analyze_nsys.py", trace, trace, "--out", tmp_path / "out", "--html", tmp_path / "page.html")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "Kernels before and after" in text_of(tmp_path / "page.html")


def test_a_trace_without_phases_of_a_step_has_a_page_without_a_picture(tmp_path):
    export = Export(LAYOUTS["2025.3"])
    export.launch("k", 0, 10, 20)
    path = export.write(tmp_path / "trace.sqlite")
    done = run("analyze_nsys.py", path, "--out", tmp_path / "out", "--html", tmp_path / "page.html")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "no named ranges" in text_of(tmp_path / "page.html")
    assert "<svg" not in (tmp_path / "page.html").read_text()


def test_the_page_and_the_picture_of_a_snapshot(tmp_path):
    simulator = Simulator()
    simulator.alloc(1000, MADE)
    simulator.free(simulator.alloc(500_000, [python_frame(NAME), *FORWARD]))
    simulator.oom(1 << 40, 1 << 20)
    path = written(simulator.snapshot(), tmp_path / "a.pickle")
    done = run("analyze_snapshot.py", path, "--out", tmp_path / "out", "--html", tmp_path / "page.html")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    text = text_of(tmp_path / "page.html")
    order = (
        "1,048,576.0 MiB wanted",
        "What is active after each",
        "Categories at the peak",
        "Whole stacks",
        "Segments",
    )
    places = [text.index(each) for each in order]
    assert places == sorted(places) and "/home/user/model.py:20 forward" in text
    for name in ("memory.svg", "memory.png"):
        assert (tmp_path / "out" / name).stat().st_size > 1000


def test_a_snapshot_of_nothing_has_a_page_too(tmp_path):
    path = written({"segments": [], "device_traces": [[]]}, tmp_path / "a.pickle")
    done = run("analyze_snapshot.py", path, "--out", tmp_path / "out", "--html", tmp_path / "page.html")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert not (tmp_path / "out" / "memory.svg").exists() and "a.pickle" in text_of(tmp_path / "page.html")
