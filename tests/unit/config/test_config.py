"""The configuration: presets, and the cells of a grid."""

import pytest
from common import ROOT, one_line
from configured import cells_of, make_config
from stepscope.config import ConfigError
from stepscope.config.studies import ATTENTION, LADDER, LEARNING, STUDIES
from stepscope.machine.labels import Hardware
from stepscope.yaml_files import read_yaml

ENTRY = {"implementation": ["naive"], "d_head": [16], "precision": ["fp32"], "lengths": [64]}


def on(device):
    """A machine of enough GPUs."""
    return Hardware("machine", device, 1, gpus=8)


@pytest.mark.parametrize(
    "over, words",
    [
        ({"batch": [8], "width": 60}, "width 60 is no multiple of d_head 16; change one"),
        (
            {"batch": [8], "window": [5]},
            "window 5 needs a causal mask; add mask: [causal], or remove window",
        ),
        (
            {"batch": [8], "width": 64, "key_value_heads": [3]},
            "key_value_heads 3 does not divide 4 heads (width / d_head); use a divisor",
        ),
    ],
)
def test_an_attention_grid_that_cannot_be_is_one_line(over, words):
    said = one_line(ConfigError, cells_of, ATTENTION, ENTRY | over)
    assert said == f"config key attention.grid.cpu: {words}"


@pytest.mark.parametrize(
    "over, said",
    [
        ({"batch": [8], "tokens": 64}, "is valid under each of"),
        ({}, "is not valid under any of the given schemas; Its axes; batch, or tokens (batch x"),
        ({"batch": [8], "key_value_heads": [2]}, "'width' is a dependency of 'key_value_heads'"),
    ],
)
def test_what_belongs_to_what_in_an_attention_grid(over, said):
    told = one_line(ConfigError, make_config, attention={"grid": {"cpu": [ENTRY | over]}})
    assert told.startswith("config key attention.grid.cpu.0: ") and said in told


def test_two_entries_that_say_different_things_of_a_cell_are_refused():
    entry = ENTRY | {"batch": [8]}
    said = one_line(ConfigError, cells_of, ATTENTION, entry, entry | {"lengths": [128]})
    words = "machine/attention/d16/fp32 is there with two lengths; make one of them"
    assert said == f"config key attention.grid: {words}"


def test_a_cell_of_attention_has_its_implementations_as_variants_and_options_in_its_name():
    entry = {"implementation": ["triton", "naive"], "d_head": [64], "precision": ["bf16"]}
    many = entry | {
        "tokens": 16384,
        "width": 2048,
        "lengths": [4096, 1024],
        "mask": ["full", "causal"],
    }
    found = cells_of(ATTENTION, many, entry | {"batch": [8, 2], "lengths": [256]}, device="cuda")
    assert [cell.name.removeprefix("machine/attention/d64/bf16") for cell in found] == [
        "/tokens=16384/heads=32",
        "/mask=causal/tokens=16384/heads=32",
        "",
        "/batch=2",
    ]
    assert found[1].spec["lengths"] == [1024, 4096]
    assert found[1].spec["variants"] == [{"name": "triton"}, {"name": "naive"}]
    assert (found[1].spec["mask"], "mask" in found[0].spec) == ("causal", False)


def test_heads_masks_and_windows_stand_in_path_and_spec_unless_neutral():
    shared = {"width": 128, "key_value_heads": [0, 2, 8], "batch": [8]}
    seen = {"window": [0, 100], "mask": ["causal"], "batch": [8]}
    cells = cells_of(ATTENTION, ENTRY | shared, ENTRY | seen)
    assert [cell.name.removeprefix("machine/attention/d16/fp32") for cell in cells] == [
        "/heads=8",
        "/heads=8/key_value_heads=2",
        "/mask=causal",
        "/mask=causal/window=100",
    ]
    assert cells[1].spec == cells[0].spec | {"key_value_heads": 2}
    assert cells[3].spec == cells[2].spec | {"window": 100}


@pytest.mark.parametrize(
    "preset, device, counts",
    # timing, ladder, parallel, attention, ceilings, profile, memory, precision, learning
    [
        # 5 sizes x 2 contexts x 2 precisions, and more; 5 matmuls, a copy
        (
            "default",
            "cuda",
            [20 + 4 + 2 + 2, 8, 2, 14, 6, 10 + 4 + 1 + 2 + 3 + 3, 24 + 2 + 1, 3, 1],
        ),
        ("default", "cpu", [2 + 1 + 1, 1, 1, 1, 3, 2, 2 + 1, 3, 1]),
        ("smoke", "cuda", [2, 1, 0, 1, 3, 1, 1, 2, 1]),
        ("smoke", "cpu", [2, 1, 0, 1, 2, 2, 2, 2, 1]),
        (
            "cs336-2026",
            "cuda",
            [5 * 2 + 4 + 4 + 3, 2, 1, 4 + 4 * 2, 6, 2 * 3 * 2 + 1, 2 * 2 * 2 + 8, 3, 1],
        ),
        ("cs336-2026", "cpu", [2, 1, 0, 1, 2, 1, 2, 3, 1]),
        ("published", "cpu", [2, 1, 0, 1, 2, 2, 2, 3, 0]),
        ("own", "cuda", [0, 0, 0, 0, 4, 0, 0, 0, 0]),
    ],
)
def test_presets_have_the_cells_that_they_should(preset, device, counts):
    config = make_config(preset=preset)
    assert [len(study.cells(config, on(device))) for study in STUDIES] == counts


PRESETS = ["smoke", "own", "cs336-2026", "published", *(f"published-00{n}" for n in range(5))]


def test_every_preset_is_known():
    files = (ROOT / "rules/presets").glob("*.yaml")
    assert {path.stem: read_yaml(path)["preset"] for path in files} == {
        name: name for name in PRESETS
    }


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_every_preset_is_valid_and_has_each_cell_once(preset, device):
    config = make_config(preset=preset)
    names = [cell.name for study in STUDIES for cell in study.cells(config, on(device))]
    assert len(set(names)) == len(names) >= 3


@pytest.mark.parametrize("part", PRESETS[4:])
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_write_ups_cells_are_the_same_in_its_preset_and_in_the_whole(part, device):
    """So that running one after the other measures nothing twice."""
    whole, own = make_config(preset="published"), make_config(preset=part)
    for study in STUDIES:
        known = {cell.name: cell.spec for cell in study.cells(whole, on(device))}
        assert known | {cell.name: cell.spec for cell in study.cells(own, on(device))} == known


@pytest.mark.parametrize("preset", ["smoke", "published"])
def test_the_presets_cells_are_those_of_the_default_where_both_have_them(preset):
    default, other = make_config(), make_config(preset=preset)
    for study in {*STUDIES} - {ATTENTION, LADDER, LEARNING}:  # variants are a cell's
        known, own = (
            {cell.name: cell.spec for cell in study.cells(each, on("cuda"))}
            for each in (default, other)
        )
        assert known | own == own | known


def test_this_years_course_calls_xl_what_is_2_7b_here():
    """The handout's table: 2560, 10240, 32, 32; last year's was 1600 wide."""
    sizes = make_config(preset="cs336-2026")["sizes"]
    assert sizes["xl"] == sizes["2.7B"] != make_config()["sizes"]["xl"]
    assert list(sizes["10B"].values()) == [4608, 12288, 50, 36]
