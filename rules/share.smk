# Results for others: archives, a site, and the comparison with other results.
# Needs what the report is made of; makes results/{archive,site,compare}.


rule archive:
    input:
        expand("results/archive/{hardware}.zip", hardware=LABELS),
    localrule: True
    message:
        "The archives: {input}"


rule pack:
    input:
        rules.pages.output,
        rules.aggregate.output,
        cells=cells_to_read("record.json", "samples.csv", "analysis"),
    output:
        "results/archive/{hardware}.zip",
    log:
        "results/archive/{hardware}.log",
    wildcard_constraints:
        hardware="|".join(LABELS),
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=code_of("archive"),
    message:
        "Packing the results of {wildcards.hardware}"
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/archive.py results {wildcards.hardware:q} \
            --out {output:q} \
            >{log:q} 2>&1
        """


rule site:
    input:
        rules.pages.output,
        cells=cells_to_read("record.json", "samples.csv", "analysis"),
        templates=templates(),
    output:
        site=directory("results/site"),
    log:
        "results/site.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=rules.pages.params.code,
    message:
        "The report with what belongs to it, for a repository or a web server: results/site"
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/write_report.py \
            --templates "$STEPSCOPE"/../report \
            --command "$STEPSCOPE_COMMAND" \
            --tables results/tables \
            --figures results/figures \
            --site {output.site:q} \
            >{log:q} 2>&1
        """


# Says what it finds on the terminal, and fails where something is worse. Without outputs it runs
# whenever it is asked for.
rule compare:
    log:
        "results/compare/compare.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        baseline=compared_with,
        flags=[f"--paired={old}={new}" for old, new in config["paired"].items()],
    message:
        "Comparing the results with {params.baseline}"
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/compare_runs.py {params.baseline:q} {params.flags:q} \
            --out results/compare \
            --command "$STEPSCOPE_COMMAND" \
            2>{log:q}
        """
