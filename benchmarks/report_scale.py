"""Tables, figures and report of a large grid: should take at most 60 s and 2 GB on two cores, and stay usable.

python benchmarks/report_scale.py [--cells 4000] [--samples 100]

Writes made-up records of so many timing cells, each with so many samples in every series, then runs the four
programs as the workflow does and prints each one's time and peak memory, the size of what they wrote and, where there
is Chromium, how soon the page with all data shows something and how long a filter takes.
"""

import argparse
import csv
import hashlib
import importlib.util
import io
import itertools
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from stepscope.config.studies import CEILINGS, TIMING  # noqa: E402
from stepscope.measure.series import CEILINGS_COLUMNS, TRAINING_COLUMNS  # noqa: E402
from stepscope.measure.summary import of_processes  # noqa: E402

LABEL = "made-up-gpu"
MACHINE = {"device": "cuda", "gpu": "Made-up GPU", "torch": "2.13.0", "python": "3.12"}
PROCESSES = 3
LIMITS = {"index.html": 3e6, "data.html": 20e6, "report.md": 100e3}  # bytes
SIZES = {f"size{i}": {"d_model": 64 * i, "d_ff": 256 * i, "num_layers": 2 * i, "num_heads": 4} for i in range(1, 11)}
SERIES = [
    ("inference", "free", "inference", 1),
    ("forward", "free", "forward", 1),
    *[("forward-backward", "phased", phase, weight) for phase, weight in (("forward", 1), ("backward", 2))],
    ("forward-backward", "free", "forward+backward", 3),
    *[("step", "phased", phase, weight) for phase, weight in (("forward", 1), ("backward", 2), ("optimizer", 1))],
    ("step", "free", "step", 4),
]


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--cells", type=int, default=4000, help="timing cells (4000)")
    flags.add_argument("--samples", type=int, default=100, help="samples of each cell's every series (100)")
    given = flags.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_results(folder, given.cells, given.samples)
        report, total = ["--study", "timing", "--study", "ceilings"], 0.0
        tables, figures = f"{folder}/tables", f"{folder}/figures"
        for study in ("timing", "ceilings"):
            plan = f"{folder}/plan.json"
            total += show("aggregate.py", "--plan", plan, "--study", study, "--results", str(folder), "--out", tables)
        for study in ("timing", "ceilings"):
            total += show("draw_figures.py", "--study", study, "--tables", tables, "--out", figures)
        folders = ["--tables", tables, "--figures", figures, "--templates", str(SCRIPTS.parent / "report")]
        total += show("write_report.py", *report, *folders, "--out", f"{folder}/report")
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        rows = given.cells * given.samples * len(SERIES)
        print(f"{given.cells} cells, {rows:,} samples: {total:.1f} s of 60 s, at most {most:.2f} GB of 2 GB")
        for name, limit in LIMITS.items():
            size = (folder / "report" / name).stat().st_size
            print(f"  {name}: {size / 1e6:.2f} MB, {size / limit:.0%} of {limit / 1e6:g} MB")
        for name, taken, limit in in_browser(folder / "report/data.html"):
            print(f"  {name}: {taken:.0f} ms, {taken / limit:.0%} of {limit} ms")


def show(program: str, *words: str) -> float:
    """Run a program; print and return its wall seconds."""
    start = time.perf_counter()
    subprocess.run([sys.executable, str(SCRIPTS / program), *words], check=True)
    taken = time.perf_counter() - start
    print(f"  {program} {words[words.index('--study') + 1]}: {taken:.1f} s", flush=True)
    return taken


def in_browser(page: Path) -> list[tuple[str, float, int]]:
    """(what, ms, limit) of the page in a headless Chromium; empty where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None or importlib.util.find_spec("playwright") is None:
        return []
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(page.as_uri())
        painted = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        taken = [tab.evaluate(FILTER, text) for text in ("size3", "bf16", "")]
        browser.close()
    return [("first paint", painted, 1000), ("slowest of three filters, all tables open", max(taken), 200)]


# Types into the filter's text box; resolves to ms until what it changes has been painted.
FILTER = """async (text) => {
  const box = document.querySelector("form.filter input");
  document.querySelector("table[data-names*='command']").scrollIntoView();
  await new Promise((done) => setTimeout(done, 500));
  const start = performance.now();
  box.value = text;
  box.dispatchEvent(new Event("input"));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - start;
}"""


def write_results(folder: Path, count: int, samples: int) -> None:
    """Records, samples and the plan of a grid with `count` timing cells."""
    config = made_up_config(count)
    machines, studies = {LABEL: {"device": "cuda", "how": "here", "expect": None}}, {}
    for study in (TIMING, CEILINGS):
        cells = study.cells(config, "cuda", LABEL, 1)[:count]
        entries = [
            {"cell": c.name, "size": c.size, "spec": c.spec, "code": "0" * 16, "command": f"python scripts/{c.program}"}
            for c in cells
        ]
        studies[study.name] = {"machine": {LABEL: MACHINE}, "noisy": {LABEL: 0.02}, "cells": entries}
    (folder / "plan.json").write_text(json.dumps({"machines": machines, "studies": studies}))
    parts = [series(index, samples) for index in range(20)]  # cells share them: only the number of rows matters
    for number, entry in enumerate(studies["timing"]["cells"]):
        write_cell(folder / entry["cell"], entry, *parts[number % len(parts)])
    for entry in studies["ceilings"]["cells"]:
        same = {"phase": entry["spec"]["operation"], "warmup": False, "seconds": 1e-3, "launch_seconds": 1e-4}
        rows = [same | {"process": 1 + i % PROCESSES, "step": i // PROCESSES} for i in range(10 * PROCESSES)]
        summary = {"status": "ok", "reason": "", "processes": of_processes(rows)}
        write_cell(folder / entry["cell"], entry, summary, text(CEILINGS_COLUMNS, rows))


def made_up_config(count: int) -> dict:
    """As much of a configuration as the grids need, without a control."""
    contexts = [128 * i for i in range(1, 1 + -(-count // (len(SIZES) * 4)))]
    grid = [{"size": list(SIZES), "context": contexts, "precision": ["fp32", "tf32", "bf16", "fp16"]}]
    stopping = {"min": 10, "max": 100, "seconds": 1}
    ceiling = {
        "precision": ["fp32", "tf32", "bf16", "fp16"],
        "matmul_order": 1024,
        "copy_mebibytes": 64,
        "steps": stopping,
    }
    return {
        "sizes": SIZES,
        "model": {"vocab_size": 10_000, "batch": 4, "seed": 0},
        "timing": {
            **{"processes": {"cuda": PROCESSES}, "warmup": {"cuda": 0}, "steps": {"cuda": stopping}},
            **{"control": {"cuda": []}, "grid": {"cuda": grid}},
        },
        "ceilings": {"processes": {"cuda": PROCESSES}, "warmup": {"cuda": 0}, "cuda": ceiling},
    }


def series(seed: int, samples: int) -> tuple[dict, str]:
    """A timing cell's summary and samples.csv, from random numbers that its processes share."""
    draw = random.Random(seed)
    rows, phases = [], []
    for mode, kind, phase, weight in SERIES:
        times = [draw.gauss(0.01 * weight, 0.0002 * weight) for _ in range(samples)]
        own = [
            {"process": 1 + i % PROCESSES, "mode": mode, "kind": kind, "step": i // PROCESSES, "phase": phase}
            | {"warmup": False, "seconds": value, "event_seconds": value, "launch_seconds": value / 2}
            | {"sm_clock_mhz": 1980, "power_w": 500.0, "temperature_c": 50}
            for i, value in enumerate(times)
        ]
        phases.append({"mode": mode, "kind": kind, "phase": phase, "status": "ok", "processes": of_processes(own)})
        rows += own
    state = {
        "status": "ok",
        "reason": "",
        "first_step": 0.1,
        "peak_allocated_bytes": 2**30,
        "peak_reserved_bytes": 2**31,
    }
    modes = {mode: state for mode, *_ in itertools.chain(SERIES)}
    return {"modes": modes, "phases": phases}, text(TRAINING_COLUMNS, rows)


def text(columns: list[str], rows: list[dict]) -> str:
    """Rows as CSV."""
    file = io.StringIO()
    table = csv.DictWriter(file, columns, lineterminator="\n", restval="")
    table.writeheader()
    table.writerows(rows)
    return file.getvalue()


def write_cell(folder: Path, entry: dict, summary: dict, samples: str) -> None:
    """A record that belongs to its entry of the plan."""
    folder.mkdir(parents=True)
    (folder / "samples.csv").write_text(samples)
    hardware = {"device": "cuda", "cpu": "Made-up CPU", "gpu": "Made-up GPU", "gpu_memory_bytes": 8e10}
    record = {
        "spec": entry["spec"], "code": entry["code"], "machine": MACHINE, "summary": summary,
        "telemetry": {"sm_clock_min_mhz": 1980, "throttle": [], "other_processes": 0},
        "provenance": {
            "hardware": {**hardware, "host_memory_bytes": 1e11}, "versions": {"python": "3.12", "torch": "2.13.0"},
            "settings": {"threads": 1}, "started": "2026-01-01T00:00:00+00:00", "duration_s": 20.0,
        },
        "samples_sha256": hashlib.sha256(samples.encode()).hexdigest(),
    }  # fmt: skip
    (folder / "record.json").write_text(json.dumps(record))


if __name__ == "__main__":
    main()
