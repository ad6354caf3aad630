# StepScope: benchmarks a Transformer's training step and writes the report.
#   snakemake --cores 1 report      measure what is missing or stale, then write results/report/index.html
#   snakemake -n report             what that would do
from snakemake.utils import min_version

min_version("9.27")


include: "rules/config_file.smk"


configfile: f"{workflow.basedir}/config.yaml"


include: "rules/common.smk"
include: "rules/studies.smk"
include: "rules/report.smk"
include: "rules/archive.smk"
include: "rules/run.smk"
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
