# A rule for each study, which measures its cells, and the analyses of what was recorded.
# Needs nothing but the configuration; makes a record and samples for each cell, and what its program leaves beside them.


rule measure:
    log:
        "results/{hardware}/measure.log",
    conda:
        "../envs/measure.yaml"
    resources:
        **{key: asked(key) for key in hardware.asked_of_any(MACHINES)},
    shell:
        r"""
        exec python3 "$STEPSCOPE"/run_cell.py {wildcards.hardware} \
            --cell {params.cell:q} \
            --code {params.code:q} \
            --time-limit {resources.minutes} \
            --out "$(dirname {output.record:q})" \
            >{log:q} 2>&1
        """


if config["measure"]:

    use rule measure as time_step with:
        output:
            record="results/{hardware}/timing/{size}/ctx{context}/{precision}{options}/record.json",
            samples="results/{hardware}/timing/{size}/ctx{context}/{precision}{options}/samples.csv",
        log:
            "results/{hardware}/timing/{size}/ctx{context}/{precision}{options}/measure.log",
        priority: 1
        threads: cpus("timing")
        params:
            **cell_params("{hardware}/timing/{size}/ctx{context}/{precision}{options}"),
        message:
            "{wildcards.hardware}: timing {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"

    use rule measure as time_ladder with:
        output:
            record="results/{hardware}/ladder/{size}/ctx{context}{options}/record.json",
            samples="results/{hardware}/ladder/{size}/ctx{context}{options}/samples.csv",
        log:
            "results/{hardware}/ladder/{size}/ctx{context}{options}/measure.log",
        priority: 3
        threads: cpus("ladder")
        params:
            **cell_params("{hardware}/ladder/{size}/ctx{context}{options}"),
        message:
            "{wildcards.hardware}: ladder at {wildcards.size}, context {wildcards.context}{wildcards.options}"

    use rule measure as time_attention with:
        output:
            record="results/{hardware}/attention/d{d_head}/{precision}{options}/record.json",
            samples="results/{hardware}/attention/d{d_head}/{precision}{options}/samples.csv",
        log:
            "results/{hardware}/attention/d{d_head}/{precision}{options}/measure.log",
        priority: 1
        threads: cpus("attention")
        params:
            **cell_params("{hardware}/attention/d{d_head}/{precision}{options}"),
        message:
            "{wildcards.hardware}: attention, d = {wildcards.d_head}, {wildcards.precision}{wildcards.options}"

    use rule measure as measure_ceilings with:
        output:
            record="results/{hardware}/ceilings/{operation}/{precision}/record.json",
            samples="results/{hardware}/ceilings/{operation}/{precision}/samples.csv",
        log:
            "results/{hardware}/ceilings/{operation}/{precision}/measure.log",
        priority: 2
        threads: cpus("ceilings")
        params:
            **cell_params("{hardware}/ceilings/{operation}/{precision}"),
        message:
            "{wildcards.hardware}: ceiling of {wildcards.operation} in {wildcards.precision}"

    use rule measure as probe_precision with:
        output:
            record="results/{hardware}/precision/{probe}/record.json",
            samples="results/{hardware}/precision/{probe}/samples.csv",
        log:
            "results/{hardware}/precision/{probe}/measure.log",
        threads: cpus("precision")
        params:
            **cell_params("{hardware}/precision/{probe}"),
        message:
            "{wildcards.hardware}: probing precision, {wildcards.probe}"

    use rule measure as profile_step with:
        output:
            trace=directory(
                "results/{hardware}/profile/{size}/ctx{context}/{precision}{options}/trace"
            ),
            record="results/{hardware}/profile/{size}/ctx{context}/{precision}{options}/record.json",
            samples="results/{hardware}/profile/{size}/ctx{context}/{precision}{options}/samples.csv",
        log:
            "results/{hardware}/profile/{size}/ctx{context}/{precision}{options}/measure.log",
        threads: cpus("profile")
        params:
            **cell_params("{hardware}/profile/{size}/ctx{context}/{precision}{options}"),
        message:
            "{wildcards.hardware}: profile of {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"

    use rule measure as snapshot_memory with:
        output:
            snapshot=directory(
                "results/{hardware}/memory/{size}/ctx{context}/{precision}{options}/snapshot"
            ),
            record="results/{hardware}/memory/{size}/ctx{context}/{precision}{options}/record.json",
            samples="results/{hardware}/memory/{size}/ctx{context}/{precision}{options}/samples.csv",
        log:
            "results/{hardware}/memory/{size}/ctx{context}/{precision}{options}/measure.log",
        threads: cpus("memory")
        params:
            **cell_params("{hardware}/memory/{size}/ctx{context}/{precision}{options}"),
        message:
            "{wildcards.hardware}: memory of {wildcards.size}, context {wildcards.context}, {wildcards.precision}{wildcards.options}"


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
        exec python3 "$STEPSCOPE"/analyze_profile.py \
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
        exec python3 "$STEPSCOPE"/analyze_memory.py \
            --cell "$(dirname {input.record:q})" \
            --out {output.analysis:q} \
            >{log:q} 2>&1
        """
