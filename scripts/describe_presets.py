"""Print the page that says what each preset costs before it runs: docs/presets.md, from rules/presets."""

import argparse
from pathlib import Path

from stepscope.config.config import read_yaml, validated, with_preset
from stepscope.config.cost import LAUNCHES, RATE, Cost, cost
from stepscope.config.studies import STUDIES

ROOT = Path(__file__).resolve().parents[1]
PRESETS = ROOT / "rules/presets"
INTRODUCTION = """\
<!-- Written by `python scripts/describe_presets.py > docs/presets.md`; edit the files in rules/presets. -->
# What a preset costs

Cells of each preset on a GPU, the minutes that they take together on one H100, and the GPU memory that the largest asks
for."""
REMARKS = """\
Minutes are an estimate by formula: {fp32:.0f} TFLOP/s in fp32, {bf16:.0f} in 16 bits, at least {launches:.1f} ms a step
for each block, and the seconds in which a process starts. Another GPU takes longer as its rates are lower. A cell that
does not fit is a result (`oom`), and the rest of the grid goes on. What is in `results/` already is not measured again:
the write-ups' presets share their cells with `published`, so that they can be run one after another.
`snakemake plan --config preset=NAME` says what is left, and knows better what it takes where something was
[measured before](running.md)."""


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(page())


def page() -> str:
    """The page in Markdown, without the last line's end."""
    names = ["default", *sorted(path.stem for path in PRESETS.glob("*.yaml"))]
    studies = [study.name for study in STUDIES]
    head = ["preset", "cells", *studies, "minutes", "GiB", "of"]
    lines = [head, ["---", *["---:"] * (len(head) - 2), "---"], *map(_row, names)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    remarks = REMARKS.format(fp32=RATE["fp32"] / 1e12, bf16=RATE["bf16"] / 1e12, launches=LAUNCHES * 1e3)
    return "\n\n".join([INTRODUCTION, table, remarks])


def _row(name: str) -> list[str]:
    """The preset, its cells in all and by study, minutes, GiB, and the cell that asks for so many."""
    found = {study: cost(cells) for study, cells in cells_of(name).items()}
    largest = max(found.values(), key=lambda own: own.peak)
    minutes = sum(own.seconds for own in found.values()) / 60
    of = largest.largest.name.partition("/")[2] if largest.largest else ""
    counts = [own.cells for own in found.values()]
    numbers = [f"{sum(counts):,}", *map(str, counts), f"{minutes:.0f}", _gibibytes(largest)]
    return [f"`{name}`", *numbers, f"`{of}`"]


def _gibibytes(own: Cost) -> str:
    return f"{own.peak / 2**30:.1f}"


def cells_of(preset: str) -> dict[str, list]:
    """Study → the preset's cells on one GPU."""
    given = {"preset": preset}
    config = with_preset(read_yaml(ROOT / "config.yaml") | given, given, PRESETS)
    config = validated(config, ROOT / "rules/config.schema.yaml")
    return {study.name: study.cells(config, "cuda", "gpu", 1) for study in STUDIES}


if __name__ == "__main__":
    main()
