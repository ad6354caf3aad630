"""The committed examples: golden pages of every chapter, and facts worked out again by the formulas
that they name."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from common import ROOT
from pytest import approx
from stepscope.report import book
from stepscope.report.facts import attention, ladder, ladders, page_one, precision
from stepscope.report.facts.machine import machine
from stepscope.report.kit.data import Data

EXAMPLES = ROOT / "report/example"
WEIGHTS, TOKENS = 32 * (4 * 2560**2 + 3 * 2560 * 10_240), 512 * 4  # of the blocks' products


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """Folder in which today's code has made an example's tables, figures and pages of its
    records."""
    made = {}

    def render(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            command = ["sh", EXAMPLES / "render.sh", name, made[name]]
            how = {"env": os.environ | {"PATH": path}, "timeout": 300}
            subprocess.run(command, **how, check=True, capture_output=True)
        return made[name]

    return render


@pytest.mark.parametrize(
    "path",
    [
        *(f"{name}/report/report.md" for name in ("h200", "llama", "own", "devices")),
        "compare/compare.md",
    ],
)
def test_the_examples_pages_are_what_their_records_give(path, rendered):
    name, _, page = path.partition("/")
    assert (rendered(name) / page).read_text() == (EXAMPLES / name / page).read_text()


def test_what_pages_without_a_gpu_quote_is_page_one_of_the_example():
    quoted = json.loads((EXAMPLES.parent / "reference/h200.json").read_text())
    whole = json.loads((EXAMPLES / "h200/report/facts.json").read_text())
    for name, chapters in quoted["machines"].items():
        assert chapters == {"page_one": whole["machines"][name]["page_one"]}
    assert book.example(EXAMPLES.parent)["page_one"]["ladder"]["rungs"]


@pytest.mark.parametrize("name", ["h200", "llama"])
def test_every_number_leads_to_the_command_that_measured_it(name):
    facts = json.loads((EXAMPLES / name / "report/facts.json").read_text())
    for chapters in facts["machines"].values():
        assert chapters.keys() >= {"page_one", "time", "ladder", "attention", "method"}
        named = set(cells_below(chapters))
        assert len(named) > 5 and named <= chapters["method"]["commands"].keys()


def cells_below(facts):
    """Cells of all quantities in facts."""
    if isinstance(facts, dict):
        yield from facts["cells"] if "text" in facts and "cells" in facts else ()
        facts = list(facts.values())
    for part in facts if isinstance(facts, list) else ():
        yield from cells_below(part)


@pytest.fixture(scope="module")
def data(rendered):
    return Data(rendered("h200") / "tables", "nvidia-h200")


@pytest.fixture(scope="module")
def fp8(rendered):
    """Medians of the step in fp8 at batch 16, by quantity."""
    rows = pd.read_csv(rendered("h200") / "tables/series.csv")
    own = rows.query("study == 'ladder' and batch == 16 and variant == 'fp8' and phase == 'step'")
    return own.set_index("quantity")["median"]


def as_written(data):
    """What the chapter would say of the ladder that begins at the written-out step."""
    found = ladder.facts(data)
    return replace(found, ladder=found.written)


def test_arithmetic_in_8_bits_is_that_of_the_blocks_and_the_rest_in_16(data):
    own, found = machine(data), as_written(data)
    before, rung = (found.ladder.rung(name) for name in ("fused", "fp8"))
    blocks = 6 * TOKENS * WEIGHTS
    expected = (
        blocks / own.rates["fp8"].value
        + (found.ladder.place.flop.value - blocks) / own.rates["bf16"].value
    )
    assert rung.arithmetic.value == approx(expected)
    assert rung.of_peak.value == approx(expected / rung.step.value)
    assert rung.predicted_won.value == approx(before.arithmetic.value - rung.arithmetic.value)
    assert not rung.is_rounding and found.ladder.coarse is rung
    assert found.ladder.most_different.value < 0.02 < rung.difference.value
    assert precision.facts(data).eight_gain.value == approx(
        own.rates["fp8"].value / own.rates["bf16"].value
    )


def test_what_rungs_deliver_at_another_batch(data, fp8):
    found = as_written(data)
    rung = found.most
    where = rung.data.place
    assert (where.batch, where.context, rung.before.kind) == (16, 1024, "fused")
    assert rung.tokens.value == approx(16 * 1024 / fp8["time"])
    assert rung.energy.value == approx(fp8["energy"] / (16 * 1024))
    last = [(each.data.place.batch, each.kind) for each in found.reach][-4:-2]
    assert last == [(16, "fused"), (16, "fp8")]
    (part,) = (each for each in ladders.ladders(data) if each.place.batch == 16)
    # so that no row of the column has it
    assert part.rung("fp8").host_free and not part.rung("fused").host_free
    assert [each.gpu.value for each in part.rungs] == [each.busy.value for each in part.rungs]


def test_the_gpu_idles_as_long_as_the_step_exceeds_its_replay(data):
    found = as_written(data)
    rows = data.rows("series", cell=found.ladder.data.cell, variant="fp8", phase="step")
    times = rows.set_index("quantity")["median"]
    (idle,) = (part for part in found.left if str(part["part"]) == "GPU idle")
    assert idle["top"].value == approx(times["time"] - times["host_free_time"])
    assert idle["top"].value < 0.4e-3


def test_a_gain_over_what_had_just_lost_is_counted_from_before_that(data):
    found = as_written(data).ladder
    graphs, torch, fused = (found.rung(kind) for kind in ("graphs", "torch", "fused"))
    over_default = torch.seconds * (1 - 1 / fused.gain.value)
    lost = graphs.seconds * (1 - 1 / torch.gain.value)
    assert fused.won.value == approx(over_default) and lost < 0
    assert fused.net_won.value == approx(over_default + lost)
    others = [found.rung(kind).won.value for kind in ("triton", "graphs")]
    gains = [rung.net_won.value for rung in found.gains]
    won = found.plain.seconds - found.top.seconds
    assert sum(gains + others) == approx(won, rel=0.005)


def test_page_one_is_read_in_two_minutes(rendered):
    """At most 900 words, those of tables and captions among them."""
    whole = (rendered("h200") / "report/report.md").read_text()
    page_one = whole.split("\n## The model and its baseline")[0]
    without_addresses = re.sub(r"\]\([^)]*\)|!\[[^\]]*\]|\[Data\]|<br>", " ", page_one)
    words = [each for each in re.split(r"[\s|]+", without_addresses) if re.search(r"\w", each)]
    assert len(words) <= 900


def test_kernels_that_are_left_are_those_of_the_trace_outside_the_optimizer(data):
    """The last of them is what is left of the busy time; the trace's table sums each category."""
    left = {str(part["part"]): part for part in ladder.facts(data).left}
    kernels = ("matrix products", "fused attention", "casts and copies", "other kernels")
    for which in ("plain", "top"):
        (cell,) = left["matrix products"][which].cells
        times = {"step": 0.0, "optimizer": 0.0}
        for row in data.dicts("categories", cell=cell):
            if row["phase"] in times:
                times[row["phase"]] += row["time"]
        parts = [left[name][which] for name in kernels if name in left]
        found = sum(part.value for part in parts if part)
        assert found == approx(times["step"] - times["optimizer"], rel=0.01)


def test_causal_attention_multiplies_half(data):
    own, found = machine(data), attention.facts(data)
    scores = 8 * 16_384**2  # sequences, no heads
    products = 4 * scores * 64 / own.rates["bf16"].value
    assert found.arithmetic.value == approx(products, rel=1e-3)
    assert found.naive_predicted.value == approx(38 * scores / own.copy.value + products, rel=1e-3)
    fastest = {str(each["what"]): each["fastest"] for each in found.shapes}
    causal = fastest["d128, bf16, causal, tokens 16,384, heads 16"]
    flop = 4 * 16 * 16_384**2 * 128 / 2
    assert causal.rate.value == approx(flop / causal.forward.value, rel=1e-3)


def test_a_ladder_that_starts_later_is_a_part_even_where_its_first_variant_did_not_run(data):
    whole, *_, part, smaller = ladders.ladders(data)
    assert (whole.is_part, part.is_part, smaller.is_part) == (False, True, True)
    series = data["series"]
    first = (series["cell"] == part.data.cell) & (series["variant"] == part.data.first.variant)
    without = Data(data.folder, data.machine)
    without._read = {"series": series[~first]}
    found = {each.data.cell: each.is_part for each in ladders.ladders(without)}
    assert found[part.data.cell] and not found[whole.data.cell]


def test_page_one_begins_at_what_people_run_and_its_mfu_is_that_of_palm(data):
    found = ladder.facts(data)
    assert page_one.facts(data).ladder is found.ladder
    assert (found.ladder.place.batch, len(found.ladder.rungs)) == (2, 6)  # not the largest batch
    assert (found.most.data.place.batch, found.most.kind) == (4, "fp8")
    # 6 N + 12 L d T a token (Chowdhery et al. 2022, appendix B), N without the embedding: Q and
    # output, K and V of 8 of 32 heads, three matrices of 14,336, and the head.
    width, words, context = 4096, 128_256, 4096
    block = 2 * width**2 + 2 * width * width // 4 + 3 * width * 14_336
    a_token = 6 * (8 * block + width * words) + 12 * 8 * width * context
    expected = found.most.tokens.value * a_token / 989.4e12
    assert found.most.mfu.value == approx(expected, abs=1e-3)
    # H200's data sheet: 1,979 TFLOP/s of dense products in fp8
    assert found.most.mfu_narrow.value == approx(expected * 989.4 / 1978.9, abs=1e-3)
    assert not found.most.before.mfu_narrow


def test_what_is_made_of_two_cards_is_told(data):
    """The large product of the example ran on another card than its step at batch 2, and on that of
    the step at batch 4."""
    found = ladder.facts(data)
    rate = found.machine.rate("bf16")
    assert found.across_cards(rate, found.ladder.plain.step)
    assert not found.across_cards(rate, found.most.step)
    uuids = data.rows("cells").set_index("cell")["gpu_uuid"]
    (product,) = rate.cells
    (here,), (there,) = found.ladder.plain.step.cells, found.most.step.cells
    assert uuids[product] == uuids[there] != uuids[here]


def test_the_step_as_written_comes_second(data):
    found = ladder.facts(data)
    assert found.ladder.is_tuned and not found.written.is_tuned
    assert as_written(data).written is None
