"""The table of studies agrees with the programs, rules and keys that it names."""

import pytest
from stepscope.config.studies import STUDIES


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
