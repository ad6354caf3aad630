"""The registry of cells, and the plan that it writes."""

import dataclasses
import json
import os

import pytest
from stepscope.config import ConfigError
from stepscope.config.registry import Registry, pinned_versions
from stepscope.config.studies import CEILINGS, MEMORY, TIMING
from stepscope.machine import identity
from stepscope.machine.labels import Hardware

NANO = "machine/timing/nano/ctx64/fp32"
HERE = [Hardware("machine", "cpu", 2)]


@pytest.fixture
def registry(make_config):
    """A registry of both studies for a CPU, for a configuration and an environment."""

    def make(environment=None, machines=HERE, **over):
        return Registry(make_config(**over), machines, [TIMING, CEILINGS], environment)

    return make


def test_cells_are_named_in_the_grids_order(registry):
    found = registry(preset="smoke")
    timing = "results/machine/timing/nano/{}/fp32/record.json"
    control = "results/machine/timing/nano/ctx64/fp32/repeat=2/record.json"
    assert found.records("timing") == [timing.format("ctx64"), timing.format("ctx128"), control]
    assert found.records("ceilings") == [
        "results/machine/ceilings/matmul/fp32/record.json",
        "results/machine/ceilings/copy/fp32/record.json",
    ]
    assert found.records() == found.records("timing") + found.records("ceilings")
    assert found.count == 5
    assert found.rules == {"time_step", "measure_ceilings"}


def test_a_cell_is_found_by_its_folder(registry):
    cell = registry().cell(f"results/{NANO}")
    assert (cell.name, cell.spec["context"]) == (NANO, 64)


def test_a_cell_that_no_grid_holds_is_refused_in_one_line(registry):
    with pytest.raises(ConfigError, match=r"^machine/timing/nano/ctx65/fp32 is in no grid of the configuration; add"):
        registry().cell("results/machine/timing/nano/ctx65/fp32")


def test_the_code_of_a_cell_is_that_of_the_implementations_that_it_names(registry, make_config):
    grid = make_config()["timing"]
    grid["control"]["cpu"] = []
    entry = {"size": ["nano"], "context": [64], "precision": ["fp32"]}
    grid["grid"]["cpu"] = [{**entry, "attention": ["naive", "sdpa"]}, {**entry, "repeat": [2]}]
    found = registry(timing=grid)
    plain, sdpa, again = (found.code(cell) for cell in found.studies["timing"])
    assert plain == again != sdpa


def test_the_plan_says_what_to_expect(registry):
    plan = json.loads(registry(preset="smoke").plan)
    assert plan["preset"] == "smoke"
    assert plan["machines"] == {"machine": {"device": "cpu", "how": "here", "expect": None}}
    part = plan["studies"]["timing"]
    assert part["noisy"] == {"machine": 0.10}
    assert part["machine"] == {"machine": identity.identity("cpu")}
    entry = part["cells"][0]
    assert entry["cell"] == NANO
    assert entry["size"] == "nano"
    assert entry["spec"]["threads"] == 2
    assert entry["command"].startswith("python scripts/time_step.py --d-model 128 ")


def test_the_plans_path_changes_if_and_only_if_the_plan_does(registry, make_config):
    plain = registry().plan_path
    assert registry().plan_path == plain
    assert registry(device="auto", sizes=make_config()["sizes"]).plan_path == plain
    others = [
        registry(preset="smoke"),
        registry(model={"batch": 5}),
        registry(timing={**make_config()["timing"], "noisy": {"cpu": 0.2}}),
    ]
    assert len({plain, *(other.plan_path for other in others)}) == 4


def test_a_reordered_configuration_has_the_same_plan_path(registry, make_config):
    config = make_config()
    backwards = {key: config[key] for key in reversed(config)}
    assert Registry(backwards, HERE, [CEILINGS, TIMING]).plan_path == registry().plan_path


def test_the_path_of_a_partial_plan_changes_with_every_file_of_a_cell(registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, seen = tmp_path / "results" / NANO, [registry().partial_plan_path]
    folder.mkdir(parents=True)
    assert seen == [registry().partial_plan_path]
    for change in (
        lambda: (folder / "measure.log").write_text("no"),
        lambda: (folder / "record.json").write_text("{}"),
        lambda: os.utime(folder / "record.json", (1, 1)),
        lambda: (folder / "samples.csv").touch(),
        lambda: (folder / "analysis").mkdir(),
        lambda: (folder / "record.json").unlink(),
    ):
        change()
        seen.append(registry().partial_plan_path)
        assert seen[-1] == registry().partial_plan_path
    seen.append(registry(preset="smoke").partial_plan_path)
    assert len(set(seen)) == 8


def test_writing_the_plan_removes_those_before_it(registry, tmp_path):
    (tmp_path / "0123.json").write_text("{}")
    (tmp_path / "0123.log").write_text("")
    (tmp_path / "notes.txt").write_text("kept")
    found = registry()
    found.write_plan(str(tmp_path / "4567.json"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["4567.json", "notes.txt"]
    assert (tmp_path / "4567.json").read_text() == found.plan


def test_a_cells_machine_is_sorted_json(registry):
    found = registry()
    text = found.machine_json(found.cell(NANO))
    assert json.loads(text) == identity.identity("cpu")
    assert list(json.loads(text)) == sorted(json.loads(text))


def test_tools_are_part_of_the_machine_of_the_study_that_uses_them(make_config):
    with_tools = dataclasses.replace(TIMING, tools=lambda device: (f"no-{device}-tool",))
    found = Registry(make_config(), HERE, [with_tools])
    assert json.loads(found.machine_json(found.cell(NANO)))["tools"] == {"no-cpu-tool": None}


def test_the_measuring_environments_versions_are_read_from_its_file(project_root, registry):
    path = project_root / "envs/measure.yaml"
    pinned = pinned_versions(path.read_text())
    # As the file has them.
    assert pinned == {
        **{"python": "3.12", "pip": "26.0", "torch": "2.13.0", "einops": "0.8.2"},
        **{"nvidia-ml-py": "13.615.71", "pyyaml": "6.0.3"},
    }
    found = registry(environment=path)
    at_hand = json.loads(found.machine_json(found.cell(NANO)))
    assert {key: at_hand[key] for key in ("python", "torch")} == {
        "python": "3.12",
        "torch": "2.13.0",
    }


def test_every_package_of_the_environments_has_a_version(project_root):
    for path in (project_root / "envs").glob("*.yaml"):
        lines = [line.strip() for line in path.read_text().partition("dependencies:")[2].splitlines()]
        packages = [line for line in lines if line.startswith("- ") and line != "- pip:"]
        assert len(pinned_versions(path.read_text())) == len(packages) > 3


def test_versions_with_comments_and_local_parts():
    text = (
        "dependencies:\n  - python=3.12.4 # why\n  - a-b=1.0\n  - pip:\n      - torch==2.13.0+cpu\n      - loose>=2\n"
    )
    assert pinned_versions(text) == {"python": "3.12", "a-b": "1.0", "torch": "2.13.0+cpu"}


H100 = Hardware("h100", "cuda", 1, here=False, expect="H100", asked={"gpu_model": "h100"})
OLD = Hardware("old", "cuda", 1, here=False, measured=False)
CELLS = {"timing": [f"timing/small/ctx{n}/fp32" for n in (128, 512)], "ceilings": ["ceilings/copy/fp32"]}


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
def elsewhere(make_config, tmp_path):
    """A registry of machines that are not at hand, with the results of the test's folder."""

    def make(*machines):
        return Registry(make_config(preset="smoke"), list(machines), [TIMING, CEILINGS], results=tmp_path)

    return make


def test_the_grids_are_expanded_for_each_machine_one_after_the_other(registry):
    found = registry(machines=[H100, *HERE], preset="smoke")
    names = [cell.name for cell in found.studies["ceilings"]]
    assert [name.partition("/")[0] for name in names] == ["h100"] * 3 + ["machine"] * 2
    plan = json.loads(found.plan)
    assert plan["machines"]["h100"] == {"device": "cuda", "how": "jobs", "expect": "H100"}
    assert plan["studies"]["timing"]["machine"] == {"h100": None, "machine": identity.identity("cpu")}
    assert plan["studies"]["timing"]["noisy"] == {"h100": 0.05, "machine": 0.10}
    assert found.machine_json(found.studies["timing"][0]) == "null"


def test_of_a_machine_that_nothing_is_measured_on_those_cells_count_that_are_there(elsewhere, tmp_path):
    with pytest.raises(ConfigError, match=r"hardware\.old: measure: false, but results/old holds no cell of the grids"):
        elsewhere(OLD, H100).check_results()
    measured(tmp_path, "old/timing/small/ctx128/fp32", "2025")
    with pytest.raises(ConfigError, match="has results of the study ceilings, and none is to be measured"):
        elsewhere(OLD).check_results()
    found = elsewhere(OLD, H100)
    found.check_results()
    assert [record for record in found.records() if "/old/" in record] == [
        "results/old/timing/small/ctx128/fp32/record.json"
    ]


def test_a_copy_that_is_replaced_changes_the_plan(elsewhere, tmp_path):
    measured(tmp_path, "old/timing/small/ctx128/fp32", "2025")
    before = elsewhere(OLD, H100).plan_path
    path = tmp_path / "old/timing/small/ctx128/fp32/record.json"
    path.write_text(path.read_text().replace("2025", "2024"))
    assert elsewhere(OLD, H100).plan_path != before


def test_a_cell_that_lacks_a_part_is_not_there(make_config, tmp_path):
    names = [cell.name for cell in MEMORY.cells(make_config(preset="smoke"), "cuda", "old", 1)][::3]
    for name in names:
        measured(tmp_path, name, "2025")
    (tmp_path / names[1] / "analysis").mkdir()
    found = Registry(make_config(preset="smoke"), [OLD], [MEMORY], results=tmp_path)
    assert [cell.name for cell in found.studies["memory"]] == names[1:]


def test_cells_that_differ_from_the_newest_record_of_their_label_are_outdated(elsewhere, tmp_path):
    first, second = (f"h100/{name}" for name in CELLS["timing"])
    measured(tmp_path, first, "2025-01-01", driver="550")
    assert elsewhere(H100).outdated() == {}
    measured(tmp_path, "h100/ceilings/copy/fp32", "2025-02-01", driver="560")
    measured(tmp_path, second, "2025-01-02", driver="560")
    found = elsewhere(H100)
    assert found.outdated() == {first: "driver is '550' there, '560' on the newest"}
    assert found.seen() == {"h100": {study: {"device": "cuda", **NAMED, "driver": "560"} for study in CELLS}}


def test_a_studys_tools_are_compared_within_it(elsewhere, tmp_path):
    first, second = (f"h100/{name}" for name in CELLS["timing"])
    measured(tmp_path, first, "2025-01-01", tools={"nsys": "2024.1"})
    measured(tmp_path, "h100/ceilings/copy/fp32", "2025-02-01")
    assert elsewhere(H100).outdated() == {}
    measured(tmp_path, second, "2025-01-02", tools={"nsys": "2025.3"})
    assert list(elsewhere(H100).outdated()) == [first]


def test_records_that_nothing_can_be_read_of_are_no_news(elsewhere, tmp_path):
    measured(tmp_path, "h100/timing/small/ctx128/fp32", "2025")
    for name, text in (("timing/small/ctx512/fp32", "{"), ("ceilings/copy/fp32", '{"machine": null}')):
        (tmp_path / "h100" / name).mkdir(parents=True)
        (tmp_path / "h100" / name / "record.json").write_text(text)
    assert elsewhere(H100).outdated() == {}
