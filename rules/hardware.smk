# Section `hardware`: the machines of the configuration beside each other.
# Needs the tables of the studies that it compares; makes figures, and has no cells of its own.
HARDWARE_FIGURES = ["hardware_speedup"]


rule hardware_figures:
    input:
        timing=study_tables("timing"),
        ceilings=study_tables("ceilings"),
    output:
        **figure_outputs("hardware", HARDWARE_FIGURES, category="Machines"),
    log:
        "results/figures/hardware.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.hardware"),
    message:
        "Drawing the figures of machines side by side"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study hardware \
            --with timing \
            --with ceilings \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
