"""Cells for tests: a plan, records and samples as the measuring programs write them, of numbers
that a test gives."""

import json

import numpy as np
from common import picked
from stepscope.measure.record import write

SHAPE = {
    "d_model": 64,
    "d_ff": 128,
    "num_layers": 2,
    "num_heads": 2,
    "vocab_size": 100,
    "context": 32,
    "batch": 4,
}
COMMON = {"seed": 0, "threads": 1, "device": "cpu", "processes": 3, "warmup": 1, "steps": 1}


def sample(variant="step", process=1, seconds=0.1, **more):
    """A sample of a free step."""
    place = {
        "variant": variant,
        "process": process,
        "mode": "step",
        "kind": "free",
        "phase": "step",
        "warmup": False,
    }
    return place | {"step": 1, "seconds": seconds} | more


def attention(variant, process, number, seconds, **more):
    """A sample of a pass of attention in a round of turns."""
    place = {
        "round": number,
        "mode": None,
        "phase": "forward",
        "direction": "forward",
        "length": 256,
    }
    return sample(variant, process, seconds, **(place | more))


def value(quantity, unit, number, process=1, **place):
    """A value of a record."""
    where = {
        "variant": "step",
        "mode": "step",
        "phase": None,
        "length": None,
        "direction": None,
    } | place
    return {"process": process, "quantity": quantity, "unit": unit, "value": number} | where


class Results:
    """A results folder and the plan of its cells."""

    def __init__(self, folder):
        self.folder, self.cells = folder / "results", {}

    def add(self, name, spec, samples=(), summary=None, analysis=None, **record):
        """Plan a cell and write it, with the status ok unless its summary says otherwise; analysis:
        texts of tables by name."""
        study = name.split("/")[1]
        samples = list(samples)
        processes = set(picked(samples, "process")) or {1, 2, 3}
        spec = COMMON | {"processes": len(processes)} | spec
        self.cells[name] = {"spec": spec, "command": f"python {study}.py"}
        planned = picked(spec.get("variants", [{"name": "step"}]), "name")
        names = picked(samples, "variant") or planned
        variants = {each: {"status": "ok", "reason": ""} for each in names}
        written = {
            "study": study,
            "spec": spec,
            "code": "c0de",
            "machine": {"device": spec["device"]},
            "summary": {"variants": variants, "values": [], "statuses": []} | (summary or {}),
            "telemetry": {"power_max_w": 100.0, "throttle": ["power cap"]},
            "provenance": {
                "command": "python there.py",
                "started": "2026-01-01T00:00:00+00:00",
                "duration_s": 1.5,
                "hardware": {
                    "device": spec["device"],
                    "cpu": "a processor",
                    "host_memory_bytes": 2**30,
                },
                "versions": {"torch": "2.0", "python": "3.12"},
                "settings": {"threads": 1},
            },
        } | record
        folder = self.folder / name
        (folder / "analysis").mkdir(parents=True)
        for table, own in (analysis or {}).items():
            (folder / f"analysis/{table}.csv").write_text(own)
        write(folder, samples, written)
        return folder

    def plan(self, missing=(), **machines):
        """The plan's file; `missing` are cells that were not measured."""
        for name in missing:
            self.cells[name] = {"spec": COMMON | SHAPE, "command": "python step.py"}
        studies = {}
        for name, entry in self.cells.items():
            study = studies.setdefault(name.split("/")[1], {"cells": []})
            study["cells"].append({"cell": name, "code": "c0de"} | entry)
        path = self.folder / "plan.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"machines": machines, "studies": studies}))
        return path


def change(folder, edit):
    """Change a cell's record by a function."""
    path = folder / "record.json"
    record = json.loads(path.read_text())
    edit(record)
    path.write_text(json.dumps(record))


def turns(times, processes=3, rounds=4, noise=0.01, seed=0, **more):
    """Free steps in turns: each process and each round is slow for all alike by 10 %, each sample
    by `noise`."""
    draw, rows = np.random.default_rng(seed), []
    for process in range(1, processes + 1):
        of_process = draw.normal(0, 0.1)
        for number in range(1, rounds + 1):
            of_round = draw.normal(0, 0.1)
            for name, seconds in times.items():
                log = of_process + of_round + draw.normal(0, noise)
                rows.append(sample(name, process, seconds * np.exp(log), round=number, **more))
    return rows
