# Study `timing`: the training step and its phases, by the clock.
# Needs nothing but the configuration; makes a record and samples for each cell, and the study's figures.
from stepscope.plan import timing as timing_plan

TIMING_FOLDER = "results/{hardware}/timing/{size}/ctx{context}/{precision}{options}"
add_study("timing", "time_step", timing_plan.cells)
TIMING_FIGURES = [
    "timing_by_size",
    "timing_by_context",
    "timing_phases",
    "timing_samples",
    "timing_distribution",
]


rule time_step:
    input:
        cell_inputs(TIMING_FOLDER),
    output:
        record=f"{TIMING_FOLDER}/record.json",
        samples=f"{TIMING_FOLDER}/samples.csv",
    log:
        f"{TIMING_FOLDER}/measure.log",
    priority: 1  # before the short cells, so that several GPUs end together
    conda:
        "../envs/measure.yaml"
    threads: cell_cpus(TIMING_FOLDER)
    resources:
        **cell_resources(TIMING_FOLDER),
    params:
        **cell_params(TIMING_FOLDER),
    message:
        cell_message("Timing {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}")
    shell:
        r"""
        measure {wildcards.hardware} "$SCRIPTS"/time_step.py \
            {params.cell} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


rule timing_figures:
    input:
        tables=study_tables("timing"),
    output:
        **figure_outputs("timing", TIMING_FIGURES, category="Timing"),
    log:
        "results/figures/timing.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.timing"),
    message:
        "Drawing the timing figures"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study timing \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
