# Two versions of the code, or two environments, measured in turns on the machine at hand: `snakemake ab`.
# Needs the keys a_commit, b_commit and cells (docs/ab.md); makes results/ab/NAME: what each process took, and a page.


rule ab:
    input:
        text=ab_page,
    log:
        "results/ab/said.txt",
    localrule: True
    conda:
        "../envs/report.yaml"
    message:
        "What was found of both sides: {input.text}"
    shell:
        "cp {input.text:q} {log:q}"


if AB is not None:

    rule ab_cells:
        output:
            f"results/ab/{AB.name}/cells.json",
        log:
            f"results/ab/{AB.name}/cells.log",
        localrule: True
        params:
            cells=AB.plan,
        message:
            "Writing down the cells of both sides"
        shell:
            "printf %s {params.cells:q} >{output:q} 2>{log:q}"

    rule measure_ab:
        input:
            cells=f"results/ab/{AB.name}/cells.json",
        output:
            processes=f"results/ab/{AB.name}/processes.csv",
            sides=f"results/ab/{AB.name}/sides.json",
        log:
            f"results/ab/{AB.name}/measure.log",
        conda:
            "../envs/measure.yaml"
        threads: 1 if AB.device == "cuda" else workflow.cores
        resources:
            gpu=1 if AB.device == "cuda" else 0,
        params:
            sides=AB.sides,
            a=AB.commits["a"] or "worktree",
            b=AB.commits["b"] or "worktree",
            pythons=[word for side in "ab" if AB.pythons[side] for word in (f"--{side}-python", AB.pythons[side])],
            rounds=config["ab_rounds"],
            control="--control" if config["ab_control"] else "",
            minutes=config["timing"]["time_limit"],
        message:
            "Measuring in turns: {params.a} and {params.b}, {params.rounds} rounds"
        shell:
            r"""
            exec python3 "$STEPSCOPE"/measure_ab.py {params.a} {params.b} \
                --plan {input.cells:q} \
                --rounds {params.rounds} {params.control} {params.pythons:q} \
                --time-limit {params.minutes} \
                --only-measure \
                --progress-to 3 \
                --out "$(dirname {output.sides:q})" \
                3>&2 >{log:q} 2>&1
            """

    rule write_ab:
        input:
            processes=f"results/ab/{AB.name}/processes.csv",
            sides=f"results/ab/{AB.name}/sides.json",
        output:
            f"results/ab/{AB.name}/index.html",
            f"results/ab/{AB.name}/ab.csv",
            f"results/ab/{AB.name}/ab.md",
            text=f"results/ab/{AB.name}/ab.txt",
        log:
            f"results/ab/{AB.name}/page.log",
        localrule: True
        conda:
            "../envs/report.yaml"
        params:
            code=code_of("write_ab"),
            margin=config["ab_margin"],
        message:
            "Writing the page of both sides"
        shell:
            r"""
            exec python3 "$STEPSCOPE"/write_ab.py \
                --margin {params.margin} \
                "$(dirname {input.sides:q})" \
                >{output.text:q} 2>{log:q}
            """
