# Study `timing`: the training step and its phases, by the clock.
# Needs nothing but the configuration; makes a record and samples for each cell, and the study's figures.
from stepscope.plan import timing as timing_plan

add_study("timing", "time_step", timing_plan.cells)
TIMING_FIGURES = [
    "timing_by_size",
    "timing_by_context",
    "timing_phases",
    "timing_samples",
    "timing_distribution",
]


rule time_step:
    output:
        record="results/{hardware}/timing/{size}/ctx{context}/{precision}{options}/record.json",
        samples="results/{hardware}/timing/{size}/ctx{context}/{precision}{options}/samples.csv",
    log:
        "results/{hardware}/timing/{size}/ctx{context}/{precision}{options}/measure.log",
    conda:
        "../envs/measure.yaml"
    threads: CELL_THREADS
    resources:
        gpu=CELL_GPUS,
        runtime=config["timing"]["time_limit"],
    params:
        **cell_params("results/{hardware}/timing/{size}/ctx{context}/{precision}{options}"),
    message:
        "Timing {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"
    shell:
        r"""
        measure "$SCRIPTS"/time_step.py \
            {params.cell} \
            --time-limit {resources.runtime} \
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
