"""The conda environment of the measuring programs has what their code imports."""

import ast
import sys

import yaml
from common import ROOT
from stepscope.config.code_digest import PACKAGE, Sources, imported
from stepscope.config.studies import STUDIES

CALLED = {"pynvml": "nvidia-ml-py", "yaml": "pyyaml"}  # where a package's name is another
BROUGHT = {"numpy", "triton"}  # by pandas and by torch
# What a model of one's own is made of, and what plans a run.
OPTIONAL = {"transformers", "huggingface_hub", "jsonschema", "snakemake"}


def test_all_that_measuring_programs_import_is_in_their_environment():
    content = yaml.safe_load((ROOT / "envs/measure.yaml").read_text())
    (packages,) = (one["pip"] for one in content["dependencies"] if isinstance(one, dict))
    there = {line.partition("=")[0] for line in packages}
    sources, wanted = Sources(), set()
    for study in STUDIES:
        for path in sources.modules(study.file).values():
            names = imported(ast.parse(path.read_bytes()))
            wanted |= {name.partition(".")[0] for name in names}
    others = wanted - {PACKAGE} - set(sys.stdlib_module_names) - BROUGHT - OPTIONAL
    assert {CALLED.get(name, name) for name in others} == there
