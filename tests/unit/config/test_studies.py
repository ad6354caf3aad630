"""The table of studies agrees with the programs, rules and keys that it names."""

import pytest
from stepscope.config import ConfigError
from stepscope.config.studies import MEMORY, OF_MODEL, PARALLEL, PROFILE, STUDIES


def test_names_and_programs_are_there_once():
    assert (
        len({study.name for study in STUDIES})
        == len({study.program for study in STUDIES})
        == len(STUDIES)
    )


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_studys_programs_rules_and_configuration_are_there(study, project_root, schema):
    programs = [study.program, *([study.analysis] if study.analysis else [])]
    assert [
        program for program in programs if not (project_root / f"scripts/{program}.py").is_file()
    ] == []
    rules = (project_root / "rules/measure.smk").read_text()
    assert f"use rule measure as {study.program} with" in rules
    assert study.analysis is None or f"rule {study.analysis}:" in rules
    assert study.name in schema["properties"]


def test_a_study_that_runs_the_model_has_its_size_as_an_axis():
    assert OF_MODEL == ("timing", "ladder", "parallel", "profile", "memory")


def test_an_entry_with_an_axis_of_another_study_is_refused(cells_of):
    entry = {"size": ["nano"], "context": [64], "precision": ["fp32"], "detail": ["python"]}
    assert len(cells_of(PROFILE, entry)) == 1
    with pytest.raises(
        ConfigError, match=r"memory\.grid\.cpu\.0: its cells have no detail; remove it"
    ):
        cells_of(MEMORY, entry)


@pytest.mark.parametrize(("gpus", "devices"), [(1, []), (2, [2]), (4, [2, 4]), (None, [2, 4, 8])])
def test_gpus_that_are_not_there_are_not_asked_for(gpus, devices, make_config):
    config = make_config()
    entry = {"size": ["small"], "context": [128], "precision": ["bf16"], "devices": [2, 4, 8]}
    config["parallel"]["grid"]["cuda"] = [entry]
    cells = PARALLEL.cells(config, "cuda", "machine", 1, gpus)
    assert [cell.spec["devices"] for cell in cells] == devices


def test_a_variant_is_called_by_its_strategy_and_what_differs(make_config):
    config = make_config()
    config["parallel"]["strategies"]["cpu"] = [{"strategy": "overlapped", "ctas": 8}]
    (cell,) = PARALLEL.cells(config, "cpu", "machine", 1)
    named = {"name": "overlapped-ctas=8", "strategy": "overlapped", "ctas": 8}
    assert cell.spec["variants"] == [named]
