# From the cells to the report: the plan, the tidy tables, the write-up.
# Needs every study's cells and figures; makes results/plan, results/tables and results/report.

# Sections that belong to no study: they compare the tables of several.
COMPARISONS = ["roofline", "hardware"]


rule write_report:
    input:
        tables=[study_tables(study) for study in REGISTRY.studies],
        figures=REPORT_FIGURES,
        templates=report_templates(),
    output:
        markdown="results/report/report.md",
        html=report("results/report/index.html", category="Report", labels={"page": "StepScope report"}),
    log:
        "results/report/report.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code(
            "write_report.py", *[f"stepscope.report.sections.{name}" for name in [*REGISTRY.studies, *COMPARISONS]]
        ),
        studies=" ".join(f"--study {study}" for study in REGISTRY.studies),
        comparisons=" ".join(f"--comparison {name}" for name in COMPARISONS),
    message:
        "Writing the report"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/write_report.py \
            {params.studies} \
            {params.comparisons} \
            --tables results/tables \
            --figures results/figures \
            --templates "$SCRIPTS"/../report \
            --out results/report \
            >{log:q} 2>&1
        """


rule plan:
    output:
        REGISTRY.plan_path,
    log:
        "results/plan/plan.log",
    localrule: True
    message:
        "Writing down the plan: {REGISTRY.count} cells"
    run:
        REGISTRY.write_plan(output[0])
        Path(log[0]).write_text(f"{REGISTRY.count} cells\n")


rule aggregate:
    input:
        plan=REGISTRY.plan_path,
        records=lambda wildcards: REGISTRY.records(wildcards.study),
    output:
        table=report(
            "results/tables/{study}.csv",
            category="Tables",
            labels={"study": "{study}", "table": "a row a cell"},
            caption="../report/captions/table.rst",
        ),
        samples="results/tables/{study}_samples.csv",
    log:
        "results/tables/{study}.log",
    wildcard_constraints:
        study="|".join(study for study in REGISTRY.studies if not MORE_TABLES[study]),
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=lambda wildcards: report_code("aggregate.py", f"stepscope.tables.{wildcards.study}"),
    message:
        "Putting together the {wildcards.study} tables"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/aggregate.py \
            --plan {input.plan:q} \
            --study {wildcards.study} \
            --results results \
            --out results/tables \
            >{log:q} 2>&1
        """


rule partial:
    input:
        plan=REGISTRY.plan_path,
    log:
        "results/partial/report.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        studies=" ".join(REGISTRY.studies),
        comparisons=" ".join(COMPARISONS),
    message:
        "Writing results/partial/report/index.html of what there is, naming what is missing"
    shell:
        r"""
        exec >{log:q} 2>&1
        flags="" others=""
        for study in {params.studies}; do
            "$PYTHON" "$SCRIPTS"/aggregate.py --partial \
                --plan {input.plan:q} --study $study --results results --out results/partial/tables
            "$PYTHON" "$SCRIPTS"/draw_figures.py \
                --study $study --with timing --tables results/partial/tables --out results/partial/figures
            flags="$flags --study $study" others="$others --with $study"
        done
        for comparison in {params.comparisons}; do
            "$PYTHON" "$SCRIPTS"/draw_figures.py \
                --study $comparison $others --tables results/partial/tables --out results/partial/figures
            flags="$flags --comparison $comparison"
        done
        "$PYTHON" "$SCRIPTS"/write_report.py --partial $flags \
            --tables results/partial/tables \
            --figures results/partial/figures \
            --templates "$SCRIPTS"/../report \
            --out results/partial/report
        """


SOURCES.save()  # every digest has been taken by now: the plan's name holds them
