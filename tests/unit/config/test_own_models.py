"""Models of one's own in the plan: their specs, and what makes their cells stale."""

import importlib
import json

import pytest
from common import one_line
from configured import make_config
from stepscope.config import ConfigError, own_models
from stepscope.config.grid import words_of
from stepscope.config.studies import LADDER, MEMORY, PROFILE, TIMING
from stepscope.machine.labels import Hardware

ENTRY = {"context": [64], "precision": ["fp32"]}
SOURCE = (
    "import os\nimport timm\nfrom parts import Part\n\n\n"
    "def build(context, layers=2, widths=()):\n    return Part(layers)\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch, registry_of):
    """A working directory with a model of two files, and a third that it does not import."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models/mine.py").write_text(SOURCE)
    (tmp_path / "models/parts.py").write_text(
        "from torch import nn\n\n\nclass Part(nn.Module):\n    size = 1\n"
    )
    (tmp_path / "models/other.py").write_text("size = 1\n")
    return tmp_path / "models"


@pytest.fixture
def config(folder):
    """The configuration with a model of one's own beside nano in the studies' grids on a CPU."""
    found = make_config(
        models={"mine": {"build": "models/mine.py:build", "layers": 3, "widths": [1, 2]}}
    )
    for study in ("timing", "profile", "memory"):
        found[study]["grid"]["cpu"] = [{"size": ["mine", "nano"], **ENTRY}]
    found["ladder"]["places"]["cpu"] = [{"size": "mine", "context": 64}]
    return found


def cells_of(study, config):
    return study.cells(config, Hardware("machine", "cpu", 1))


@pytest.fixture
def codes(config, registry_of):
    """Digests of the cells of mine and of nano, as their files are now."""

    def made():
        found = registry_of(config)
        return [found.code(cell) for cell in found.studies["timing"]]

    return made


def test_a_model_stands_in_a_spec_instead_of_a_shape(config):
    mine, nano = cells_of(TIMING, config)
    assert mine.name == "machine/timing/mine/ctx64/fp32"
    shape = {"d_model", "d_ff", "num_layers", "num_heads", "vocab_size"}
    of_nano = {key: value for key, value in nano.spec.items() if key not in shape}
    keys = '{"layers":3,"widths":[1,2]}'
    assert mine.spec == of_nano | {"model": "models/mine.py:build", "model_keys": keys}
    assert "model" not in nano.spec and nano.spec["num_layers"] == 4
    parse = importlib.import_module("time_step").parse
    assert parse(words_of(mine.spec))[0] == mine.spec


def test_every_study_that_runs_the_model_has_its_cells(config):
    for study in (TIMING, PROFILE, MEMORY, LADDER):
        (own,) = [cell for cell in cells_of(study, config) if cell.size == "mine"]
        assert own.spec["model"] == "models/mine.py:build"
    assert own.name == "machine/ladder/mine/ctx64"


def test_a_model_of_hugging_face_without_keys(folder):
    config = make_config(models={"qwen": {"hf": "Qwen/Qwen3-0.6B"}})
    assert own_models.specs(config) == {"qwen": {"model": "hf:Qwen/Qwen3-0.6B"}}


WRONG = [
    (
        {"nano": {"hf": "llama"}},
        "config key models.nano: a size or a model has that name, too; rename one of them",
    ),
    (
        {"mine": {"build": "mine.py"}},
        "config key models.mine: model 'mine.py': write FILE.py:FUNCTION",
    ),
    (
        {"mine": {"build": "a.py:b", "context": 8}},
        "config key models.mine: context is a cell's own",
    ),
    (
        {"mine": {"build": "a.py:b", "when": object}},
        "config key models.mine: Object of type type is not JSON serializable, as keys of build()",
    ),
]


@pytest.mark.parametrize("models, message", WRONG)
def test_what_cannot_be_a_model_is_one_line(models, message):
    config = make_config()
    config["models"] = models
    assert one_line(ConfigError, own_models.specs, config).startswith(message)


@pytest.mark.parametrize(
    "entry, said",
    [
        ({"layers": 2}, "{'layers': 2} is not valid under any"),
        ({"build": "a.py:b", "hf": "llama"}, "{'build': 'a.py:b', 'hf': 'llama'} is valid under"),
    ],
)
def test_a_model_is_either_a_file_or_an_architecture(entry, said):
    told = one_line(ConfigError, make_config, models={"mine": entry})
    assert told.startswith(f"config key models.mine: {said}")
    assert told.endswith("What builds a model, as {build: models/mine.py:build} or {hf: llama}")


def test_a_name_that_neither_a_size_nor_a_model_has_is_one_line(config):
    config["timing"]["grid"]["cpu"][0]["size"] = ["yours"]
    assert "there is no size 'yours'; add it" in one_line(ConfigError, cells_of, TIMING, config)


def test_a_missing_file_is_one_line_that_names_the_key(config, folder, registry_of):
    (folder / "mine.py").unlink()
    said = "config key models.mine: models/mine.py:build: there is no file "
    assert one_line(ConfigError, registry_of, config).startswith(said)


def test_the_models_files_make_its_cells_stale_and_no_other(codes, folder):
    mine, nano = codes()
    parts = folder / "parts.py"
    (folder / "other.py").write_text("size = 2\n")
    parts.write_text(f"{parts.read_text()}# as before\n")
    assert codes() == [mine, nano]
    parts.write_text(f"{parts.read_text()}size = 2\n")
    edited, unchanged = codes()
    assert edited != mine and unchanged == nano


def test_what_the_files_import_counts_by_its_version(config, registry_of):
    found = registry_of(config)
    mine, nano = found.studies["timing"]
    assert json.loads(found.machine_json(mine))["packages"].keys() == {"timm"}
    assert "packages" not in json.loads(found.machine_json(nano))
    assert own_models.packages_of({"model": "hf:llama"}) == {"transformers"}
