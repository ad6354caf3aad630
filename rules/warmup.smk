# Study `warmup`: what a benchmark gets with too little warm-up, and what the first step spends its time on.
# Needs nothing but the configuration; makes a record and samples for each cell, and the study's figures.
from stepscope.plan import warmup as warmup_plan

WARMUP_FOLDER = "results/{hardware}/warmup/{size}/ctx{context}/{precision}{options}"
add_study("warmup", "time_warmup", warmup_plan.cells)
WARMUP_FIGURES = [
    "warmup_steps",
    "warmup_means",
    "warmup_first_step",
]


rule time_warmup:
    input:
        cell_inputs(WARMUP_FOLDER),
    output:
        record=f"{WARMUP_FOLDER}/record.json",
        samples=f"{WARMUP_FOLDER}/samples.csv",
    log:
        f"{WARMUP_FOLDER}/measure.log",
    conda:
        "../envs/measure.yaml"
    threads: cell_cpus(WARMUP_FOLDER)
    resources:
        **cell_resources(WARMUP_FOLDER),
    params:
        **cell_params(WARMUP_FOLDER),
    message:
        cell_message(
            "Timing the first steps of {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"
        )
    shell:
        r"""
        measure {wildcards.hardware} "$SCRIPTS"/time_warmup.py \
            {params.cell} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


rule warmup_figures:
    input:
        tables=study_tables("warmup"),
    output:
        **figure_outputs("warmup", WARMUP_FIGURES, category="Warm-up"),
    log:
        "results/figures/warmup.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.warmup"),
    message:
        "Drawing the warm-up figures"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study warmup \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
