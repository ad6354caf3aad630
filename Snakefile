# StepScope: benchmarks a Transformer's training step and writes the report.
#   snakemake --cores 1 report    measure what is missing or stale, write results/report/index.html
#   snakemake -n report           every job that it would run, and why
#   python scripts/plan.py        what it takes: cells by study, minutes, memory, what will not fit
import os
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")
PROJECT = Path(str(workflow.current_basedir))
sys.path.insert(0, str(PROJECT / "scripts"))
from stepscope.yaml_files import unreadable

# Snakemake would answer a file that cannot be read with a traceback, and one that says a key twice
# not at all.
for path in (PROJECT / "config.yaml", *map(Path, workflow.overwrite_configfiles)):
    if complaint := unreadable(path):
        sys.exit(complaint)


configfile: f"{PROJECT}/config.yaml"


if config.get("preset", "default") != "default":
    presets = {path.stem: path for path in sorted(PROJECT.glob("rules/presets/*.yaml"))}
    preset = presets.get(str(config["preset"]))
    if preset is None:
        names = ", ".join(["default", *presets])
        sys.exit(f"config key preset: no preset {config['preset']!r}; choose from {names}")
    if complaint := unreadable(preset):
        sys.exit(complaint)

    configfile: preset


include: "rules/common.smk"


report: "report/snakemake_captions/workflow.rst"


if config["container"]:

    container: config["container"]


include: "rules/run.smk"
include: "rules/measure.smk"
include: "rules/report.smk"
include: "rules/share.smk"


localrules:
    report,


rule report:
    default_target: True
    input:
        rules.pages.output.pages,
    message:
        "The report: results/report/index.html"
