# Study `precision`: what 16-bit formats do to sums, under autocast and inside normalisations; and, from the tables of
# the studies timing, profile and memory, what mixed precision brought. Makes a record and samples for each of three
# probes, which are not timed, and the study's figures.
from stepscope.plan import precision as precision_plan
from stepscope.tables.registry import more_tables

PRECISION_FOLDER = "results/{hardware}/precision/{probe}"
PRECISION_TABLES = [f"results/tables/{name}.csv" for name in more_tables("precision")]
add_study("precision", "probe_precision", precision_plan.cells, tables=PRECISION_TABLES)
PRECISION_FIGURES = ["precision_accumulation", "precision_forced", "precision_speedup"]


rule probe_precision:
    input:
        cell_inputs(PRECISION_FOLDER),
    output:
        record=f"{PRECISION_FOLDER}/record.json",
        samples=f"{PRECISION_FOLDER}/samples.csv",
    log:
        f"{PRECISION_FOLDER}/measure.log",
    wildcard_constraints:
        probe="|".join(precision_plan.PROBES),
    conda:
        "../envs/measure.yaml"
    threads: cell_cpus(PRECISION_FOLDER)
    resources:
        **cell_resources(PRECISION_FOLDER),
    params:
        **cell_params(PRECISION_FOLDER),
    message:
        cell_message("Probing precision: {wildcards.probe}")
    shell:
        r"""
        measure {wildcards.hardware} "$SCRIPTS"/probe_precision.py \
            {params.cell} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


rule aggregate_precision:
    input:
        plan=planned,
        records=REGISTRY.records("precision"),
    output:
        table=report(
            "results/tables/precision.csv",
            category="Tables",
            labels={"study": "precision", "table": "a row a cell"},
            caption="../report/captions/table.rst",
        ),
        samples="results/tables/precision_samples.csv",
        more=PRECISION_TABLES,
    log:
        "results/tables/precision.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("aggregate.py", "stepscope.tables.precision"),
    message:
        "Putting together the precision tables"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/aggregate.py \
            --plan {input.plan:q} \
            --study precision \
            --results results \
            --out results/tables \
            >{log:q} 2>&1
        """


rule precision_figures:
    input:
        tables=study_tables("precision"),
        timing=study_tables("timing"),
    output:
        **figure_outputs("precision", PRECISION_FIGURES, category="Precision"),
    log:
        "results/figures/precision.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.precision"),
    message:
        "Drawing the precision figures"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study precision \
            --with timing \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
