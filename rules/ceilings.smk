# Study `ceilings`: the rates that this machine reaches at best, in a large matrix product and a large copy.
# Needs nothing but the configuration; makes a record and samples for each cell, and the study's figures.
from stepscope.plan import ceilings as ceilings_plan

add_study("ceilings", "measure_ceilings", ceilings_plan.cells)
CEILINGS_FIGURES = ["ceilings"]


rule measure_ceilings:
    output:
        record="results/{hardware}/ceilings/{operation}/{precision}/record.json",
        samples="results/{hardware}/ceilings/{operation}/{precision}/samples.csv",
    log:
        "results/{hardware}/ceilings/{operation}/{precision}/measure.log",
    wildcard_constraints:
        operation="matmul|copy",
    conda:
        "../envs/measure.yaml"
    threads: CELL_THREADS
    resources:
        gpu=CELL_GPUS,
        runtime=config["ceilings"]["time_limit"],
    params:
        **cell_params("results/{hardware}/ceilings/{operation}/{precision}"),
    message:
        "Measuring the ceiling of {wildcards.operation} in {wildcards.precision}"
    shell:
        r"""
        measure "$SCRIPTS"/measure_ceilings.py \
            {params.cell} \
            --time-limit {resources.runtime} \
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
