# StepScope: benchmarks a Transformer's training step and writes the report.
#   snakemake --cores 1 report      measure what is missing or stale, then write results/report/index.html
#   snakemake plan                  what that would measure and why, how long it takes, what will not fit
#   snakemake -n report             every job that it would run
import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")
sys.path.insert(0, f"{workflow.basedir}/scripts")
from stepscope.config.config import unreadable

own_file, given_files = Path(workflow.basedir, "config.yaml"), list(map(Path, workflow.config_settings.configfiles))
for file in [*([own_file] if own_file.exists() or not given_files else []), *given_files]:
    if complaint := unreadable(file):
        sys.exit(complaint)


configfile: f"{workflow.basedir}/config.yaml"


include: "rules/common.smk"
include: "rules/run.smk"
include: "rules/expected.smk"
include: "rules/plan.smk"
include: "rules/studies.smk"
include: "rules/report.smk"
include: "rules/archive.smk"
include: "rules/site.smk"
include: "rules/ab.smk"
include: "rules/compare.smk"


localrules:
    report,


rule report:
    default_target: True
    input:
        "results/report/index.html",
        "results/report/data.html",
        "results/report/report.md",
        lost_results(),
