"""The chapter of what variants learn, from a table with known answers."""

from types import SimpleNamespace

import made_up
import pytest
from common import picked
from stepscope.report.constants import CONSTANTS
from stepscope.report.facts import learning
from stepscope.report.facts.ladder import LadderFacts
from stepscope.report.kit import page
from stepscope.report.kit.data import Data

CELL = "box/learning/small/ctx512/fp32"


def variant(rank, name, precision, held_out, verdict, **more):
    own = {"variant": name, "rank": rank, "own_precision": precision, "steps": 250, "orders": 2}
    said = {"held_out": held_out, "verdict": verdict, "status": "ok", "frequencies": 3.1423}
    return made_up.of(CELL, **own) | said | more


@pytest.fixture
def data(tmp_path):
    rows = [
        variant(0, "fp32", "fp32", 1.292, ""),
        variant(1, "fp8", "fp8", 1.298, "same", ratio=1.0046, ratio_low=1.001, ratio_high=1.008),
        variant(2, "fp16", "fp16", 3.35, "does not learn"),
        variant(3, "fp16-scaled", "fp16", 1.293, "same", is_scaled=True),
        variant(4, "tf32", "tf32", None, "", status="unsupported", reason="no tensor cores"),
    ]
    cell = made_up.cell(CELL, **made_up.place("small", 512, "fp32", batch=16))
    made_up.write_tables(tmp_path, {"cells": [cell], "learning": rows})
    return Data(tmp_path, "box")


def test_what_does_not_learn_is_told(data):
    found = learning.facts(data)
    assert picked(found.variants, "variant") == ["fp32", "fp8", "fp16", "fp16-scaled"]
    assert picked(found.lost, "variant") == ["fp16"]
    assert found.first["frequencies"].value == 3.1423
    assert [found.first[name].value for name in ("orders", "steps")] == [2, 250]
    assert found.tokens.value == 16 * 512
    assert picked(found.untrained, "variant", "reason") == [("tf32", "no tensor cores")]


def test_the_table_has_four_digits_and_the_interval(data):
    made = page.environment(data.folder.parents[0], lambda name: None)
    made.globals["constants"] = CONSTANTS
    text = made.from_string(
        '{{ facts.variants | table("variant: variant; loss: held_out; over: ratio") }}'
    ).render(facts=learning.facts(data))
    assert "| fp8 | 1.298 | 1.005 |" in text
    assert "| fp16 | 3.350 |" in text


@pytest.mark.parametrize(
    "kind, verdict", {"fp8": "same", "fp16": "does not learn", "tf32": None, None: None}.items()
)
def test_the_ladder_tells_of_the_coarse_rung_as_it_was_trained(kind, verdict, data):
    ladder = SimpleNamespace(coarse=SimpleNamespace(kind=kind) if kind else None)
    trained = LadderFacts(data=data, ladder=ladder).trained
    assert (trained and trained["verdict"]) == verdict
