"""Steps of one's own in the report of a made-up GPU: a chapter of theirs, and no word in others."""

import json

import made_up
import pytest
from common import picked
from made_up import of, series
from stepscope.axes import BUILT
from stepscope.report import book
from stepscope.report.facts import steps as own
from stepscope.report.kit.data import Data

REASON = "host-free: unsupported: run() reads a number of the GPU"
PHASES = {"step": 1, "forward": 0.5, "clip": 0.1, "rest": 0.4}  # shares of a step
MODEL = {
    "reference": "train.py:build",
    "class": "Net",
    "dtype": "bfloat16",
    "parameters": 2e6,
    "trained": 1e6,
    "optimizer": "Muon + AdamW",
    "items": 4096,
    "item": "tokens",
}


def tables_of(name, seconds, alone, limits):
    """Tables of a step."""
    place = made_up.place(name, 128, BUILT)
    at = place | {"limits": limits}
    timing, profile, memory = (
        f"gpu-a/{study}/{name}/ctx128/built" for study in ("timing", "profile", "memory")
    )
    times = [
        series(timing, "time", seconds * share, **at | {"phase": phase})
        for phase, share in PHASES.items()
    ]
    return {
        "series": [
            *times,
            series(timing, "alone_time", alone, **at),
            series(timing, "peak_reserved", 2**30, "B", **at),
        ],
        "cells": [
            made_up.cell(timing, **place, reason=REASON),
            made_up.cell(profile, **place),
            made_up.cell(memory, **place),
        ],
        "categories": made_up.rows(
            of(profile, phase="step", calls=12),
            "category time share",
            ("matmul", 0.6 * alone, 0.6),
            ("other", 0.4 * alone, 0.4),
        ),
        "memory_peak": made_up.rows(
            of(memory),
            "category bytes",
            ("parameters", 3e6),
            ("buffers", 2e6),
            ("gradients", 1e6),
            ("unknown", 8),
        ),
        "models": [MODEL | {"machine": "gpu-a", "size": name, "context": 128, "batch": 4}],
    }


def comparison():
    """Tables of the cell that compares them."""
    at = made_up.place("base+muon", 128, BUILT)
    name = "gpu-a/ladder/base+muon/ctx128"
    pair = of(name, study="ladder", a="base", b="muon", mode="step", phase="step", **at)
    pair |= {"verdict": "slower", "in_turns": True}
    return {
        "series": [
            series(name, "time", 0.04, variant="base", **at),
            series(name, "time", 0.05, variant="muon", **at),
            series(name, "loss_difference", 0.25, "1", variant="muon", **at),
        ],
        "cells": [made_up.cell(name, **at)],
        "comparisons": made_up.rows(
            pair,
            "quantity ratio low high",
            ("time", 0.8, 0.79, 0.81),
            ("host_free_time", 0.5, 0.49, 0.51),
        ),
    }


@pytest.fixture
def data(tmp_path):
    """The made-up GPU's tables, and those of two steps of one's own."""
    steps = tables_of("base", 0.04, 0.01, "launches"), tables_of("muon", 0.05, 0.049, "gpu")
    folder = made_up.write_tables(tmp_path / "tables", made_up.gpu(), *steps, comparison())
    return Data(folder, made_up.GPU)


def test_other_chapters_say_what_they_said(data, gpu, pages):
    before, after = pages(gpu), pages(data)
    assert "steps" not in before
    for name, page in before.items():
        if name != "method":  # which counts all cells
            assert after[name] == page, name


def test_the_numbers_of_a_step_are_those_of_its_tables(data):
    found = own.facts(data)
    base, muon = found.steps
    assert (base.step.value, base.gpu.value, base.peak.value) == (0.04, 0.01, 2**30)
    assert base.each.value == pytest.approx(0.04 / 4096)
    shares = {part["name"]: part["share"].value for part in base.parts}
    assert {"step": 1} | shares == pytest.approx(PHASES)
    assert base.longest["name"] == "forward"
    assert (base.limited, muon.limited) == ("launches", "gpu")
    before = "inputs and what else was there before"
    assert picked(base.memory, "category") == ["parameters", before, "gradients"]
    assert picked(base.kernels, "category") == ["matmul", "other"]
    assert base.kernels[0]["share"].value == pytest.approx(0.6)
    assert (base.built["optimizer"], base.built["trained"].value) == ("Muon + AdamW", 1e6)


def test_a_step_without_times_says_why(data, pages):
    cells = data["cells"]
    of_muon = cells["cell"] == "gpu-a/timing/muon/ctx128/built"
    cells.loc[of_muon, ["status", "reason"]] = ["failed", "loss is NaN at step 3"]
    base, muon = own.facts(data).steps
    assert (base.why_not, muon.why_not) == (None, "loss is NaN at step 3")
    assert pages(data)["steps"].count("It was not timed: ") == 1


def test_a_pair_has_its_verdict_and_how_far_its_losses_are_apart(data):
    (pair,) = own.facts(data).compared
    assert (pair["a"], pair["b"], pair["verdict"]) == ("base", "muon", "slower")
    assert (pair["before"].value, pair["after"].value) == (0.04, 0.05)
    assert (pair["gain"].value, pair["losses"].value) == (0.8, 0.25)
    assert (pair["gpu_gain"].value, pair["gpu_verdict"]) == (0.5, "slower")


def test_the_chapter_is_whole(data, pages):
    text = pages(data)["steps"]
    assert "**muon** against base" in text
    assert text.count("Launches limit it") == 1
    assert text.count(REASON) == 2
    assert "None" not in text
    every = json.dumps(book.as_plain(book.facts_of(data)))
    assert '"launches"' in every
