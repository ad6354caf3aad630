"""The table of studies agrees with the programs, modules and files that it names."""

import importlib
import re

import pytest
from stepscope.axes import PRECISIONS
from stepscope.config.studies import COMPARISONS, DRAWN, STUDIES
from stepscope.config.training import figure_name
from stepscope.figures import figures_of

SECTIONS = {section.name: section for section in (*STUDIES, *COMPARISONS)}


def test_names_of_sections_programs_and_figures_are_there_once():
    figures = [name for section in SECTIONS.values() for name in section.figures]
    assert len(SECTIONS) == len(STUDIES) + len(COMPARISONS)
    assert len({study.program for study in STUDIES}) == len(STUDIES)
    assert len(set(figures)) == len(figures)


@pytest.mark.parametrize("name", [section.name for section in DRAWN])
def test_a_sections_figures_are_those_that_its_module_draws_and_have_captions(name, project_root):
    section = SECTIONS[name]
    assert set(section.figures) == set(figures_of(name))
    captions = [*section.figures, *([f"{name}_cell"] if getattr(section, "draws_cells", False) else [])]
    assert [
        caption for caption in captions if not (project_root / f"report/snakemake_captions/{caption}.rst").is_file()
    ] == []
    assert set(section.reads) <= {study.name for study in STUDIES} - {name}


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_studys_programs_tables_and_configuration_are_there(study, project_root, schema):
    programs = [study.program, *([study.analysis.program] if study.analysis else [])]
    assert [program for program in programs if not (project_root / f"scripts/{program}.py").is_file()] == []
    assert callable(importlib.import_module(f"stepscope.tables.{study.name}").write)
    assert study.name in schema["properties"]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
@pytest.mark.parametrize("preset", ["default", "smoke", "published"])
def test_a_cells_folder_is_of_its_studys_pattern(study, preset, make_config):
    known = {"context": r"\d+", "precision": "|".join(PRECISIONS), "options": r"(?:/[a-z_]+=[A-Za-z0-9._-]+)*"}
    patterns = {"hardware": "[a-z]+", "size": r"[\w.]+", **known, **study.constraints}
    pattern = re.sub(r"\{(\w+)\}", lambda found: f"(?:{patterns[found[1]]})", study.folder)
    for device in ("cpu", "cuda"):
        for cell in study.cells(make_config(preset=preset), device, "machine", 1):
            assert re.fullmatch(pattern, f"results/{cell.name}")
            assert (cell.study, cell.program, cell.spec["study"]) == (study.name, f"{study.program}.py", study.name)


@pytest.mark.parametrize("study", [study for study in STUDIES if study.draws_cells], ids=lambda study: study.name)
def test_the_longest_names_make_files_that_a_file_system_takes(study, make_config):
    """255 bytes, with what stands around a name while its file is written."""
    size = "s" * 64
    config = make_config(sizes={size: {"d_model": 2, "d_ff": 1, "num_layers": 1, "num_heads": 1}})
    longest = {"context": [16777216], "batch": [1048576], "mode": ["forward-backward"], "attention": ["triton"]}
    longest |= {"size": [size], "precision": ["fp32"], "optimizer": ["fused"], "repeat": [1000]}
    config[study.name]["grid"]["cpu"] = [longest]
    (cell,) = study.cells(config, "cpu", "h" * 64, 1)
    assert len(f".{figure_name(cell.name)}.svg.part") <= 255
    assert max(map(len, cell.name.split("/"))) <= 255
