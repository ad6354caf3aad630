"""The configuration: presets, and the cells of a grid."""

import copy

import pytest
from stepscope.config import ConfigError
from stepscope.config.config import merged, read_yaml
from stepscope.config.studies import ATTENTION, STUDIES, WARMUP


def test_merging_goes_key_by_key_and_replaces_lists():
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 1, "e": {"f": 1}}
    over = {"a": {"c": [3]}, "d": {"g": 2}, "e": None}
    before = copy.deepcopy((base, over))
    assert merged(base, over) == {"a": {"b": 1, "c": [3]}, "d": {"g": 2}, "e": None}
    assert (base, over) == before


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"batch": [8], "tokens": 64}, "an entry has batch, or tokens (batch × length); give one of them"),
        ({}, "an entry has batch, or tokens (batch × length); give one of them"),
        ({"batch": [8], "width": 60}, "width 60 is no multiple of d_head 16; change one"),
        ({"batch": [8], "window": [5]}, "window 5 needs a causal mask; add mask: [causal], or remove window"),
        (
            {"batch": [8], "mask": ["full"], "causal": [True]},
            "an entry has mask, or causal (true is mask causal); remove one of them",
        ),
        (
            {"batch": [8], "key_value_heads": [2]},
            "key_value_heads 2 needs a dimension of heads; add width (heads x d_head)",
        ),
        (
            {"batch": [8], "width": 64, "key_value_heads": [3]},
            "key_value_heads 3 does not divide 4 heads (width / d_head); use a divisor",
        ),
    ],
)
def test_an_attention_grid_that_cannot_be_is_one_line(entry, words, make_config):
    config = make_config()
    entry |= {"implementation": ["naive"], "d_head": [16], "precision": ["fp32"], "lengths": [64]}
    config["attention"]["grid"]["cpu"] = [entry]
    with pytest.raises(ConfigError) as refused:
        ATTENTION.cells(config, "cpu", "machine", 1)
    assert str(refused.value) == f"config key attention.grid.cpu: {words}"


def test_attention_cells_are_named_by_what_is_not_neutral(make_config):
    config = make_config()
    entry = {"implementation": ["triton"], "d_head": [64], "precision": ["bf16"], "causal": [False, True]}
    config["attention"]["grid"]["cuda"] = [
        entry | {"tokens": 16384, "width": 2048, "lengths": [4096, 1024]},
        entry | {"batch": [8, 2], "lengths": [256]},
    ]
    found = ATTENTION.cells(config, "cuda", "machine", 1)
    assert [cell.name.removeprefix("machine/attention/triton/d64/bf16") for cell in found] == [
        "/tokens=16384/heads=32",
        "/tokens=16384/heads=32/causal=yes",
        "",
        "/causal=yes",
        "/batch=2",
        "/batch=2/causal=yes",
    ]
    assert found[1].spec["lengths"] == "1024,4096"
    assert found[1].chosen == {"attention": "triton"}


def test_heads_keys_masks_and_windows_stand_in_path_and_spec_unless_neutral(make_config):
    config = make_config()
    entry = {"implementation": ["naive"], "d_head": [64], "precision": ["fp32"], "lengths": [256], "batch": [8]}
    config["attention"]["grid"]["cpu"] = [
        entry | {"mask": ["full", "causal", "causal-lower-right"], "width": 512, "key_value_heads": [0, 2]},
        entry | {"keys": [0, 4096], "window": [0, 100], "causal": [True]},
    ]
    found = {
        cell.name.removeprefix("machine/attention/naive/d64/fp32"): cell.spec
        for cell in ATTENTION.cells(config, "cpu", "machine", 1)
    }
    assert list(found) == [
        "/heads=8",
        "/heads=8/key_value_heads=2",
        "/heads=8/causal=yes",
        "/heads=8/causal=yes/key_value_heads=2",
        "/heads=8/mask=causal-lower-right",
        "/heads=8/mask=causal-lower-right/key_value_heads=2",
        "/causal=yes",
        "/causal=yes/window=100",
        "/causal=yes/keys=4096",
        "/causal=yes/window=100/keys=4096",
    ]
    plain = found["/heads=8"]
    assert found["/heads=8/mask=causal-lower-right/key_value_heads=2"] == plain | {
        "mask": "causal-lower-right",
        "key_value_heads": 2,
    }
    assert not {"mask", "key_value_heads", "keys", "window", "causal"} & set(plain)


def test_as_many_heads_of_keys_as_of_queries_are_neutral(make_config):
    config = make_config()
    entry = {"implementation": ["naive"], "d_head": [64], "precision": ["fp32"], "lengths": [256], "batch": [8]}
    config["attention"]["grid"]["cpu"] = [entry | {"width": 512, "key_value_heads": [8]}]
    (cell,) = ATTENTION.cells(config, "cpu", "machine", 1)
    assert cell.name == "machine/attention/naive/d64/fp32/heads=8"
    assert "key_value_heads" not in cell.spec


@pytest.mark.parametrize(
    "preset, device, counts",
    # timing, ceilings, profile, memory, attention, precision, warmup, ladder
    [
        # config.yaml: 5 sizes x (4 contexts x 2 precisions + 2 contexts), as control 2 + 4 + 2; 4 matmuls, a copy
        (
            "default",
            "cuda",
            [
                40 + 10 + 8,
                4 + 1,
                5 * 2 + 3 * 2 + 1 + 2,
                2 * 4 * 2 * 2 + 2,
                7 * 4 + 3 * 2 + 2 * 2 + 5 * 2 + 2 + 2 + 3 + 1,
                3,
                5 * 6,
                3 * 8 + 2 * 4 + 1,
            ],
        ),
        ("default", "cpu", [2 * 2 * 2 + 2, 2 + 1, 1, 2 * 2 + 2, 2 * 2 + 1, 3, 3 + 1, 4 + 2]),
        ("smoke", "cuda", [3 * 2 + 2, 2 + 1, 2, 2 * 2, 3, 3, 2 + 1, 6]),
        ("smoke", "cpu", [2 + 1, 1 + 1, 1, 2, 2, 3, 1 + 1, 4]),
        # published-000.yaml …: smoke's cells, then entry by entry what these do not hold
        ("published-000", "cuda", [8 + 5, 5, 2 + 2, 4, 3, 3, 6, 6]),
        ("published-001", "cuda", [8 + 3 + 3, 5, 2 + 3, 4 + 3 + 1 + 1 + 1, 3 + 2 * 4, 3, 6 + 6, 6]),
        ("published-002", "cuda", [8 + 5 * 4 * 2 - 6 + 5, 5, 2 + 2, 4, 3, 3, 6 + 5 * 6, 6]),
        ("published-003", "cuda", [8 + 1 + 5 * 2, 5, 2 + 6 * 4 - 1 + 2, 4 + 3 * 2 * 2, 3, 3, 6 + 6, 6]),
        ("published-004", "cuda", [8 + 1 + 1 + 3, 5, 2 + 3 * 2, 4 + 3, 3 + 2 * 5 + 5, 3, 6 + 6, 6]),
        # timing by context in fp32, then bf16, fp16, repeats; profile in step, other modes and precisions, in detail
        (
            "published",
            "cuda",
            [
                1 + 6 + (5 + 1 + 1) + 5 + 5 + (5 * 4 + 1) + (3 + 1) + (5 + 2),
                5,
                6 * 4 + 3 + 3 + 5,
                4 + 6 + 12 + 3,
                3 + 2 * 6 + 5,
                3,
                (1 + 1 + 5 + 1 + 1) * 6,
                6,
            ],
        ),
        ("published", "cpu", [2 + 1, 1 + 1, 1, 2, 2, 3, 1 + 1, 4]),
    ],
)
def test_every_preset_is_valid_and_has_the_cells_that_it_should(preset, device, counts, make_config):
    config = make_config(preset=preset)
    assert [len(study.cells(config, device, "machine", 1)) for study in STUDIES] == counts


def test_every_preset_is_tested(project_root):
    tested = {"smoke", "published", *(f"published-00{number}" for number in range(5))}
    presets = {path.stem: read_yaml(path)["preset"] for path in (project_root / "rules/presets").glob("*.yaml")}
    assert presets == {name: name for name in tested}


@pytest.mark.parametrize("part", [f"published-00{number}" for number in range(5)])
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_write_ups_cells_are_the_same_in_its_preset_and_in_the_whole(part, device, make_config):
    """So that running one after the other measures nothing twice."""
    whole, own = make_config(preset="published"), make_config(preset=part)
    for study in STUDIES:
        known = {cell.name: cell.spec for cell in study.cells(whole, device, "machine", 1)}
        assert known | {cell.name: cell.spec for cell in study.cells(own, device, "machine", 1)} == known


@pytest.mark.parametrize("preset", ["smoke", "published"])
def test_the_presets_cells_are_those_of_the_default_where_both_have_them(preset, make_config):
    default, other = make_config(), make_config(preset=preset)
    for study in (study for study in STUDIES if study not in (ATTENTION, WARMUP)):  # lengths and counts are a cell's
        known = {cell.name: cell.spec for cell in study.cells(default, "cuda", "machine", 1)}
        own = {cell.name: cell.spec for cell in study.cells(other, "cuda", "machine", 1)}
        assert {name: own[name] for name in own.keys() & known} == {name: known[name] for name in own.keys() & known}
