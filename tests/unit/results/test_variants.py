"""variants.csv, from plans of ladders written down by hand."""

import pytest
from common import picked
from stepscope.results import variants
from stepscope.results.cells import MeasuredCell
from stepscope.results.schema import TABLES

LADDER = [
    {"name": "fp32"},
    {"name": "bf16", "precision": "bf16", "after": "fp32"},
    {"name": "sdpa", "precision": "bf16", "attention": "sdpa", "after": "bf16"},
    {
        "name": "fused",
        "precision": "bf16",
        "attention": "sdpa",
        "optimizer": "fused",
        "after": "sdpa",
    },
    {"name": "checkpoint=4", "precision": "bf16", "checkpoint": 4, "after": "bf16"},
]


def rows(declared, **spec):
    spec = {"context": 32, "variants": declared} | spec
    cell = MeasuredCell("lab/ladder/nano/ctx32", spec, "", "")
    return {row["variant"]: row for row in variants.rows([cell])}


def test_a_rung_says_what_it_changes_from_what_to_what():
    found = rows(LADDER)
    said = {
        name: (row["changed"], row["before"], row["value"], row["after"])
        for name, row in found.items()
    }
    assert said == {
        "fp32": ("precision", "", "fp32", ""),
        "bf16": ("precision", "fp32", "bf16", "fp32"),
        "sdpa": ("attention", "naive", "sdpa", "bf16"),
        "fused": ("optimizer", "own", "fused", "sdpa"),
        "checkpoint=4": ("checkpoint", 0, 4, "bf16"),
    }
    assert picked(found.values(), "order") == [0, 1, 2, 3, 4]
    assert picked(found.values(), "kind")[2:] == ["sdpa", "fused", "checkpoint 4"]
    assert found["checkpoint=4"]["label"] == "checkpoint every 4"


def test_what_branches_off_further_up_stands_aside():
    assert {name for name, row in rows(LADDER).items() if row["is_aside"]} == {"checkpoint=4"}


def test_a_rung_has_all_options_the_neutral_ones_too():
    found = rows(LADDER)
    assert found["fp32"]["precision"] == "fp32" and found["fp32"]["checkpoint"] == 0
    assert [
        found["fused"][name] for name in ("precision", "attention", "compile", "optimizer")
    ] == ["bf16", "sdpa", "none", "fused"]


def test_a_ladder_that_starts_at_a_later_rung_is_called_by_the_change_that_names_it():
    changed = {"precision": "bf16", "attention": "triton", "compile": "graphs"}
    first = {"name": "graphs", **changed}
    row = rows([first, {"name": "fused", **changed, "optimizer": "fused", "after": "graphs"}])
    assert (row["graphs"]["changed"], row["graphs"]["value"]) == ("compile", "graphs")
    assert (row["fused"]["changed"], row["fused"]["before"]) == ("optimizer", "own")
    unnamed = rows([first | {"name": "start"}])
    assert unnamed["start"]["changed"] == "compile"


@pytest.mark.parametrize("place", ["attention/d64/bf16", "learning/nano/ctx32/fp32"])
def test_variants_of_another_study_are_no_ladder(place):
    cell = MeasuredCell(f"lab/{place}", {"context": 32, "variants": LADDER}, "", "")
    assert variants.rows([cell]) == []


def test_rows_have_the_schemas_columns():
    for row in rows(LADDER).values():
        assert set(row) == set(TABLES["variants"].columns)


def test_a_ladder_that_starts_at_a_tuned_step_says_all_that_it_has():
    tuned = {"precision": "bf16", "attention": "sdpa", "loss": "torch"}
    found = rows(
        [
            {"name": "bf16+sdpa+loss=torch", **tuned},
            {"name": "block", **tuned, "compile": "block", "after": "bf16+sdpa+loss=torch"},
        ]
    )
    said = "bf16, fused attention (SDPA), PyTorch's cross-entropy"
    assert found["bf16+sdpa+loss=torch"]["label"] == said
    later = rows([{"name": "sdpa", **tuned}, {"name": "block", "after": "sdpa"}])
    assert later["sdpa"]["label"] == "fused attention (SDPA)"
