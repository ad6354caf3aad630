# Study `memory`: what fills the memory, when, and whose line of code it was; by PyTorch's allocator history, or
# torch.profiler on a CPU. Makes a record, samples, a memory snapshot and its tables for each cell, the study's tables
# and its figures, which are one for each cell and a few across them.
from stepscope.plan import memory as memory_plan
from stepscope.tables.registry import more_tables

MEMORY_FOLDER = "results/{hardware}/memory/{size}/ctx{context}/{precision}{options}"
MEMORY_TABLES = [f"results/tables/{name}.csv" for name in more_tables("memory")]
add_study("memory", "snapshot_memory", memory_plan.cells, tables=MEMORY_TABLES, parts=["analysis"])
MEMORY_CELLS = [cell.name for cell in REGISTRY.studies["memory"]]


rule snapshot_memory:
    input:
        cell_inputs(MEMORY_FOLDER),
    output:
        record=f"{MEMORY_FOLDER}/record.json",
        samples=f"{MEMORY_FOLDER}/samples.csv",
        snapshot=directory(f"{MEMORY_FOLDER}/snapshot"),
    log:
        f"{MEMORY_FOLDER}/measure.log",
    conda:
        "../envs/measure.yaml"
    threads: cell_cpus(MEMORY_FOLDER)
    resources:
        **cell_resources(MEMORY_FOLDER),
    params:
        **cell_params(MEMORY_FOLDER),
    message:
        cell_message(
            "Recording the memory of {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"
        )
    shell:
        r"""
        measure {wildcards.hardware} "$SCRIPTS"/snapshot_memory.py \
            {params.cell} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


rule analyze_memory:
    input:
        record=f"{MEMORY_FOLDER}/record.json",
        snapshot=f"{MEMORY_FOLDER}/snapshot",
    output:
        analysis=directory(f"{MEMORY_FOLDER}/analysis"),
    log:
        f"{MEMORY_FOLDER}/analysis.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("analyze_memory.py"),
    message:
        cell_message(
            "Analysing the snapshot of {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"
        )
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/analyze_memory.py \
            --cell "$(dirname {input.record:q})" \
            --out {output.analysis:q} \
            >{log:q} 2>&1
        """


rule aggregate_memory:
    input:
        plan=planned,
        records=REGISTRY.records("memory"),
        analyses=[f"results/{cell}/analysis" for cell in MEMORY_CELLS],
    output:
        table=report(
            "results/tables/memory.csv",
            category="Tables",
            labels={"study": "memory", "table": "a row a cell"},
            caption="../report/captions/table.rst",
        ),
        samples="results/tables/memory_samples.csv",
        more=MEMORY_TABLES,
    log:
        "results/tables/memory.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("aggregate.py", "stepscope.tables.memory"),
    message:
        "Putting together the memory tables"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/aggregate.py \
            --plan {input.plan:q} \
            --study memory \
            --results results \
            --out results/tables \
            >{log:q} 2>&1
        """


MEMORY_CELL_FIGURES = [figure_name(name) for name in MEMORY_CELLS]
MEMORY_FIGURES = ["memory_peaks", "memory_peak_categories", "memory_predicted", *MEMORY_CELL_FIGURES]


rule memory_figures:
    input:
        tables=study_tables("memory"),
        timing=study_tables("timing"),
    output:
        **figure_outputs(
            "memory",
            MEMORY_FIGURES,
            category="Memory",
            captions=dict.fromkeys(MEMORY_CELL_FIGURES, "memory_cell"),
        ),
    log:
        "results/figures/memory.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.memory"),
    message:
        "Drawing the memory figures"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study memory \
            --with timing \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
