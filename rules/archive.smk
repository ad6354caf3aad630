# Results as one file: `snakemake archive`.
# Needs the report and what it is made of; makes results/archive/NAME.zip (NAME: the key `archive`, else preset and machines).
LABELS = [one.label for one in MACHINES]
ARCHIVE = config["archive"] or "-".join([config["preset"], *LABELS[:2], *(["and-more"] if LABELS[2:] else [])])


rule archive:
    input:
        f"results/archive/{ARCHIVE}.zip",
    localrule: True
    message:
        "The archive: {input}"


rule archived_configuration:
    output:
        temp(f"results/archive/{ARCHIVE}.json"),
    log:
        "results/plan/archive.log",
    localrule: True
    params:
        configuration=json.dumps(config, sort_keys=True),
    message:
        "Writing down the configuration"
    run:
        write_whole({Path(output[0]): [params.configuration], Path(log[0]): ["written\n"]})


rule make_archive:
    input:
        "results/report/index.html",
        "results/report/data.html",
        "results/report/report.md",
        REGISTRY.records(),
        REGISTRY.samples(),
        lost_results(),
        configuration=f"results/archive/{ARCHIVE}.json",
    output:
        f"results/archive/{ARCHIVE}.zip",
    log:
        f"results/archive/{ARCHIVE}.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("archive.py"),
        traces="--traces" if config["traces"] else "",
    message:
        "Packing the results"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/archive.py make results {params.traces} \
            --configuration {input.configuration:q} \
            --out {output:q} \
            >{log:q} 2>&1
        """
