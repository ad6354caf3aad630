"""The ladder's cells: a place each, with the rungs and asides as variants."""

import pytest
from common import one_line, picked
from configured import make_config
from stepscope.config import ConfigError
from stepscope.config.studies import LADDER
from stepscope.machine.labels import Hardware

SMALL = {"size": "small", "context": 128}


def laid_out(device="cuda", **changes):
    config = make_config()
    config["ladder"] = config["ladder"] | {key: {device: value} for key, value in changes.items()}
    return LADDER.cells(config, Hardware("machine", device, 1))


def test_each_rung_changes_one_thing_of_the_one_before():
    (cell,) = laid_out(places=[SMALL], asides=[])
    assert cell.name == "machine/ladder/small/ctx128"
    rungs = cell.spec["variants"]
    assert picked(rungs, "name") == [
        "fp32",
        "tf32",
        "bf16",
        "sdpa",
        "triton",
        "block",
        "graphs",
        "torch",
        "fused",
        "fp8",
    ]
    assert [rung.get("after") for rung in rungs] == [None, *picked(rungs[:-1], "name")]
    assert rungs[0] == {"name": "fp32", "precision": "fp32"}
    assert rungs[-2] == {
        "name": "fused",
        "precision": "bf16",
        "attention": "triton",
        "compile": "graphs",
        "optimizer": "fused",
        "after": "torch",
    }
    assert {"precision", "attention", "compile", "optimizer"}.isdisjoint(cell.spec)
    assert (cell.spec["context"], cell.spec["num_layers"], cell.spec["batch"]) == (128, 12, 4)


def test_asides_leave_from_their_rung_at_the_sizes_that_they_name():
    found = laid_out(
        places=[SMALL, {"size": "xl", "context": 64, "batch": 2}],
        rungs=[{"precision": "bf16"}, {"attention": "sdpa"}],
        asides=[
            {"after": "sdpa", "together": {"compile": "model"}, "size": ["small"]},
            {"after": "bf16", "together": {"checkpoint": 2}},
            {"after": "bf16", "together": {"checkpoint": 1}},
            {"after": "sdpa", "together": {"checkpoint": 2}},
        ],
    )
    assert [cell.name for cell in found] == [
        "machine/ladder/small/ctx128",
        "machine/ladder/xl/ctx64/batch=2",
    ]
    small, xl = (cell.spec["variants"][2:] for cell in found)
    bf16, sdpa = {"precision": "bf16"}, {"precision": "bf16", "attention": "sdpa"}
    assert small == [
        {"name": "model", **sdpa, "compile": "model", "after": "sdpa"},
        {"name": "checkpoint=2", **bf16, "checkpoint": 2, "after": "bf16"},
        {"name": "checkpoint=1", **bf16, "checkpoint": 1, "after": "bf16"},
        {"name": "sdpa+checkpoint=2", **sdpa, "checkpoint": 2, "after": "sdpa"},
    ]
    assert xl == small[1:]


@pytest.mark.parametrize(
    "shown, changes",
    {
        "ladder.places.cuda: there is no size 'huge'": {"places": [{"size": "huge", "context": 1}]},
        "ladder: small: asides: there is no size 'huge'": {
            "asides": [{"after": "fp32", "size": ["huge"], "together": {"checkpoint": 1}}]
        },
        "ladder: small/ctx128: checkpoint 13 is more than the model's blocks (12)": {
            "asides": [{"after": "fp32", "together": {"checkpoint": 13}}],
            "places": [SMALL],
        },
        "ladder: small: asides: there is no rung 'fp4'": {
            "places": [
                {
                    **SMALL,
                    "rungs": [{"precision": "fp32"}],
                    "asides": [{"after": "fp4", "together": {"checkpoint": 1}}],
                }
            ]
        },
        "there is no rung 'fp4'; add it to the configuration, or choose from fp32, tf32,": {
            "asides": [{"after": "fp4", "together": {"checkpoint": 1}}]
        },
        "ladder: small: start: there is no rung 'fp4'; add it to the configuration": {
            "places": [SMALL | {"start": "fp4"}]
        },
        "ladder: small: rungs: fp32 is there twice": {
            "rungs": [{"precision": "fp32"}, {"precision": "fp32"}]
        },
    }.items(),
)
def test_a_ladder_that_is_wrong_is_named(changes, shown):
    assert shown in one_line(ConfigError, laid_out, **changes)


def test_a_place_that_is_there_twice_is_one_cell():
    assert len(laid_out(places=[SMALL, SMALL | {"context": 64}, SMALL | {"batch": 4}])) == 2


def test_a_place_that_starts_at_a_rung_has_those_from_it_on_and_no_asides():
    asides = [{"after": "bf16", "together": {"checkpoint": 1}}]
    (cell,) = laid_out(places=[SMALL | {"batch": 2, "start": "fused"}], asides=asides)
    assert cell.name == "machine/ladder/small/ctx128/batch=2"
    assert [(rung["name"], rung.get("after")) for rung in cell.spec["variants"]] == [
        ("fused", None),
        ("fp8", "fused"),
    ]
    assert cell.spec["variants"][0]["compile"] == "graphs"


def test_a_place_may_have_rungs_of_its_own():
    """And asides of these; others keep the ladder's."""
    today = [
        {"precision": "bf16", "attention": "sdpa", "optimizer": "torch", "loss": "torch"},
        {"compile": "block"},
        {"loss": "chunked", "checkpoint": 2},
    ]
    aside = {"after": "block", "together": {"precision": "fp8_rowwise"}}
    own = {"rungs": today, "asides": [aside]}
    places = [SMALL, {"size": "small", "context": 64, "batch": 2, **own}]
    first, second = laid_out(
        places=places, asides=[{"after": "bf16", "together": {"compile": "model"}}]
    )
    assert picked(first.spec["variants"], "name")[-2:] == ["fp8", "model"]
    tuned = {"precision": "bf16", "attention": "sdpa", "optimizer": "torch", "loss": "torch"}
    start = "bf16+sdpa+torch+loss=torch"
    assert second.spec["variants"] == [
        {"name": start, **tuned},
        {"name": "block", **tuned, "compile": "block", "after": start},
        {
            "name": "loss=chunked+checkpoint=2",
            **tuned,
            "compile": "block",
            "loss": "chunked",
            "checkpoint": 2,
            "after": "block",
        },
        {
            "name": "fp8_rowwise",
            **tuned,
            "precision": "fp8_rowwise",
            "compile": "block",
            "after": "block",
        },
    ]


@pytest.mark.parametrize("device", ["cuda", "cpu"])
@pytest.mark.parametrize(
    "own",
    [
        {"start": "bf16", "rungs": [{"precision": "bf16"}]},
        {"asides": [{"after": "bf16", "together": {"checkpoint": 1}}]},
    ],
)
def test_start_is_of_the_ladders_rungs_alone_and_asides_of_ones_own(device, own):
    place = {"size": "nano", "context": 8, **own}
    assert "ladder.places" in one_line(
        ConfigError, make_config, ladder={"places": {device: [place]}}
    )
