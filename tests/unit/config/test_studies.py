"""The table of studies agrees with the programs, rules and keys that it names."""

import math
import runpy

import pytest
from common import ROOT, one_line
from configured import make_config
from stepscope.config import ConfigError
from stepscope.config.studies import LEARNING, PARALLEL, PRECISION, STUDIES
from stepscope.machine.labels import Hardware


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_studys_programs_rules_and_configuration_are_there(study, schema):
    programs = [study.program, *([study.analysis] if study.analysis else [])]
    assert [program for program in programs if not (ROOT / f"scripts/{program}.py").is_file()] == []
    rules = (ROOT / "rules/measure.smk").read_text()
    assert f"use rule measure as {study.program} with" in rules
    assert study.analysis is None or f"rule {study.analysis}:" in rules
    assert study.name in schema["properties"]


@pytest.mark.parametrize("gpus, devices", {1: [], 2: [2], 4: [2, 4], None: [2, 4, 8]}.items())
def test_gpus_that_are_not_there_are_not_asked_for(gpus, devices):
    config = make_config()
    entry = {"size": ["small"], "context": [128], "precision": ["bf16"], "devices": [2, 4, 8]}
    config["parallel"]["grid"]["cuda"] = [entry | {"optimizer": ["fused"]}]
    machine = Hardware("machine", "cuda", 1, measured=gpus is not None, gpus=gpus or 1)
    cells = PARALLEL.cells(config, machine)
    assert [cell.spec["devices"] for cell in cells] == devices


def test_a_variant_is_called_by_its_strategy_and_what_differs():
    config = make_config()
    config["parallel"]["strategies"]["cpu"] = [{"strategy": "overlapped", "ctas": 8}]
    (cell,) = PARALLEL.cells(config, Hardware("machine", "cpu", 1))
    named = {"name": "overlapped-ctas=8", "strategy": "overlapped", "ctas": 8}
    assert cell.spec["variants"] == [named]


def test_learning_trains_its_variants_on_bytes():
    config = make_config()
    config["learning"]["variants"] = [{"precision": "fp32"}, {"precision": "fp16", "scaled": True}]
    (cell,) = LEARNING.cells(config, Hardware("machine", "cpu", 1))
    assert cell.spec["variants"] == [
        {"name": "fp32", "precision": "fp32"},
        {"name": "fp16-scaled", "precision": "fp16", "scaled": True},
    ]
    assert cell.spec["vocab_size"] == 256 and config["model"]["vocab_size"] != 256


@pytest.mark.parametrize(
    "variants, twice",
    [
        ([{"precision": "bf16"}, {"precision": "bf16"}], "bf16"),
        ([{"precision": "fp16", "scaled": False}, {"precision": "fp16"}], "fp16"),
        ([{"scaled": False}, {"scaled": False}], "plain"),
    ],
)
def test_learning_has_each_variant_once(variants, twice):
    config = make_config()
    config["learning"]["variants"] = variants
    with pytest.raises(ConfigError, match=rf"learning\.variants: {twice} is there twice"):
        LEARNING.cells(config, Hardware("machine", "cpu", 1))


def test_several_devices_have_each_strategy_once():
    config = make_config()
    config["parallel"]["strategies"]["cpu"] = [{"strategy": "alone"}, {"strategy": "alone"}]
    assert "parallel.strategies.cpu: alone is there twice" in one_line(
        ConfigError, PARALLEL.cells, config, Hardware("machine", "cpu", 1)
    )


def test_learning_has_no_models_of_ones_own():
    config = make_config(models={"mine": {"hf": "llama"}})
    config["learning"]["grid"]["cpu"][0]["size"] = ["mine"]
    assert "learning.grid.cpu.0: there is no size 'mine'" in one_line(
        ConfigError, LEARNING.cells, config, Hardware("machine", "cpu", 1)
    )


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_plan_knows_how_long_a_cell_of_each_study_takes(device):
    plan = runpy.run_path(str(ROOT / "scripts/plan.py"))
    for study in STUDIES:
        for cell in study.cells(make_config(), Hardware("machine", device, 1)):
            assert 0 < plan["seconds"](cell, math.inf) < 3600, cell.name


def test_precision_has_a_cell_a_probe():
    probes = ["accumulation", "normalisation"]
    study = {"probes": probes, "time_limit": 5}
    found = PRECISION.cells(make_config() | {"precision": study}, Hardware("machine", "cpu", 3))
    assert [cell.name for cell in found] == [f"machine/precision/{probe}" for probe in probes]
    common = {"study": "precision", "precision": "fp32", "seed": 0, "threads": 3, "device": "cpu"}
    assert [cell.spec for cell in found] == [common | {"probe": probe} for probe in probes]
