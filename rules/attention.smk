# Study `attention`: attention by itself, one implementation over growing lengths, forward and backward.
# Needs nothing but the configuration; makes a record and samples for each cell, and the study's figures.
from stepscope.axes import IMPLEMENTATIONS
from stepscope.plan import attention as attention_plan

ATTENTION_FOLDER = "results/{hardware}/attention/{implementation}/d{d_head}/{precision}{options}"
add_study("attention", "time_attention", attention_plan.cells)
ATTENTION_FIGURES = [
    "attention_time",
    "attention_memory",
    "attention_rates",
    "attention_head_dimension",
]


rule time_attention:
    input:
        cell_inputs(ATTENTION_FOLDER),
    output:
        record=f"{ATTENTION_FOLDER}/record.json",
        samples=f"{ATTENTION_FOLDER}/samples.csv",
    log:
        f"{ATTENTION_FOLDER}/measure.log",
    wildcard_constraints:
        implementation="|".join(IMPLEMENTATIONS),
        d_head=r"\d+",
    priority: 1  # before the short cells, so that several GPUs end together
    conda:
        "../envs/measure.yaml"
    threads: cell_cpus(ATTENTION_FOLDER)
    resources:
        **cell_resources(ATTENTION_FOLDER),
    params:
        **cell_params(ATTENTION_FOLDER),
    message:
        cell_message(
            "Timing attention: {wildcards.implementation}, d = {wildcards.d_head}, {wildcards.precision}{wildcards.options}"
        )
    shell:
        r"""
        measure {wildcards.hardware} "$SCRIPTS"/time_attention.py \
            {params.cell} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


rule attention_figures:
    input:
        tables=study_tables("attention"),
        ceilings=study_tables("ceilings"),
    output:
        **figure_outputs("attention", ATTENTION_FIGURES, category="Attention"),
    log:
        "results/figures/attention.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.attention"),
    message:
        "Drawing the attention figures"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study attention \
            --with ceilings \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
