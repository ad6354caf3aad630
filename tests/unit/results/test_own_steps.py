"""Tables of steps of one's own: what is theirs, and what only ours have."""

import math

import pytest
from stepscope.axes import BUILT
from stepscope.results import agreement, comparisons, derived, models, variants, work
from stepscope.results.cells import MeasuredCell, came_after, precision_of

ABOUT = {
    "reference": "train.py:build",
    "class": "Net",
    "parameters": 30,
    "trainable_parameters": 10,
    "dtype": "torch.bfloat16",
    "optimizer": "Muon",
    "items": 96,
    "item": "tokens",
    "flops": {"counter": 600},
}
PLACE = {"context": 8, "batch": 4, "device": "cpu"}
VARIANTS = [
    {"name": "base", "step": "train.py:build"},
    {"name": "muon", "step": "train.py:build", "after": "base"},
]


def cell(about=ABOUT, **summary):
    keys = '{"layers": 2, "optimizer": "muon"}'
    spec = {"study": "timing", "step": "train.py:build", "step_keys": keys} | PLACE
    record = {"summary": {"built": {"step": about}} | summary}
    return MeasuredCell("machine/timing/base/ctx8/built", spec, "", "", record)


def compared(**checks):
    spec = {"study": "ladder", "variants": VARIANTS} | PLACE
    record = {"summary": {"checks": checks, "built": {"base": ABOUT}}}
    return MeasuredCell("machine/ladder/base+muon/ctx8", spec, "", "", record)


def test_the_place_of_a_step_says_that_it_is_as_built():
    assert cell().place["precision"] == compared().place["precision"] == BUILT
    assert precision_of(compared(), "muon") == BUILT
    assert cell().shape is None


def test_what_was_built_is_a_row_of_the_models():
    (row,) = models.rows([cell(), compared()]).to_dict("records")
    said = {"size": "base", "trained": 10, "dtype": "bfloat16", "optimizer": "Muon"}
    said |= {
        "keys": "layers: 2, optimizer: muon",
        "items": 96,
        "item": "tokens",
        "flop": 600,
        "flop_from": "counter",
    }
    assert row.items() >= said.items()
    none = {"parameters": 0, "trainable_parameters": 0}
    (bare,) = models.rows([cell(ABOUT | none)]).parameters
    assert math.isnan(bare)  # no module, no optimizer: not none, but not known
    given = cell(ABOUT | {"flops": {"given": 5}})
    assert models.chosen(given.own_model["flops"]) == (5, "given")


def test_tokens_are_those_that_it_says_and_none_of_anything_else():
    assert derived._tokens(cell()) == 96
    assert math.isnan(derived._tokens(cell(ABOUT | {"item": "images"})))
    assert math.isnan(derived._tokens(cell(ABOUT | {"item": None, "items": None})))


def test_only_what_was_counted_is_known_of_its_work():
    assert work._of_ranges(cell()) == work._of_kinds(cell()) == {}
    ((key, (operations, moved)),) = work._of_phases(cell()).items()
    assert (key, operations) == (("step",), 600)
    assert math.isnan(moved)


@pytest.mark.parametrize(
    "dtype, label, most", [("float64", "float64", 1e-4), ("bfloat16", "bfloat16", 16 / 256)]
)
def test_rungs_of_a_model_in_another_type_have_its_name_and_its_rounding(dtype, label, most):
    """Gradients 1 % off are rounding in bfloat16, not in wider types."""
    rungs = [{"name": "fp32"}, {"name": "sdpa", "attention": "sdpa", "after": "fp32"}]
    spec = {"study": "ladder", "model": "net.py:build", "variants": rungs} | PLACE
    checks = {
        name: {"loss": 2.0, "gradient_norm": norm, "gradient_sample": [norm]}
        for name, norm in (("fp32", 1.0), ("sdpa", 1.01))
    }
    record = {"summary": {"checks": checks, "model": {"dtype": f"torch.{dtype}"}}}
    found = MeasuredCell("machine/ladder/net/ctx8", spec, "", "", record)
    far = {row["variant"]: row["value"] for row in agreement.values([found])}
    assert far == {"fp32": most, "sdpa": most}
    names = [row["label"] for row in variants.rows([found])]
    assert names == [label, "fused attention (SDPA)"]


def test_variants_are_compared_with_the_first_by_their_losses():
    found = compared(base={"losses": [2.0, 1.0, 0.5]}, muon={"losses": [2.0, 1.1, 0.4]})
    # Nothing is judged: another optimizer learns otherwise.
    told = [(row["variant"], row["quantity"]) for row in agreement.values([found])]
    assert told == [("base", "loss_difference"), ("muon", "loss_difference")]
    off = [row["value"] for row in agreement.values([found])]
    assert off == pytest.approx([0, 0.1 / 0.5])
    assert list(agreement.values([compared(), cell()])) == []
    pairs = comparisons.pairs([found])
    assert pairs[["a", "b"]].to_dict("records") == [{"a": "base", "b": "muon"}]
    assert variants.rows([found]) == []  # options are ours


def test_a_rung_after_one_that_did_not_run_is_compared_with_the_nearest_that_did():
    rungs = [{"name": "fp32"}, {"name": "sdpa", "attention": "sdpa", "after": "fp32"}]
    rungs.append({"name": "fused", "attention": "sdpa", "optimizer": "fused", "after": "sdpa"})
    spec = {"study": "ladder", "model": "a.py:f", "variants": rungs} | PLACE
    states = {"fp32": ("ok", ""), "sdpa": ("unsupported", "none"), "fused": ("ok", "none")}
    told = {name: {"status": status, "reason": why} for name, (status, why) in states.items()}
    found = MeasuredCell("machine/ladder/mine/ctx8", spec, "", "", {"summary": {"variants": told}})
    assert came_after(found) == {"fp32": "", "sdpa": "fp32", "fused": "fp32"}
    pairs = comparisons.pairs([found])[["a", "b"]].to_numpy().tolist()
    assert pairs == [["fp32", "sdpa"], ["fp32", "fused"]]
    rows = {row["variant"]: row for row in variants.rows([found])}
    assert not any(row["is_aside"] for row in rows.values())
    fused = {"after": "fp32", "changed": "optimizer", "value": "fused", "attention": "naive"}
    assert rows["fused"].items() >= fused.items()  # without what it cannot have
    rungs[0]["after"] = "fused"  # after each other, and none ran
    for one in told.values():
        one["status"] = "failed"
    assert came_after(found)["fp32"] == "fused"


def test_what_could_not_be_captured_says_why_beside_an_ok():
    one = {"variant": "step", "mode": "host-free", "status": "unsupported", "reason": "no"}
    found = cell(variants={"step": {"status": "ok", "reason": ""}}, statuses=[one])
    assert found.status() == ("ok", "host-free: unsupported: no")
