"""Measure what this machine reaches at best: a large matrix product in one precision, or a large
copy.

Both in short bursts after idle and sustained. Prints the rate of the least of the times: TFLOP/s
for the product of two square matrices (2 n^3 operations), GB/s for the copy (bytes read plus bytes
written; 1 GB is 10^9 bytes). With --out it also writes record.json and samples.csv.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import sys

from stepscope.config import flags, studies
from stepscope.config.flags import Settings
from stepscope.machine import process
from stepscope.measure.cell import Measurement


def main() -> None:
    with Measurement(studies.CEILINGS.file, *parse(sys.argv[1:])) as running:
        from stepscope.measure import ceilings
        from stepscope.measure.found import rows_of

        found = running.in_processes(ceilings.measure)
        running.finish(found)
        for kind in ceilings.KINDS:
            times = [
                row["seconds"]
                for row in rows_of(found)
                if row["kind"] == kind and not row["warmup"]
            ]
            if times:
                print(f"{kind}: {ceilings.said(running.spec, min(times))}")


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    keys = (
        "operation",
        "order",
        "mebibytes",
        "precision",
        "processes",
        *flags.FIXED,
        "max_seconds",
    )
    spec, settings, error = flags.read(
        __doc__, words, studies.CEILINGS, keys, warmup=3, steps=10, max_seconds=2.0
    )
    size, other, default = (
        ("order", "mebibytes", 8192)
        if spec["operation"] == "matmul"
        else ("mebibytes", "order", 2048)
    )
    if other in spec:
        error(f"--{other} does not go with --operation {spec['operation']}; use --{size}")
    return {size: default} | spec, settings


if __name__ == "__main__":
    main()
    process.leave()
