# `snakemake plan`: what a run would measure and why, how long it takes, what will not fit.
# Needs nothing but the configuration and the results that there are; makes nothing.


rule plan:
    input:
        say_plan,
    localrule: True
    message:
        "Nothing runs"


if snakemake_internals.is_asked_for(workflow, "plan"):
    say_plan()
