"""Steps of one's own in the report of a made-up GPU: a chapter of theirs, and no word in others."""

import json

import made_up
import pandas as pd
import pytest
from common import picked
from stepscope.axes import BUILT
from stepscope.report import book
from stepscope.report.facts import steps as own
from stepscope.results.schema import TABLES
from stepscope.results.tables import typed

MACHINE = {"device": "cuda", "gpu": "Accelerator <A>", "cpu": "Host CPU"}
REASON = "host-free: unsupported: run() reads a number of the GPU"


def rows_of(name, seconds, alone, limits):
    """Tables of a step: forward half of it, clipping a tenth, the rest the rest."""
    at = made_up.place(name, 128, BUILT)
    where = {
        study: f"gpu-a/{study}/{name}/ctx128/built" for study in ("timing", "profile", "memory")
    }
    phases = {"forward": 0.5, "clip": 0.1, "rest": 0.4}
    of = {"variant": "step", "limits": limits} | at
    timing = where["timing"]
    series = [made_up.series(timing, "time", seconds, **of)]
    for phase, share in phases.items():
        series.append(made_up.series(timing, "time", seconds * share, **of | {"phase": phase}))
    series.append(made_up.series(timing, "alone_time", alone, **of))
    series.append(made_up.series(timing, "peak_reserved", 2**30, "B", **of))
    cells = [made_up.cell(each, MACHINE, **at) for each in where.values()]
    cells[0]["reason"] = REASON
    kinds = {"matmul": 0.6 * alone, "other": 0.4 * alone}
    held = {"parameters": 3e6, "buffers": 2e6, "gradients": 1e6, "unknown": 8}
    built = {"reference": "train.py:build", "class": "Net", "dtype": "bfloat16"}
    built |= {"parameters": 2e6, "trained": 1e6, "optimizer": "Muon + AdamW"}
    built |= {"items": 4096, "item": "tokens"}
    of_profile = {"machine": "gpu-a", "cell": where["profile"], "phase": "step", "calls": 12}
    return {
        "series": series,
        "cells": cells,
        "categories": [
            of_profile | {"category": kind, "time": time, "share": time / alone}
            for kind, time in kinds.items()
        ],
        "memory_peak": [
            {"machine": "gpu-a", "cell": where["memory"], "category": kind, "bytes": size}
            for kind, size in held.items()
        ],
        "models": [{"machine": "gpu-a", "size": name, "context": 128, "batch": 4} | built],
    }


def comparison():
    """Tables of the cell that compares them."""
    at = made_up.place("base+muon", 128, BUILT)
    name = "gpu-a/ladder/base+muon/ctx128"
    times = {"base": 0.04, "muon": 0.05}
    series = [
        made_up.series(name, "time", seconds, variant=variant, **at)
        for variant, seconds in times.items()
    ]
    off = {"variant": "muon", "unit": "1", **at}
    series.append(made_up.series(name, "loss_difference", 0.25, **off))
    pair = {"machine": "gpu-a", "study": "ladder", "cell": name, "a": "base", "b": "muon"}
    judged = {"ratio": 0.8, "low": 0.79, "high": 0.81, "verdict": "slower", "in_turns": True}
    pair |= {"quantity": "time", "mode": "step", "phase": "step"} | judged | at
    replayed = {"quantity": "host_free_time", "ratio": 0.5, "verdict": "slower"}
    pairs = [pair, pair | replayed | {"low": 0.49, "high": 0.51}]
    return {"series": series, "cells": [made_up.cell(name, MACHINE, **at)], "comparisons": pairs}


@pytest.fixture
def data(gpu):
    """The made-up GPU's tables, and those of two steps of one's own."""
    found = {name: gpu[name] for name in TABLES}
    more = [rows_of("base", 0.04, 0.01, "launches"), rows_of("muon", 0.05, 0.049, "gpu")]
    for tables in (*more, comparison()):
        for name, rows in tables.items():
            added = typed(pd.DataFrame(rows), name)
            if "cell" in added and name != "cells":
                places = typed(pd.DataFrame(tables["cells"]), "cells")
                added = added.merge(places[["cell", *missing(added)]], on="cell", how="left")
            found[name] = pd.concat([found[name], added], ignore_index=True)
    return made_up.planted(gpu, **found)


def missing(frame):
    """Columns of a place that it lacks."""
    return [name for name in TABLES["cells"].names if name in BESIDE and name not in frame]


BESIDE = ("study", "size", "context", "batch", "precision", "options", "mode")


def pages(data, request):
    templates = book.templates_of(request, data.machine, [data.machine])
    return {page.name: page for page in book.pages_of(book.facts_of(data), templates)}


def test_other_chapters_say_what_they_said(data, gpu, request_for, folders):
    request = request_for(folders["none"])
    before, after = pages(gpu, request), pages(data, request)
    assert "steps" not in before
    for name, page in before.items():
        if name != "method":  # which counts all cells
            assert after[name].markdown == page.markdown, name


def test_the_numbers_of_a_step_are_those_of_its_tables(data):
    found = own.facts(data)
    base, muon = found.steps
    assert (base.step.value, base.gpu.value, base.peak.value) == (0.04, 0.01, 2**30)
    assert base.each.value == pytest.approx(0.04 / 4096)
    assert {part.name: part.share.value for part in base.parts} == pytest.approx(
        {"forward": 0.5, "clip": 0.1, "rest": 0.4}
    )
    assert base.longest.name == "forward"
    assert (base.limited, muon.limited) == ("launches", "gpu")
    before = "inputs and what else was there before"
    assert picked(base.memory, "category") == ["parameters", before, "gradients"]
    assert picked(base.kernels, "category") == ["matmul", "other"]
    assert base.kernels[0]["share"].value == pytest.approx(0.6)
    assert (base.built["optimizer"], base.built["trained"].value) == ("Muon + AdamW", 1e6)


def test_a_step_without_times_says_why(data, request_for, folders):
    cells = data["cells"]
    of_muon = cells["cell"] == "gpu-a/timing/muon/ctx128/built"
    cells.loc[of_muon, ["status", "reason"]] = ["failed", "loss is NaN at step 3"]
    base, muon = own.facts(data).steps
    assert (base.why_not, muon.why_not) == (None, "loss is NaN at step 3")
    text = pages(data, request_for(folders["none"]))["steps"].markdown
    assert text.count("It was not timed: ") == 1


def test_a_pair_has_its_verdict_and_how_far_its_losses_are_apart(data):
    (pair,) = own.facts(data).compared
    assert (pair.a, pair.b, pair.verdict) == ("base", "muon", "slower")
    assert (pair.before.value, pair.after.value) == (0.04, 0.05)
    assert (pair.gain.value, pair.losses.value) == (0.8, 0.25)
    assert (pair.gpu_gain.value, pair.gpu_verdict) == (0.5, "slower")


def test_the_chapter_is_whole(data, request_for, folders):
    text = pages(data, request_for(folders["none"]))["steps"].markdown
    assert "**muon** against base" in text
    assert text.count("Launches limit it") == 1
    assert text.count(REASON) == 2
    assert "None" not in text
    every = json.dumps(book.as_plain(book.facts_of(data)))
    assert '"launches"' in every
