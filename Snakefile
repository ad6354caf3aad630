# StepScope: benchmarks a Transformer's training step and writes the report.
#   snakemake --cores 1 report      measure what is missing or stale, then write results/report/index.html
#   snakemake plan                  what that would measure and why, how long it takes, what will not fit
#   snakemake -n report             every job that it would run
from snakemake.utils import min_version

min_version("9.27")


include: "rules/config_file.smk"


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
