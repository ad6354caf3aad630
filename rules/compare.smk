# This folder's results beside another's: what has become faster or slower. Compares what is there and measures nothing.
# Needs results, and the config keys baseline (a results folder or an archive), paired and strict; makes results/compare.


# Its exit code is to be that of the whole run, and a job only fails or does not: end_comparison() takes it.
rule compare:
    log:
        "results/compare/compare.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        flags=compared_with(),
        command=f"snakemake --cores 1 compare{given_flags()}",
    message:
        "Comparing the results with the baseline"
    shell:
        r"""
        code=0
        "$PYTHON" "$SCRIPTS"/compare_runs.py {params.flags} \
            --out results/compare \
            --command {params.command:q} \
            >{log:q} 2>&1 || code=$?
        echo "$code" >results/compare/exit_code
        """
