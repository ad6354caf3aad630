# The report for a repository or a web server: `snakemake site`.
# Needs what the report is made of; makes results/site: pages, and cells and tables in one file.


rule site:
    input:
        "results/site",
    localrule: True
    message:
        "The report with all that belongs to it: {input}"


use rule write_report as write_site with:
    input:
        "results/report/index.html",
        REGISTRY.records(),
        REGISTRY.samples(),
        lost_results(),
    output:
        directory("results/site"),
    log:
        "results/site.log",
    params:
        folders=["--tables results/tables", "--figures results/figures", "--site results/site", "--results results"],
    message:
        "Writing the report's site"
