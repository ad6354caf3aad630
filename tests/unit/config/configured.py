"""The project's own configuration, with what a test gives it."""

from common import ROOT
from snakemake.utils import update_config
from stepscope.config.config import validated
from stepscope.machine.labels import Hardware
from stepscope.yaml_files import read_yaml

SCHEMA = ROOT / "rules/config.schema.yaml"


def make_config(**given):
    """The checked configuration as `snakemake --config KEY=VALUE …` gives it."""
    config = read_yaml(ROOT / "config.yaml")
    if "preset" in given:
        preset = ROOT / f"rules/presets/{given['preset']}.yaml"
        update_config(config, read_yaml(preset) if preset.exists() else {})
    return validated(config | given, SCHEMA)


def cells_of(study, *entries, device="cpu", **given):
    """The cells of a study whose grid has these entries, in the configuration that `given`
    makes."""
    config = make_config(**given)
    config[study.name]["grid"][device] = list(entries)
    return study.cells(config, Hardware("machine", device, 3))
