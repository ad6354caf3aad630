# From the cells to the report: the plan, the tidy tables, the figures, the write-up. Twice: the report, and a partial one
# of the cells that are there, by the same rules with names that begin with `partial_`.
# Needs the cells; makes results/{plan,tables,figures,report} and results/partial.


rule plan_file:
    output:
        REGISTRY.plan_path,
    log:
        "results/plan/plan.log",
    localrule: True
    message:
        "Writing down the plan: {REGISTRY.count} cells"
    run:
        write_plan(output[0], log[0])


use rule plan_file as partial_plan with:
    output:
        "results/partial/plan/{state}.json",
    log:
        "results/partial/plan/{state}.log",


for prefix, folder, gaps, plan in (
    ("", "results", "", REGISTRY.plan_path),
    ("partial_", "results/partial", "--partial", partial_plan),
):

    rule:
        name:
            f"{prefix}gather_published"
        input:
            published=PUBLISHED,
        output:
            table=report(
                f"{folder}/tables/published.csv",
                category="Tables",
                labels={"study": "published figures", "table": "a row a figure"},
                caption="../report/snakemake_captions/published_table.rst",
            ),
        log:
            f"{folder}/tables/published.log",
        localrule: True
        conda:
            "../envs/report.yaml"
        params:
            code=report_code("gather_published.py"),
        message:
            "Putting together the published figures"
        shell:
            r"""
            exec "$PYTHON" "$SCRIPTS"/gather_published.py \
                {input.published:q} \
                --out "$(dirname {output.table:q})" \
                >{log:q} 2>&1
            """

    rule:
        name:
            f"{prefix}gather_models"
        input:
            plan=plan,
            cells=[] if gaps else OWN_MODELS,
        output:
            table=report(
                f"{folder}/tables/models.csv",
                category="Tables",
                labels={"study": "own models", "table": "a row a model"},
                caption="../report/snakemake_captions/models_table.rst",
            ),
        log:
            f"{folder}/tables/models.log",
        localrule: True
        conda:
            "../envs/report.yaml"
        params:
            code=report_code("gather_models.py"),
        message:
            "Putting together what own models are"
        shell:
            r"""
            exec "$PYTHON" "$SCRIPTS"/gather_models.py \
                --plan {input.plan:q} \
                --results results \
                --out "$(dirname {output.table:q})" \
                >{log:q} 2>&1
            """

    for study in STUDIES:

        rule:
            name:
                f"{prefix}aggregate_{study.name}"
            input:
                plan=plan,
                cells=[] if gaps else cells_to_read(study),
                control=f"{folder}/tables/timing.csv" if study.uses_control else [],
            output:
                table=report(
                    f"{folder}/tables/{study.name}.csv",
                    category="Tables",
                    labels={"study": study.name, "table": "a row a cell"},
                    caption="../report/snakemake_captions/table.rst",
                ),
                others=study_tables(study, folder)[1:],
            log:
                f"{folder}/tables/{study.name}.log",
            localrule: True
            conda:
                "../envs/report.yaml"
            params:
                code=report_code("aggregate.py", f"stepscope.tables.{study.name}"),
                study=study.name,
                gaps=gaps,
                control=f"--control {folder}/tables/timing.csv" if study.uses_control else "",
            message:
                f"Putting together the {study.name} tables"
            shell:
                r"""
                exec "$PYTHON" "$SCRIPTS"/aggregate.py \
                    --plan {input.plan:q} \
                    --study {params.study} {params.gaps} {params.control} \
                    --results results \
                    --out "$(dirname {output.table:q})" \
                    >{log:q} 2>&1
                """

    for section in DRAWN:

        rule:
            name:
                f"{prefix}{section.name}_figures"
            input:
                tables=section_tables(section, folder),
            output:
                **figure_outputs(section, folder),
            log:
                f"{folder}/figures/{section.name}.log",
            localrule: True
            conda:
                "../envs/report.yaml"
            params:
                code=report_code("draw_figures.py", f"stepscope.figures.{section.name}"),
                section=section.name,
                others=[f"--with {study}" for study in section.reads],
                folders=[f"--tables {folder}/tables", f"--out {folder}/figures"],
            message:
                section.drawing
            shell:
                r"""
                exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
                    --study {params.section} {params.others} \
                    {params.folders} \
                    >{log:q} 2>&1
                """

    rule:
        name:
            f"{prefix}write_report"
        input:
            tables=[study_tables(study, folder) for study in STUDIES],
            models=f"{folder}/tables/models.csv",
            published=f"{folder}/tables/published.csv",
            figures=[f"{folder}/figures/{name}.svg" for section in DRAWN for name in figures(section)],
            templates=templates(),
        output:
            markdown=f"{folder}/report/report.md",
            html=report(f"{folder}/report/index.html", category="Report", labels={"page": "StepScope report"}),
            data=report(f"{folder}/report/data.html", category="Report", labels={"page": "All data"}),
            tables=directory(f"{folder}/report/tables"),
        log:
            f"{folder}/report/report.log",
        localrule: True
        conda:
            "../envs/report.yaml"
        params:
            code=report_code(
                "write_report.py",
                *[f"stepscope.report.studies.{section.name}.section" for section in (*STUDIES, *COMPARISONS)],
                *[f"stepscope.report.chapters.{name}" for name in CHAPTERS],
            ),
            studies=[f"--study {study.name}" for study in STUDIES],
            comparisons=[f"--comparison {section.name}" for section in COMPARISONS],
            folders=[
                f"--tables {folder}/tables",
                f"--figures {folder}/figures",
                f"--out {folder}/report",
                "--results results",
            ],
            gaps=gaps,
            run=f"snakemake --cores 1 {'partial' if prefix else 'report'}",
        message:
            "Writing the report"
        shell:
            r"""
            exec "$PYTHON" "$SCRIPTS"/write_report.py \
                {params.studies} \
                {params.comparisons} {params.gaps} \
                --templates "$SCRIPTS"/../report \
                --command "{params.run}${{STEPSCOPE_CONFIGURATION-}}" \
                {params.folders} \
                >{log:q} 2>&1
            """


rule partial:
    input:
        "results/partial/report/index.html",
        "results/partial/report/data.html",
        "results/partial/report/report.md",
    localrule: True
    message:
        "Writing results/partial/report/index.html of what there is, naming what is missing"


SOURCES.save()  # every digest has been taken by now: the plan's name holds them
