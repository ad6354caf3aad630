"""From grids to cells: order, names, specs."""

import dataclasses
import importlib
import json
import shlex

import pytest
from stepscope.config import ConfigError
from stepscope.config.grid import command_of, options_path, points, words_of
from stepscope.config.recordings import recorded
from stepscope.config.studies import ATTENTION, CEILINGS, MEMORY, PROFILE, STUDIES, TIMING

ENTRY = {"size": ["nano"], "context": [64], "precision": ["fp32"]}


@pytest.fixture
def cells_of(make_config):
    """The timing cells of grid entries on a CPU."""

    def cells(*entries, **over):
        config = make_config(**over)
        config["timing"] |= {"grid": {"cpu": list(entries)}}
        return TIMING.cells(config, "cpu", "machine", 3)

    return cells


def test_points_are_the_product_of_each_entrys_lists_in_order():
    entries = [{"b": [1, 2], "a": ["x", "y"]}, {"a": ["z"]}]
    assert points("timing", entries, ("a", "b", "c")) == [
        {"a": "x", "b": 1},
        {"a": "x", "b": 2},
        {"a": "y", "b": 1},
        {"a": "y", "b": 2},
        {"a": "z"},
    ]


def test_an_empty_grid_is_refused():
    with pytest.raises(ConfigError, match=r"^config key timing\.grid: the grid is empty; give"):
        points("timing", [], ("a",))


def test_a_cell_has_its_place_and_all_that_its_program_is_told(cells_of):
    (cell,) = cells_of(ENTRY)
    assert (cell.name, cell.study, cell.size, cell.program) == (
        "machine/timing/nano/ctx64/fp32",
        "timing",
        "nano",
        "time_step.py",
    )
    # config.yaml's values
    assert cell.spec == {
        **{"study": "timing", "d_model": 128, "d_ff": 512, "num_layers": 4, "num_heads": 4, "vocab_size": 10000},
        **{"context": 64, "batch": 4, "precision": "fp32", "processes": 3, "warmup": 1, "steps": 3},
        **{"max_steps": 10, "max_seconds": 0.5, "seed": 0, "threads": 3, "device": "cpu"},
    }


def test_shared_heads_and_windows_of_the_model(cells_of):
    found = {cell.name: cell.spec for cell in cells_of(ENTRY | {"key_value_heads": [0, 2], "window": [0, 16]})}
    plain = found["machine/timing/nano/ctx64/fp32"]
    assert found == {
        "machine/timing/nano/ctx64/fp32": plain,
        "machine/timing/nano/ctx64/fp32/window=16": plain | {"window": 16},
        "machine/timing/nano/ctx64/fp32/key_value_heads=2": plain | {"key_value_heads": 2},
        "machine/timing/nano/ctx64/fp32/key_value_heads=2/window=16": plain | {"key_value_heads": 2, "window": 16},
    }
    assert not {"key_value_heads", "window"} & set(plain)


def test_as_many_heads_of_keys_as_of_queries_are_the_plain_cell(cells_of):
    assert cells_of(ENTRY | {"key_value_heads": [4]}) == cells_of(ENTRY)


def test_heads_of_keys_that_do_not_divide_those_of_queries_are_one_line(cells_of):
    with pytest.raises(ConfigError) as refused:
        cells_of(ENTRY | {"key_value_heads": [3]})
    assert str(refused.value) == (
        "config key timing.grid.cpu: size nano has 4 heads, which key_value_heads 3 does not divide; use a divisor"
    )


def test_axes_at_their_neutral_value_stand_neither_in_the_path_nor_in_the_spec(cells_of):
    (plain,) = cells_of(ENTRY)
    neutral = {
        "mode": ["step"],
        "batch": [4],
        "attention": ["naive"],
        "optimizer": ["own"],
        "compile": ["none"],
        "checkpoint": [0],
    }
    assert cells_of({**ENTRY, **neutral}) == [plain]


def test_other_options_stand_in_both_in_the_order_of_the_axes(cells_of):
    options = {"compile": ["block"], "optimizer": ["fused"], "attention": ["sdpa"], "mode": ["forward"], "batch": [64]}
    (cell,) = cells_of({**ENTRY, **options})
    assert cell.name.removeprefix("machine/timing/nano/ctx64/fp32") == (
        "/batch=64/mode=forward/attention=sdpa/optimizer=fused/compile=block"
    )
    assert {key: cell.spec[key] for key in options} == {key: value for key, (value,) in options.items()}


def test_a_batch_is_neutral_if_it_is_the_configurations(cells_of):
    model = {"vocab_size": 10, "batch": 64, "seed": 0}
    (cell,) = cells_of({**ENTRY, "batch": [64]}, model=model)
    assert "batch" not in cell.name
    assert cell.spec["batch"] == 64


@pytest.mark.parametrize("again", [ENTRY, {**ENTRY, "batch": [4]}])
def test_a_cell_that_two_entries_name_is_one_cell(again, cells_of):
    assert [cell.name for cell in cells_of(ENTRY, again)] == ["machine/timing/nano/ctx64/fp32"]


def test_an_unknown_size_is_refused_with_those_that_exist(cells_of):
    with pytest.raises(ConfigError, match=r"^config key timing\.grid\.cpu: there is no size 'huge'; .* nano, tiny,"):
        cells_of({**ENTRY, "size": ["huge"]})


def test_a_shape_that_no_model_can_have_is_refused_by_name(cells_of):
    sizes = {"odd": {"d_model": 10, "d_ff": 8, "num_layers": 1, "num_heads": 3}}
    with pytest.raises(ConfigError, match=r"^config key sizes\.odd: d_model = 10 is not divisible by num_heads = 3$"):
        cells_of({**ENTRY, "size": ["odd"]}, sizes=sizes)


def test_the_study_of_ceilings_has_a_product_for_each_precision_and_a_copy(make_config):
    cells = CEILINGS.cells(make_config(), "cpu", "machine", 3)
    series = {"processes": 3, "warmup": 2, "steps": 5, "max_seconds": 0.5}
    common = {**series, "seed": 0, "threads": 3, "device": "cpu"}
    assert {cell.name.removeprefix("machine/ceilings/"): cell.spec for cell in cells} == {
        "matmul/fp32": {"study": "ceilings", "operation": "matmul", "order": 1536, "precision": "fp32", **common},
        "matmul/bf16": {"study": "ceilings", "operation": "matmul", "order": 1536, "precision": "bf16", **common},
        "copy/fp32": {"study": "ceilings", "operation": "copy", "mebibytes": 256, "precision": "fp32", **common},
    }


def test_a_spec_as_flags_and_as_a_command():
    spec = {"study": "timing", "d_model": 512, "max_seconds": 0.5, "mode": "forward-backward"}
    words = ["--d-model", "512", "--max-seconds", "0.5", "--mode", "forward-backward"]
    assert words_of(spec) == words
    assert shlex.split(command_of("time_step.py", spec)) == ["python", "scripts/time_step.py", *words]


def test_a_list_or_mapping_is_json_in_one_word():
    spec = {"variants": [{"name": "a b", "batch": 4}]}
    assert words_of(spec) == ["--variants", '[{"name":"a b","batch":4}]']
    assert shlex.split(command_of("time_ladder.py", spec))[-1] == '[{"name":"a b","batch":4}]'


def test_a_cell_is_the_same_text_however_its_spec_was_written(cells_of):
    cell = cells_of(ENTRY)[0]
    backwards = dataclasses.replace(cell, spec=dict(reversed(cell.spec.items())))
    assert cell.json == backwards.json
    assert json.loads(cell.json) == cell.spec


def test_paths_of_options():
    assert options_path({}) == ""
    assert options_path({"batch": 64, "mode": "forward-backward"}) == "/batch=64/mode=forward-backward"


@pytest.fixture
def grid_of(make_config):
    """The cells of one grid entry of a study on a CPU."""

    def cells(study, **entry):
        config = make_config()
        config[study.name] |= {"grid": {"cpu": [{**ENTRY, **entry}]}}
        return study.cells(config, "cpu", "machine", 3)

    return cells


@pytest.mark.parametrize(
    ("study", "axis", "neutral", "value", "changed"),
    [
        (MEMORY, "start", "warm", "cold", {"warmup": 0, "steps": 2}),
        (PROFILE, "start", "warm", "cold", {"profiler": "torch", "start": "cold"}),
        (PROFILE, "detail", "kernels", "autograd", {"nsys_pytorch": "autograd-nvtx"}),
        (PROFILE, "detail", "kernels", "python", {"nsys_trace": "cuda,nvtx,osrt", "nsys_python_backtrace": "cuda"}),
    ],
)
def test_what_is_recorded_stands_in_the_path_by_name_and_in_the_spec_as_flags(
    study, axis, neutral, value, changed, grid_of
):
    (plain,) = grid_of(study)
    same, other = grid_of(study, **{axis: [neutral, value]})
    assert same == plain
    assert other.name == f"{plain.name}/{axis}={value}"
    assert other.spec == plain.spec | changed
    assert (recorded(plain.name, axis), recorded(other.name, axis)) == (neutral, value)


@pytest.mark.parametrize(("study", "axis"), [(TIMING, "start"), (MEMORY, "detail")])
def test_an_axis_of_another_study_is_named(study, axis, grid_of):
    with pytest.raises(
        ConfigError, match=rf"^config key {study.name}\.grid\.cpu: its cells have no {axis}; remove it$"
    ):
        grid_of(study, **{axis: ["x"]})


def test_two_entries_that_say_different_things_of_a_cell_are_refused(make_config):
    config = make_config()
    entry = {"implementation": ["naive"], "d_head": [16], "precision": ["fp32"], "batch": [8], "lengths": [64]}
    config["attention"]["grid"]["cpu"] = [entry, entry | {"lengths": [128]}]
    with pytest.raises(ConfigError) as refused:
        ATTENTION.cells(config, "cpu", "machine", 1)
    assert str(refused.value) == (
        "config key attention.grid: machine/attention/d16/fp32 is there with two lengths; make one of them"
    )


@pytest.mark.parametrize("preset", ["default", "smoke", "published"])
def test_every_cell_of_every_preset_survives_its_programs_flags(preset, make_config):
    config = make_config(preset=preset)
    for study in STUDIES:
        parse = importlib.import_module(study.program).parse
        for cell in (cell for device in ("cpu", "cuda") for cell in study.cells(config, device, "machine", 2)):
            spec = cell.spec | {"device": "cpu"}  # a program refuses a GPU that is not there
            assert parse(words_of(spec))[0] == spec
