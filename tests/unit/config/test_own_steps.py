"""Steps of one's own in the plan: their cells, what compares them, and what makes them stale."""

import importlib

import pytest
from common import one_line
from configured import make_config
from stepscope.config import ConfigError, own_models
from stepscope.config.code_digest import Sources, modules_of
from stepscope.config.grid import words_of
from stepscope.config.studies import LADDER, MEMORY, PROFILE, STUDIES, TIMING
from stepscope.machine.labels import Hardware

STEPS = {
    "base": {"build": "models/train.py:build", "optimizer": "adamw"},
    "muon": {"build": "models/train.py:build", "optimizer": "muon"},
    "long": {"build": "models/train.py:build", "context": 512, "batch": 1},
}
LONG = {letter * 60: {"build": "a.py:b"} for letter in "bcd"}
PLACE = {"context": 128, "batch": 4}
SOURCE = "import timm\nimport torch\ndef build(context, optimizer='adamw'): pass\n"


@pytest.fixture
def make(tmp_path, monkeypatch, registry_of):
    """A configuration of steps, nothing of ours, in a folder that holds their file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models/train.py").write_text(SOURCE)

    def made(steps=STEPS, compare=()):
        return make_config(preset="own", steps=steps, compare=list(compare))

    return made


def cells(study, config):
    return {cell.name: cell.spec for cell in study.cells(config, Hardware("machine", "cpu", 1))}


def test_each_step_is_timed_profiled_and_its_memory_recorded(make):
    config = make()
    for study in (TIMING, PROFILE, MEMORY):
        found = cells(study, config)
        folders = ("base/ctx128/built", "muon/ctx128/built", "long/ctx512/built/batch=1")
        assert list(found) == [f"machine/{study.name}/{folder}" for folder in folders]
        base, _, long = found.values()
        own = {"step": "models/train.py:build", "step_keys": '{"optimizer":"adamw"}'}
        assert base.items() >= (own | PLACE).items()
        assert "precision" not in base
        assert (long["context"], long["batch"]) == (512, 1)
        assert "step_keys" not in long
    assert cells(LADDER, config) == {}


def test_compared_steps_are_the_variants_of_a_cell(make):
    ((name, spec),) = cells(LADDER, make(compare=[["base", "muon"]])).items()
    assert name == "machine/ladder/base+muon/ctx128"
    step = {"step": "models/train.py:build"}
    assert spec["variants"] == [
        {"name": "base", **step, "step_keys": '{"optimizer":"adamw"}'},
        {"name": "muon", **step, "step_keys": '{"optimizer":"muon"}', "after": "base"},
    ]
    assert spec.items() >= PLACE.items()


def test_many_names_make_a_folder_that_a_file_system_takes(make):
    steps = {"a" * 60: {"build": "models/train.py:build"}, **LONG}
    ((name, spec),) = cells(LADDER, make(steps, [[*steps]])).items()
    assert len(name.split("/")[2]) == 200 and [one["name"] for one in spec["variants"]] == [*steps]


def test_the_programs_take_these_cells_by_flags(make):
    config = make(compare=[["base", "muon"]])
    for study in STUDIES:
        parse = importlib.import_module(study.program).parse
        for spec in cells(study, config).values():
            assert parse(words_of(spec))[0] == spec


@pytest.mark.parametrize(
    "steps, compare, said",
    [
        (
            STEPS,
            ["base", "gone"],
            "compare.0: there is no step 'gone'; add it to the configuration, or choose from base, "
            "muon, long",
        ),
        (STEPS, ["base", "base"], "compare.0: base is there twice"),
        (STEPS, ["base", "long"], "compare.0: long has another context or batch than base"),
        ({"x": {"build": "a.py"}}, [], "steps.x: step 'a.py': write FILE.py:FUNCTION"),
        ({"x": {"build": "hf:llama"}}, [], "steps.x: step 'hf:llama': write FILE.py:FUNCTION"),
        ({"x": {"build": "a.py:b", "seed": 1}}, [], "steps.x: seed is a cell's own"),
        ({"x": {"optimizer": "muon"}}, [], "steps.x: 'build' is a required property"),
        ({"x": {"build": "a.py:b", "context": 0}}, [], "steps.x.context: 0 is less than"),
        ({"x": "a.py:b"}, [], "steps.x: 'a.py:b' is not of type 'object'; What builds a step, as"),
        (
            {"my step": {}},
            [],
            "steps: 'my step' is not a usable name; Training steps of one's own by",
        ),
        (STEPS, ["base"], "compare.0: ['base'] is too short; Names of 2 to 20 steps; compare is a"),
    ],
)
def test_what_cannot_be_a_step_is_one_line(steps, compare, said, make):
    def planned():
        config = make(steps, [compare] if compare else [])
        cells(LADDER, config)
        cells(TIMING, config)

    assert said in one_line(ConfigError, planned)


@pytest.mark.parametrize("compare", [["base", "muon"], "base", {"base": "muon"}])
def test_what_is_no_list_of_lists_is_a_line_each_that_shows_one(compare):
    with pytest.raises(ConfigError) as error:
        make_config(preset="own", steps=STEPS, compare=compare)
    for line in str(error.value).splitlines():
        assert line.startswith("config key compare") and "as [[base, muon]]" in line


def test_a_missing_file_is_one_line_that_names_the_key(make, registry_of):
    config = make({"x": {"build": "gone.py:build"}})
    with pytest.raises(ConfigError, match=r"^config key steps\.x: .*there is no file gone\.py"):
        registry_of(config)


@pytest.mark.parametrize(
    "text, read",
    [
        ("3e-4", 0.0003),
        ("1E5", 100_000),
        ("-.5e+1", -5),
        (["2.e-1", {"a": "1e0"}], [0.2, {"a": 1}]),
        ("3", "3"),
        ("e4", "e4"),
        ("1e", "1e"),
        ("0x1e4", "0x1e4"),
        ("adamw", "adamw"),
    ],
)
def test_a_number_that_yaml_takes_for_text_is_one(text, read, make):
    found = own_models.steps(make({"x": {"build": "a.py:b", "lr": text}}))["x"]
    assert own_models.keys_of(found) == {"lr": read}
    assert type(own_models.keys_of(found)["lr"]) is type(read)


def test_a_number_beyond_all_is_one_line(make):
    assert "steps.x: Out of range float values are not JSON compliant" in one_line(
        ConfigError, own_models.steps, make({"x": {"build": "a.py:b", "lr": "1e999"}})
    )


def test_a_steps_file_makes_its_cells_stale_and_no_code_of_our_model_does(
    make, tmp_path, registry_of
):
    config = make(compare=[["base", "muon"]])
    before = registry_of(config)
    (cell,) = before.studies["ladder"]
    code = before.code(cell)
    (tmp_path / "models/train.py").write_text(f"{SOURCE}rate = 2\n")
    assert registry_of(config).code(cell) != code
    assert own_models.packages_of(cell.spec) == {"timm"}
    loaded = Sources().modules("time_ladder.py", modules_of(cell.spec))
    assert "stepscope.measure.own_step" in loaded
    assert "stepscope.model.transformer" not in loaded
    assert "stepscope.measure.loop" not in loaded
