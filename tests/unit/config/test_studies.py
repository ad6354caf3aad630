"""The table of studies agrees with the programs, modules and files that it names."""

import importlib

import pytest
from stepscope.config.studies import COMPARISONS, DRAWN, STUDIES
from stepscope.figures import figures_of

SECTIONS = {section.name: section for section in (*STUDIES, *COMPARISONS)}


def test_names_of_sections_programs_and_figures_are_there_once():
    figures = [name for section in SECTIONS.values() for name in section.figures]
    assert len(SECTIONS) == len(STUDIES) + len(COMPARISONS)
    assert len({study.program for study in STUDIES}) == len(STUDIES)
    assert len(set(figures)) == len(figures)


@pytest.mark.parametrize("name", [section.name for section in DRAWN])
def test_a_sections_figures_are_those_that_its_module_draws(name):
    section = SECTIONS[name]
    assert set(section.figures) == set(figures_of(name))
    assert set(section.reads) <= {study.name for study in STUDIES} - {name}


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_studys_programs_tables_and_configuration_are_there(study, project_root, schema):
    programs = [study.program, *([study.analysis] if study.analysis else [])]
    assert [program for program in programs if not (project_root / f"scripts/{program}.py").is_file()] == []
    assert callable(importlib.import_module(f"stepscope.tables.{study.name}").write)
    assert study.name in schema["properties"]
