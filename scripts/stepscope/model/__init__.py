"""The benchmarked Transformer, its loss and its optimizers. Nothing in here knows of timing,
Snakemake or reports."""
