# This folder's results beside another's: what has become faster or slower. Compares what is there and measures nothing.
# Needs results, and the config keys baseline (a results folder or an archive), paired and strict; makes results/compare.
from stepscope.plan.hardware import wrong_baseline


def compared_with():
    """The baseline and the machines that belong together, as flags."""
    paired = [f"--paired {shlex.quote(f'{old}={new}')}" for old, new in config["paired"].items()]
    return " ".join([shlex.quote(config["baseline"] or ""), *paired, *["--strict"] * config["strict"]])


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


def end_comparison():
    """Say what the comparison found, and end the run with its exit code."""
    if not snakemake_internals.has_rule(workflow, "compare"):
        return
    print(Path("results/compare/compare.log").read_text(), end="")
    code = int(Path("results/compare/exit_code").read_text())
    if code in (0, 1, 3):
        print(f"The comparison: {Path('results/compare/index.html').resolve()}")
    sys.exit(code)
