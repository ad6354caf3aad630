"""The registry of cells, and the plan that it writes."""

import dataclasses
import json

import pytest
from common import ROOT, one_line
from configured import make_config
from stepscope.config import ConfigError
from stepscope.config.registry import Registry, pinned_versions
from stepscope.config.studies import ATTENTION, CEILINGS, LADDER, MEMORY, TIMING
from stepscope.machine import identity
from stepscope.machine.labels import Hardware

NANO = "machine/timing/nano/ctx64/fp32"
HERE = [Hardware("machine", "cpu", 2)]


@pytest.fixture
def registry():
    """A registry of both studies for a CPU, for a configuration and an environment."""

    def make(environment=None, machines=HERE, **over):
        return Registry(make_config(**over), machines, [TIMING, CEILINGS], environment)

    return make


def test_cells_are_named_in_the_grids_order(registry):
    found = registry(preset="smoke")
    assert found.names("timing") == [NANO, "machine/timing/nano/ctx128/fp32"]
    assert found.names("ceilings") == ["machine/ceilings/matmul/fp32", "machine/ceilings/copy/fp32"]
    assert found.names() == found.names("timing") + found.names("ceilings") == found.missing()


def test_a_cell_is_found_by_its_folder(registry):
    cell = registry().cell(f"results/{NANO}")
    assert (cell.name, cell.spec["context"]) == (NANO, 64)
    assert one_line(
        ConfigError, registry().cell, "results/machine/timing/nano/ctx65/fp32"
    ).startswith("machine/timing/nano/ctx65/fp32 is in no grid of the configuration; add")


def test_a_package_counts_for_the_cells_that_run_its_kernels(monkeypatch):
    config = make_config()
    entry = {"mask": ["causal"], "d_head": [64], "lengths": [64], "batch": [1]}
    rivals = {"bf16": ["naive"], "fp32": ["naive", "fa4", "flex-flash"]}
    config["attention"]["grid"]["cpu"] = [
        entry | {"precision": [precision], "implementation": names}
        for precision, names in rivals.items()
    ]
    rungs = [{"precision": "bf16"}, {"attention": "fa3"}]
    config["ladder"] |= {"rungs": {"cpu": rungs}, "asides": {"cpu": []}}
    versions = {}
    monkeypatch.setattr(identity, "package_version", versions.get)

    def identities():
        found = Registry(config, HERE, [ATTENTION, LADDER, TIMING])
        machines = {name: found.machine_json(found.cell(name)) for name in found.names()}
        return {name: json.loads(text) for name, text in machines.items()}

    before = identities()
    packages = [one["packages"] for one in before.values() if "packages" in one]
    assert packages == [{"flash-attn-4": None}, {"flash-attn-3": None}]
    versions["flash-attn-4"] = "4.0"
    after = identities()
    changed = [name for name in after if after[name] != before[name]]
    assert changed == ["machine/attention/d64/fp32/mask=causal/batch=1"]


def test_a_model_that_no_grid_has_is_idle(registry):
    assert registry(models={"mine": {"build": "models/gpt.py:build"}}).idle_models() == ["mine"]


def test_the_plan_says_what_to_expect(registry):
    plan = json.loads(registry(preset="smoke").plan)
    assert plan["machines"] == {"machine": {"how": "here"}}
    entry = plan["studies"]["timing"]["cells"][0]
    assert entry["cell"] == NANO
    assert entry["spec"]["threads"] == 2
    assert entry["command"].startswith("python scripts/time_step.py --d-model 128 ")


def test_a_reordered_configuration_has_the_same_plan(registry):
    config = make_config()
    backwards = {key: config[key] for key in reversed(config)}
    assert (
        Registry(backwards, HERE, [CEILINGS, TIMING]).plan
        == registry().plan
        != registry(model={"batch": 5}).plan
    )


def test_tools_are_part_of_the_machine_of_the_study_that_uses_them():
    with_tools = dataclasses.replace(TIMING, tools=lambda device: (f"no-{device}-tool",))
    found = Registry(make_config(), HERE, [with_tools])
    assert json.loads(found.machine_json(found.cell(NANO)))["tools"] == {"no-cpu-tool": None}


def test_every_package_of_the_environments_has_a_version():
    for path in (ROOT / "envs").glob("*.yaml"):
        lines = [
            line.strip() for line in path.read_text().partition("dependencies:")[2].splitlines()
        ]
        packages = [line for line in lines if line.startswith("- ") and line != "- pip:"]
        assert len(pinned_versions(path.read_text())) == len(packages) > 3


def test_versions_of_an_environment_replace_those_here(tmp_path, registry):
    """With comments and local parts."""
    text = (
        "dependencies:\n  - python=3.12.4 # why\n  - a-b=1.0\n  - pip:\n      - torch==2.13.0+cpu\n"
        "      - loose>=2\n"
    )
    assert pinned_versions(text) == {"python": "3.12", "a-b": "1.0", "torch": "2.13.0+cpu"}
    (tmp_path / "measure.yaml").write_text(text)
    found = registry(environment=tmp_path / "measure.yaml")
    at_hand = json.loads(found.machine_json(found.cell(NANO)))
    assert (at_hand["python"], at_hand["torch"]) == ("3.12", "2.13.0+cpu")


H100 = Hardware("h100", "cuda", 1, here=False, expect="H100", asked={"gpu_model": "h100"})
OLD = Hardware("old", "cuda", 1, here=False, measured=False)


NAMED = {"gpu": "NVIDIA H100"}


def measured(folder, name, started, **identity):
    """A record that says when and where it was measured."""
    (folder / name).mkdir(parents=True)
    content = {
        "machine": {"device": "cuda", **NAMED, "driver": "1"} | identity,
        "provenance": {"started": started},
    }
    (folder / name / "record.json").write_text(json.dumps(content))


@pytest.fixture
def elsewhere(tmp_path):
    """A registry of machines that are not at hand, with the results of the test's folder."""

    def make(*machines):
        return Registry(
            make_config(preset="smoke"), list(machines), [TIMING, CEILINGS], results=tmp_path
        )

    return make


def test_the_grids_are_expanded_for_each_machine_one_after_the_other(registry):
    found = registry(machines=[H100, *HERE], preset="smoke")
    names = [cell.name for cell in found.studies["ceilings"]]
    assert [name.partition("/")[0] for name in names] == ["h100"] * 3 + ["machine"] * 2
    assert found.machine_json(found.studies["timing"][0]) == "null"


def test_of_a_machine_that_nothing_is_measured_on_those_cells_count_that_are_there(
    elsewhere, tmp_path
):
    assert "hardware.old: nothing is measured, but results/old holds no cell" in one_line(
        ConfigError, elsewhere, OLD, H100
    )
    measured(tmp_path, "old/timing/small/ctx128/fp32", "2025")
    found = elsewhere(OLD, H100)
    assert [name for name in found.names() if name.startswith("old/")] == [
        "old/timing/small/ctx128/fp32"
    ]


def test_a_copy_that_is_replaced_changes_the_plan(elsewhere, tmp_path):
    measured(tmp_path, "old/timing/small/ctx128/fp32", "2025")
    before = elsewhere(OLD, H100).plan
    path = tmp_path / "old/timing/small/ctx128/fp32/record.json"
    path.write_text(path.read_text().replace("2025", "2024"))
    assert elsewhere(OLD, H100).plan != before


def test_a_cell_that_lacks_a_part_is_not_there(tmp_path):
    names = [
        cell.name
        for cell in MEMORY.cells(make_config(), Hardware("old", "cuda", 1))
        if "mode" not in cell.spec
    ]
    for name in names:
        measured(tmp_path, name, "2025")
    (tmp_path / names[1] / "analysis").mkdir()
    found = Registry(make_config(), [OLD], [MEMORY], results=tmp_path)
    assert [cell.name for cell in found.studies["memory"]] == [names[1]]
