# A rule for each study, which measures its cells, and the analyses of what was recorded.
# Needs nothing but the configuration; makes a record and samples for each cell, and what its
# program leaves beside them.

# The folders of the cells, each once; the rules name what is in them.
TIMING_CELL = "results/{hardware}/timing/{size}/ctx{context}/{precision}{options}"
LADDER_CELL = "results/{hardware}/ladder/{size}/ctx{context}{options}"
PARALLEL_CELL = "results/{hardware}/parallel/{size}/ctx{context}/{precision}{options}"
ATTENTION_CELL = "results/{hardware}/attention/d{d_head}/{precision}{options}"
CEILINGS_CELL = "results/{hardware}/ceilings/{operation}/{precision}"
PROFILE_CELL = "results/{hardware}/profile/{size}/ctx{context}/{precision}{options}"
MEMORY_CELL = "results/{hardware}/memory/{size}/ctx{context}/{precision}{options}"
LEARNING_CELL = "results/{hardware}/learning/{size}/ctx{context}/{precision}{options}"
PRECISION_CELL = "results/{hardware}/precision/{probe}"


rule measure:
    log:
        "results/{hardware}/measure.log",
    conda:
        "../envs/measure.yaml"
    resources:
        **{key: asked(key) for key in ASKED},
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/run_cell.py {wildcards.hardware} \
            --cell {params.cell:q} \
            --code {params.code:q} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


if config["measure"]:

    use rule measure as time_step with:
        output:
            record=f"{TIMING_CELL}/record.json",
            samples=f"{TIMING_CELL}/samples.csv",
        log:
            f"{TIMING_CELL}/measure.log",
        priority: 1
        threads: cpus("timing")
        params:
            **cell_params(TIMING_CELL),
        message:
            "{wildcards.hardware}: timing {wildcards.size}, context {wildcards.context}, "
            "{wildcards.precision}{wildcards.options}"

    use rule measure as time_ladder with:
        output:
            record=f"{LADDER_CELL}/record.json",
            samples=f"{LADDER_CELL}/samples.csv",
        log:
            f"{LADDER_CELL}/measure.log",
        priority: 3
        threads: cpus("ladder")
        params:
            **cell_params(LADDER_CELL),
        message:
            "{wildcards.hardware}: ladder at {wildcards.size}, context {wildcards.context}"
            "{wildcards.options}"

    use rule measure as time_parallel with:
        output:
            record=f"{PARALLEL_CELL}/record.json",
            samples=f"{PARALLEL_CELL}/samples.csv",
        log:
            f"{PARALLEL_CELL}/measure.log",
        priority: 3
        threads: cpus("parallel")
        params:
            **cell_params(PARALLEL_CELL),
        message:
            "{wildcards.hardware}: several devices, {wildcards.size}, context {wildcards.context}, "
            "{wildcards.precision}{wildcards.options}"

    use rule measure as time_attention with:
        output:
            record=f"{ATTENTION_CELL}/record.json",
            samples=f"{ATTENTION_CELL}/samples.csv",
        log:
            f"{ATTENTION_CELL}/measure.log",
        priority: 1
        threads: cpus("attention")
        params:
            **cell_params(ATTENTION_CELL),
        message:
            "{wildcards.hardware}: attention, d = {wildcards.d_head}, "
            "{wildcards.precision}{wildcards.options}"

    use rule measure as measure_ceilings with:
        output:
            record=f"{CEILINGS_CELL}/record.json",
            samples=f"{CEILINGS_CELL}/samples.csv",
        log:
            f"{CEILINGS_CELL}/measure.log",
        priority: 2
        threads: cpus("ceilings")
        params:
            **cell_params(CEILINGS_CELL),
        message:
            "{wildcards.hardware}: ceiling of {wildcards.operation} in {wildcards.precision}"

    use rule measure as probe_precision with:
        output:
            record=f"{PRECISION_CELL}/record.json",
            samples=f"{PRECISION_CELL}/samples.csv",
        log:
            f"{PRECISION_CELL}/measure.log",
        threads: cpus("precision")
        params:
            **cell_params(PRECISION_CELL),
        message:
            "{wildcards.hardware}: probing precision, {wildcards.probe}"

    use rule measure as profile_step with:
        output:
            trace=directory(f"{PROFILE_CELL}/trace"),
            record=f"{PROFILE_CELL}/record.json",
            samples=f"{PROFILE_CELL}/samples.csv",
        log:
            f"{PROFILE_CELL}/measure.log",
        threads: cpus("profile")
        params:
            **cell_params(PROFILE_CELL),
        message:
            "{wildcards.hardware}: profile of {wildcards.size}, context {wildcards.context}, "
            "{wildcards.precision}{wildcards.options}"

    use rule measure as snapshot_memory with:
        output:
            snapshot=directory(f"{MEMORY_CELL}/snapshot"),
            record=f"{MEMORY_CELL}/record.json",
            samples=f"{MEMORY_CELL}/samples.csv",
        log:
            f"{MEMORY_CELL}/measure.log",
        threads: cpus("memory")
        params:
            **cell_params(MEMORY_CELL),
        message:
            "{wildcards.hardware}: memory of {wildcards.size}, context {wildcards.context}, "
            "{wildcards.precision}{wildcards.options}"

    use rule measure as train_variants with:
        output:
            record=f"{LEARNING_CELL}/record.json",
            samples=f"{LEARNING_CELL}/samples.csv",
        log:
            f"{LEARNING_CELL}/measure.log",
        threads: cpus("learning")
        params:
            **cell_params(LEARNING_CELL),
        message:
            "{wildcards.hardware}: training variants of {wildcards.size}, context "
            "{wildcards.context}{wildcards.options}"

    # Snakemake would take what an earlier run has left of such a study, however old it is.
    for study in STUDIES:
        cells = [
            cell for cell in CELLS.studies[study.name] if CELLS.machines[cell.label].measured
        ]
        if cells and study.name not in MEASURED:
            sys.exit(
                f"study {study.name}: {len(cells)} cells are planned, which no rule measures; "
                f"add the rule {study.program} to rules/measure.smk"
            )


rule analyze_profile:
    input:
        record="results/{hardware}/profile/{cell}/record.json",
        raw="results/{hardware}/profile/{cell}/trace",
    output:
        analysis=directory("results/{hardware}/profile/{cell}/analysis"),
    log:
        "results/{hardware}/profile/{cell}/analysis.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=code_of("analyze_profile"),
    message:
        "{wildcards.hardware}: analysing the trace of {wildcards.cell}"
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/analyze_profile.py \
            --cell "$(dirname {input.record:q})" \
            --out {output.analysis:q} \
            >{log:q} 2>&1
        """


rule analyze_memory:
    input:
        record="results/{hardware}/memory/{cell}/record.json",
        raw="results/{hardware}/memory/{cell}/snapshot",
    output:
        analysis=directory("results/{hardware}/memory/{cell}/analysis"),
    log:
        "results/{hardware}/memory/{cell}/analysis.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=code_of("analyze_memory"),
    message:
        "{wildcards.hardware}: analysing the snapshot of {wildcards.cell}"
    shell:
        r"""
        STEPSCOPE_STARTER=$PPID exec python3 "$STEPSCOPE"/analyze_memory.py \
            --cell "$(dirname {input.record:q})" \
            --out {output.analysis:q} \
            >{log:q} 2>&1
        """
