# Section `roofline`: rates of phases and of attention below the roofs of the machine.
# Needs the tables of the studies that it compares; makes figures, and has no cells of its own.
ROOFLINE_FIGURES = [
    "roofline",
    "roofline_attention",
]


rule roofline_figures:
    input:
        timing=study_tables("timing"),
        ceilings=study_tables("ceilings"),
        attention=study_tables("attention"),
    output:
        **figure_outputs("roofline", ROOFLINE_FIGURES, category="Roofline"),
    log:
        "results/figures/roofline.log",
    localrule: True
    conda:
        "../envs/report.yaml"
    params:
        code=report_code("draw_figures.py", "stepscope.figures.roofline"),
    message:
        "Drawing the roofline figures"
    shell:
        r"""
        exec "$PYTHON" "$SCRIPTS"/draw_figures.py \
            --study roofline \
            --with timing \
            --with ceilings \
            --with attention \
            --tables results/tables \
            --out results/figures \
            >{log:q} 2>&1
        """
