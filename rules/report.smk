# From the cells to the report: the plan, the tidy tables, the figures, the pages.
# Needs the cells; makes results/{plan.json,tables,figures,report}.


rule plan:
    output:
        "results/plan.json",
    log:
        "results/plan.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        plan=hashlib.sha256(CELLS.plan.encode()).hexdigest(),
    message:
        "Writing down what is planned"
    shell:
        r"""
        cat "$STEPSCOPE_PLAN" >{output:q} 2>{log:q}
        """


rule aggregate:
    input:
        plan="results/plan.json",
        cells=cells_to_read("record.json", "analysis"),
        logs=logs_of_missing(),
        published=PUBLISHED,
        known=data_of_results(),
    output:
        tables=report(
            directory("results/tables"),
            patterns=["{table}.csv"],
            category="Tables",
            caption="../report/snakemake_captions/table.rst",
        ),
    log:
        "results/aggregate.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=code_of("aggregate"),
        plan=hashlib.sha256(CELLS.plan.encode()).hexdigest(),
    message:
        "Putting the tables together"
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/aggregate.py \
            --plan {input.plan:q} \
            --plan-sha256 {params.plan} \
            --results results \
            --out results/tables \
            --published {input.published:q} \
            >{log:q} 2>&1
        """


rule figures:
    input:
        tables=rules.aggregate.output.tables,
    output:
        figures=report(
            directory("results/figures"),
            patterns=["{figure}.svg"],
            category="Figures",
            caption="../report/snakemake_captions/figure.rst",
        ),
    log:
        "results/figures.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=code_of("draw_figures", "stepscope/figures"),
    message:
        "Drawing the figures"
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/draw_figures.py \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """


rule pages:
    input:
        tables=rules.aggregate.output.tables,
        figures=rules.figures.output.figures,
        templates=templates(),
    output:
        pages=report(directory("results/report"), htmlindex="index.html", category="Report"),
    log:
        "results/report.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=code_of("write_report", "stepscope/report"),
    message:
        "Writing the report"
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/write_report.py \
            --templates "$STEPSCOPE"/../report \
            --command "$STEPSCOPE_COMMAND" \
            --tables results/tables \
            --figures results/figures \
            --out results/report \
            >{log:q} 2>&1
        """


# Needs no cell, and no GPU: the page is also beside the report.
rule fits:
    input:
        templates=templates(),
    output:
        "results/fits.html",
    log:
        "results/fits.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=code_of("write_fits"),
    message:
        "Whether a training step fits a card: {output}"
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/write_fits.py \
            --templates "$STEPSCOPE"/../report \
            --out {output:q} \
            >{log:q} 2>&1
        """
