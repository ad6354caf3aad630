# The cells of each study (rules time_step, measure_ceilings, profile_step …, by the table in
# scripts/stepscope/config/studies.py): a rule that measures one and, where its raw output has to be taken apart, one that does that.
# Needs nothing but the configuration and the table of studies; makes a record and samples for each cell, and what the
# study's own program leaves beside them.

for study in STUDIES:

    rule:
        name:
            study.program
        input:
            cell_inputs(study),
        output:
            **{study.analysis.of: directory(f"{study.folder}/{study.analysis.of}")} if study.analysis else {},
            record=f"{study.folder}/record.json",
            samples=f"{study.folder}/samples.csv",
        log:
            f"{study.folder}/measure.log",
        wildcard_constraints:
            **study.constraints,
        priority: study.priority
        conda:
            "../envs/measure.yaml"
        threads: cell_cpus(study)
        resources:
            **cell_resources(study),
        params:
            **cell_params(study),
        message:
            cell_message(study.announced)
        shell:
            r"""
            measure {wildcards.hardware} "$SCRIPTS"/{resources.program}.py \
                {params.cell} \
                --time-limit {resources.minutes} \
                --out "$(dirname {output.record:q})" \
                >{log:q} 2>&1
            """

    if study.analysis:

        rule:
            name:
                study.analysis.program
            input:
                record=f"{study.folder}/record.json",
                raw=f"{study.folder}/{study.analysis.of}",
            output:
                analysis=directory(f"{study.folder}/analysis"),
            log:
                f"{study.folder}/analysis.log",
            localrule: True
            conda:
                "../envs/report.yaml"
            resources:
                program=study.analysis.program,
            params:
                code=report_code(f"{study.analysis.program}.py"),
            message:
                cell_message(study.analysis.announced)
            shell:
                r"""
                exec "$PYTHON" "$SCRIPTS"/{resources.program}.py \
                    --cell "$(dirname {input.record:q})" \
                    --out {output.analysis:q} \
                    >{log:q} 2>&1
                """
