"""The cells of the studies that lay out their grid themselves: the optimisation ladder and the warm-up study."""

import pytest
from stepscope.config import ConfigError
from stepscope.config.studies import LADDER, WARMUP


def laid_out(make_config, device="cuda", **changes):
    config = make_config()
    config["ladder"] = config["ladder"] | {key: {device: value} for key, value in changes.items()}
    return LADDER.cells(config, device, "machine", 1)


def test_each_rung_changes_one_thing_of_the_one_before(make_config):
    found = laid_out(make_config, places=[{"size": "small", "context": 128}], asides=[])
    assert [cell.name.removeprefix("machine/ladder/small/ctx128/") for cell in found] == [
        "fp32",
        "tf32",
        "bf16",
        "bf16/attention=sdpa",
        "bf16/attention=triton",
        "bf16/attention=triton/compile=block",
        "bf16/attention=triton/compile=graphs",
        "bf16/attention=triton/optimizer=fused/compile=graphs",
    ]
    assert [cell.chosen for cell in found[::7]] == [
        {"attention": "naive", "optimizer": "own", "model": "transformer"},
        {"attention": "triton", "optimizer": "fused", "model": "transformer"},
    ]
    last = found[-1].spec
    assert (last["compile"], last["context"], last["num_layers"]) == ("graphs", 128, 12)
    assert not {"attention", "compile", "optimizer", "checkpoint"} & set(found[0].spec)


def test_asides_leave_from_their_rung_after_the_ladder_at_the_sizes_that_they_name(make_config):
    found = laid_out(
        make_config,
        places=[{"size": "small", "context": 128}, {"size": "xl", "context": 64, "batch": 2}],
        rungs=[{"precision": "bf16"}, {"attention": "sdpa"}],
        asides=[{"rung": 1, "compile": ["model"], "size": ["small"]}, {"rung": 0, "checkpoint": [2, 1]}],
    )
    small, xl = "machine/ladder/small/ctx128/bf16", "machine/ladder/xl/ctx64/bf16/batch=2"
    assert [cell.name for cell in found] == [
        *(f"{small}{rest}" for rest in ("", "/attention=sdpa", "/attention=sdpa/compile=model")),
        *(f"{small}/checkpoint={every}" for every in (2, 1)),
        *(f"{xl}{rest}" for rest in ("", "/attention=sdpa", "/checkpoint=2", "/checkpoint=1")),
    ]


@pytest.mark.parametrize(
    "changes, shown",
    [
        ({"places": []}, "ladder.places.cuda: the list is empty"),
        ({"places": [{"size": "huge", "context": 1}]}, "ladder.places.cuda: there is no size 'huge'"),
        ({"asides": [{"rung": 1, "size": ["huge"], "checkpoint": [1]}]}, "ladder.asides.cuda: there is no size 'huge'"),
        ({"asides": [{"rung": 1, "size": ["small"]}]}, "ladder.asides.cuda: the aside of rung 1 varies nothing"),
        (
            {"asides": [{"rung": 0, "checkpoint": [13]}], "places": [{"size": "small", "context": 128}]},
            "ladder.asides.cuda: checkpoint 13 is more than the blocks of size small (12)",
        ),
        ({"asides": [{"rung": 8, "checkpoint": [1]}]}, "ladder.asides.cuda: there is no rung 8; the rungs are 0 to 7"),
    ],
)
def test_a_ladder_that_is_wrong_is_named(changes, shown, make_config):
    with pytest.raises(ConfigError) as error:
        laid_out(make_config, **changes)
    assert shown in str(error.value) and len(str(error.value).splitlines()) == 1


def test_each_count_of_warm_up_steps_is_a_cell_and_the_first_step_is_profiled_in_one_more(make_config):
    config = make_config()
    found = WARMUP.cells(config, "cuda", "machine", 1)
    small = [cell for cell in found if cell.size == "small"]
    assert [cell.name.removeprefix("machine/warmup/small/ctx128/fp32/") for cell in small] == [
        *(f"warmup={count}" for count in (0, 1, 2, 5, 10)),
        "first=profiled",
    ]
    assert [(cell.spec["warmup"], cell.spec["steps"]) for cell in small] == [
        *((count, 10) for count in (0, 1, 2, 5, 10)),
        (10, 10),
    ]
    assert [cell.spec.get("first") for cell in small] == [None] * 5 + ["profiled"]
    config["warmup"]["grid"]["cuda"][0]["mode"] = ["forward"]
    with pytest.raises(ConfigError, match=r"^config key warmup.grid.cuda: every cell runs whole steps; remove mode$"):
        WARMUP.cells(config, "cuda", "machine", 1)
    del config["warmup"]["grid"]["cuda"][0]["mode"]
    config["warmup"]["profile_first"] = False
    assert [cell.name for cell in WARMUP.cells(config, "cuda", "machine", 1)] == [
        cell.name for cell in found if "first" not in cell.spec
    ]
