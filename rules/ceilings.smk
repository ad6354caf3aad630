# Study `ceilings`: the rates that this machine reaches at best, in a large matrix product and a large copy.
# Needs nothing but the configuration; makes a record and samples for each cell, and the study's figures.
from stepscope.plan import ceilings as ceilings_plan

CEILINGS_FOLDER = "results/{hardware}/ceilings/{operation}/{precision}"
add_study("ceilings", "measure_ceilings", ceilings_plan.cells)
CEILINGS_FIGURES = ["ceilings"]


rule measure_ceilings:
    input:
        cell_inputs(CEILINGS_FOLDER),
    output:
        record=f"{CEILINGS_FOLDER}/record.json",
        samples=f"{CEILINGS_FOLDER}/samples.csv",
    log:
        f"{CEILINGS_FOLDER}/measure.log",
    wildcard_constraints:
        operation="matmul|copy",
    conda:
        "../envs/measure.yaml"
    threads: cell_cpus(CEILINGS_FOLDER)
    resources:
        **cell_resources(CEILINGS_FOLDER),
    params:
        **cell_params(CEILINGS_FOLDER),
    message:
        cell_message("Measuring the ceiling of {wildcards.operation} in {wildcards.precision}")
    shell:
        r"""
        measure {wildcards.hardware} "$SCRIPTS"/measure_ceilings.py \
            {params.cell} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


rule ceilings_figures:
    input:
        tables=study_tables("ceilings"),
    output:
        **figure_outputs("ceilings", CEILINGS_FIGURES, category="Ceilings"),
    log:
        "results/figures/ceilings.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.ceilings"),
    message:
        "Drawing the ceilings figure"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study ceilings \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
