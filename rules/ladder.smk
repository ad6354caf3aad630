# Study `ladder`: the same training step made cheaper, one change at a time.
# Needs nothing but the configuration; makes a record and samples for each cell, and the study's figures.
from stepscope.plan import ladder as ladder_plan

LADDER_FOLDER = "results/{hardware}/ladder/{size}/ctx{context}/{precision}{options}"
add_study("ladder", "time_ladder", ladder_plan.cells)
LADDER_FIGURES = [
    "ladder_steps",
    "ladder_rates",
    "ladder_checkpoint",
]


rule time_ladder:
    input:
        cell_inputs(LADDER_FOLDER),
    output:
        record=f"{LADDER_FOLDER}/record.json",
        samples=f"{LADDER_FOLDER}/samples.csv",
    log:
        f"{LADDER_FOLDER}/measure.log",
    priority: 1  # before the short cells, so that several GPUs end together
    conda:
        "../envs/measure.yaml"
    threads: cell_cpus(LADDER_FOLDER)
    resources:
        **cell_resources(LADDER_FOLDER),
    params:
        **cell_params(LADDER_FOLDER),
    message:
        cell_message(
            "Timing a rung of the ladder: {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"
        )
    shell:
        r"""
        measure {wildcards.hardware} "$SCRIPTS"/time_ladder.py \
            {params.cell} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


rule ladder_figures:
    input:
        tables=study_tables("ladder"),
    output:
        **figure_outputs("ladder", LADDER_FIGURES, category="Ladder"),
    log:
        "results/figures/ladder.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.ladder"),
    message:
        "Drawing the ladder figures"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study ladder \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
