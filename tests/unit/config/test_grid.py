"""From grids to cells: order, names, specs."""

import importlib

import pytest
from configured import cells_of, make_config
from stepscope.config import ConfigError
from stepscope.config.grid import points, words_of
from stepscope.config.model_cells import models_of
from stepscope.config.studies import CEILINGS, MEMORY, PARALLEL, PROFILE, STUDIES, TIMING
from stepscope.machine.labels import Hardware

ENTRY = {"size": ["nano"], "context": [64], "precision": ["fp32"]}


def test_points_are_the_product_of_an_entrys_lists_in_order():
    assert points({"b": [1, 2], "a": ["x", "y"]}, ("a", "b", "c")) == [
        {"a": "x", "b": 1},
        {"a": "x", "b": 2},
        {"a": "y", "b": 1},
        {"a": "y", "b": 2},
    ]


@pytest.mark.parametrize("study", ["timing", "attention", "profile", "memory", "ladder"])
def test_an_empty_list_leaves_its_study_out(study):
    config = make_config()
    config = make_config(
        **{study: config[study] | {"places" if study == "ladder" else "grid": {"cuda": []}}}
    )
    machine = Hardware("machine", "cuda", 1, gpus=8)
    assert [one.name for one in STUDIES if not one.cells(config, machine)] == [study]


def test_a_cell_has_its_place_and_all_that_its_program_is_told():
    (cell,) = cells_of(TIMING, ENTRY)
    assert (cell.name, cell.study, cell.size, cell.program) == (
        "machine/timing/nano/ctx64/fp32",
        "timing",
        "nano",
        "time_step.py",
    )
    # config.yaml's values; that there are no others is what the program's flags say below
    nano = {"d_model": 128, "d_ff": 512, "num_layers": 4, "num_heads": 4, "vocab_size": 10_000}
    place = {"context": 64, "batch": 4, "precision": "fp32", "threads": 3, "device": "cpu"}
    budget = {"processes": 3, "warmup": 1, "steps": 3, "max_steps": 10, "max_seconds": 0.3}
    assert cell.spec.items() >= (nano | place | budget).items()


def test_axes_at_their_neutral_value_stand_neither_in_the_path_nor_in_the_spec():
    neutral = {
        "mode": ["step"],
        "batch": [4],
        "attention": ["naive"],
        "optimizer": ["own"],
        "compile": ["none"],
    }
    neutral |= {"checkpoint": [0], "key_value_heads": [0, 4]}  # as many heads of keys as of queries
    assert cells_of(TIMING, ENTRY, ENTRY | neutral) == cells_of(TIMING, ENTRY)


def test_other_options_stand_in_both_in_the_order_of_the_axes():
    options = {
        "compile": ["block"],
        "optimizer": ["fused"],
        "attention": ["sdpa"],
        "mode": ["forward"],
        "batch": [64],
        "key_value_heads": [2],
        "window": [16],
    }
    (cell,) = cells_of(TIMING, ENTRY | options)
    named = "/batch=64/mode=forward/attention=sdpa/optimizer=fused/compile=block"
    named += "/key_value_heads=2/window=16"
    assert cell.name == f"machine/timing/nano/ctx64/fp32{named}"
    assert {key: cell.spec[key] for key in options} == {
        key: value for key, (value,) in options.items()
    }


def test_a_batch_is_neutral_if_it_is_the_configurations():
    model = {"vocab_size": 10, "batch": 64, "seed": 0}
    (cell,) = cells_of(TIMING, ENTRY | {"batch": [64]}, model=model)
    assert "batch" not in cell.name
    assert cell.spec["batch"] == 64


@pytest.mark.parametrize(
    "study, over, said",
    [
        (
            TIMING,
            {"size": ["huge"]},
            r"timing\.grid\.cpu\.0: there is no size 'huge'; .* nano, tiny,",
        ),
        (TIMING, {"size": ["odd"]}, r"sizes\.odd: d_model = 10 is not divisible by num_heads = 3$"),
        (
            TIMING,
            {"key_value_heads": [3]},
            (
                r"timing\.grid\.cpu\.0: size nano: num_heads = 4 is not divisible by"
                r" key_value_heads = 3$"
            ),
        ),
        (TIMING, {"start": ["x"]}, r"timing\.grid\.cpu\.0: its cells have no start; remove it$"),
        (MEMORY, {"detail": ["x"]}, r"memory\.grid\.cpu\.0: its cells have no detail; remove it$"),
    ],
)
def test_an_entry_that_cannot_be_is_one_line(study, over, said):
    sizes = make_config()["sizes"]
    if over == {"size": ["odd"]}:
        sizes["odd"] = {"d_model": 10, "d_ff": 8, "num_layers": 1, "num_heads": 3}
    with pytest.raises(ConfigError, match=f"^config key {said}"):
        cells_of(study, ENTRY | over, sizes=sizes)


def test_the_study_of_ceilings_has_a_product_for_each_precision_and_a_copy():
    cells = CEILINGS.cells(make_config(), Hardware("machine", "cpu", 3))
    series = {"processes": 3, "warmup": 2, "steps": 5, "max_seconds": 0.5}
    common = {**series, "study": "ceilings", "seed": 0, "threads": 3, "device": "cpu"}
    product = common | {"operation": "matmul", "order": 1536}
    copy = common | {"operation": "copy", "mebibytes": 256}
    assert {cell.name.removeprefix("machine/ceilings/"): cell.spec for cell in cells} == {
        "matmul/fp32": product | {"precision": "fp32"},
        "matmul/bf16": product | {"precision": "bf16"},
        "copy/fp32": copy | {"precision": "fp32"},
    }


@pytest.mark.parametrize(
    "study, axis, neutral, value, changed",
    [
        (MEMORY, "start", "warm", "cold", {"warmup": 0, "steps": 2}),
        (PROFILE, "start", "warm", "cold", {"profiler": "torch", "start": "cold"}),
        (PROFILE, "detail", "kernels", "autograd", {"nsys_pytorch": "autograd-nvtx"}),
        (
            PROFILE,
            "detail",
            "kernels",
            "python",
            {"nsys_trace": "cuda,nvtx,osrt", "nsys_python_backtrace": "cuda"},
        ),
    ],
)
def test_what_is_recorded_stands_in_the_path_by_name_and_in_the_spec_as_flags(
    study, axis, neutral, value, changed
):
    (plain,) = cells_of(study, ENTRY)
    same, other = cells_of(study, ENTRY | {axis: [neutral, value]})
    assert same == plain
    assert other.name == f"{plain.name}/{axis}={value}"
    assert other.spec == plain.spec | changed


@pytest.mark.parametrize("preset", ["default", "smoke", "published"])
def test_every_cell_of_every_preset_survives_its_programs_flags(preset):
    config = make_config(preset=preset)
    for study in STUDIES:
        parse = importlib.import_module(study.program).parse
        for cell in (
            cell
            for device in ("cpu", "cuda")
            for cell in study.cells(config, Hardware("machine", device, 2, gpus=8))
        ):
            spec = cell.spec | {"device": "cpu"}  # a program refuses a GPU that is not there
            assert parse(words_of(spec))[0] == spec


def test_several_devices_need_an_optimizer_of_torch():
    """A program's flag has another default there than the spec's neutral value."""
    entry = ENTRY | {"devices": [2]}
    (cell,) = cells_of(PARALLEL, entry | {"optimizer": ["torch"]})
    parse = importlib.import_module("time_parallel").parse
    assert parse(words_of(cell.spec))[0] == cell.spec
    for optimizer in ({}, {"optimizer": ["own"]}):
        with pytest.raises(ConfigError, match=r"parallel.grid: .* add optimizer: \[fused\]"):
            cells_of(PARALLEL, entry | optimizer)


def test_a_size_may_have_its_own_vocabulary_and_heads():
    sizes = make_config()["sizes"]
    assert models_of(make_config())["8b-wide"] == sizes["8b-wide"]  # nothing of model.vocab_size
    assert models_of(make_config())["nano"] == sizes["nano"] | {"vocab_size": 10_000}
    odd = make_config(sizes=sizes | {"odd": sizes["nano"] | {"key_value_heads": 3}})
    with pytest.raises(ConfigError, match=r"sizes.odd: .*key_value_heads = 3"):
        models_of(odd)
