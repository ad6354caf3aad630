# Study `profile`: which kernels run, launched by what, in which phase; by Nsight Systems or torch.profiler.
# Needs nsys on the PATH, else torch.profiler does it; makes a record, samples, a trace and its tables for each cell,
# the study's tables and its figures, which are several for each cell.
from stepscope.plan import profile as profile_plan
from stepscope.plan.profilers import tools as profile_tools
from stepscope.plan.training import figure_name
from stepscope.tables.registry import more_tables

PROFILE_FOLDER = "results/{hardware}/profile/{size}/ctx{context}/{precision}{options}"
PROFILE_TABLES = [f"results/tables/{name}.csv" for name in more_tables("profile")]
add_study("profile", "profile_step", profile_plan.cells, tools=profile_tools, tables=PROFILE_TABLES, parts=["analysis"])
PROFILE_CELLS = [cell.name for cell in REGISTRY.studies["profile"]]


rule profile_step:
    input:
        cell_inputs(PROFILE_FOLDER),
    output:
        record=f"{PROFILE_FOLDER}/record.json",
        samples=f"{PROFILE_FOLDER}/samples.csv",
        trace=directory(f"{PROFILE_FOLDER}/trace"),
    log:
        f"{PROFILE_FOLDER}/measure.log",
    conda:
        "../envs/measure.yaml"
    threads: cell_cpus(PROFILE_FOLDER)
    resources:
        **cell_resources(PROFILE_FOLDER),
    params:
        **cell_params(PROFILE_FOLDER),
    message:
        cell_message(
            "Profiling {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"
        )
    shell:
        r"""
        measure {wildcards.hardware} "$SCRIPTS"/profile_step.py \
            {params.cell} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


rule analyze_profile:
    input:
        record=f"{PROFILE_FOLDER}/record.json",
        trace=f"{PROFILE_FOLDER}/trace",
    output:
        analysis=directory(f"{PROFILE_FOLDER}/analysis"),
    log:
        f"{PROFILE_FOLDER}/analysis.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("analyze_profile.py"),
    message:
        cell_message(
            "Analysing the trace of {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"
        )
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/analyze_profile.py \
            --cell "$(dirname {input.record:q})" \
            --out {output.analysis:q} \
            >{log:q} 2>&1
        """


rule aggregate_profile:
    input:
        plan=planned,
        records=REGISTRY.records("profile"),
        analyses=[f"results/{cell}/analysis" for cell in PROFILE_CELLS],
    output:
        table=report(
            "results/tables/profile.csv",
            category="Tables",
            labels={"study": "profile", "table": "a row a cell"},
            caption="../report/captions/table.rst",
        ),
        samples="results/tables/profile_samples.csv",
        more=PROFILE_TABLES,
    log:
        "results/tables/profile.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("aggregate.py", "stepscope.tables.profile"),
    message:
        "Putting together the profile tables"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/aggregate.py \
            --plan {input.plan:q} \
            --study profile \
            --results results \
            --out results/tables \
            >{log:q} 2>&1
        """


PROFILE_CELL_FIGURES = [figure_name(name) for name in PROFILE_CELLS]
PROFILE_FIGURES = [
    "profile_matmul_share",
    "profile_launches",
    "profile_bound",
    "profile_categories",
    *PROFILE_CELL_FIGURES,
]


rule profile_figures:
    input:
        tables=study_tables("profile"),
        timing=study_tables("timing"),
    output:
        **figure_outputs(
            "profile",
            PROFILE_FIGURES,
            category="Profile",
            captions=dict.fromkeys(PROFILE_CELL_FIGURES, "profile_cell"),
        ),
    log:
        "results/figures/profile.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.profile"),
    message:
        "Drawing the profile figures"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study profile \
            --with timing \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
