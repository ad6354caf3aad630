"""Measure what this machine reaches at best: a large matrix product in one precision, or a large copy.

Prints the median time of several processes and the rate: TFLOP/s for the product of two square matrices (2 n^3
operations), GB/s for the copy (bytes read plus bytes written; 1 GB is 10^9 bytes). With --out it also writes
record.json and samples.csv.
"""

import sys

from stepscope.axes import PRECISIONS
from stepscope.measure import arguments, printing, process
from stepscope.measure.cell import Cell, Settings
from stepscope.measure.series import CEILINGS_COLUMNS


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    with Cell("measure_ceilings.py", spec, settings, chosen={}) as running:
        from stepscope.measure import ceilings

        def measured(_number: int) -> list[ceilings.Outcome]:
            if reason := running.unsupported():
                return [ceilings.Outcome("unsupported", reason)]
            return [ceilings.measure(spec, running.telemetry)]

        outcome = ceilings.merged([found for (found,) in running.in_processes(measured)])
        summary = ceilings.summary(outcome)
        printing.series_header()
        printing.series(spec["operation"], "free", spec["precision"], summary)
        if outcome.status == "ok":
            median = printing.over_processes(summary["processes"]).median
            print(ceilings.rate_in_words(spec, median))
        else:
            print(outcome.reason)
        running.finish(CEILINGS_COLUMNS, outcome.rows, summary)


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    flags = arguments.parser(__doc__)
    group = flags.add_argument_group("cell")
    group.add_argument("--operation", choices=["matmul", "copy"], default="matmul", help="what to measure")
    group.add_argument("--order", type=arguments.positive, default=None, help="order of the square matrices (8192)")
    group.add_argument("--mebibytes", type=arguments.positive, default=None, help="size of the copied tensor (2048)")
    group.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of the matrices")
    arguments.add_running(flags, processes=True)
    given = flags.parse_args(words)
    arguments.resolve_running(given, flags)
    size, other, default = ("order", "mebibytes", 8192) if given.operation == "matmul" else ("mebibytes", "order", 2048)
    if getattr(given, other) is not None:
        flags.error(f"--{other} does not go with --operation {given.operation}; use --{size}")
    spec = {"study": "ceilings", "operation": given.operation, size: getattr(given, size) or default}
    keys = ("precision", "processes", "warmup", "steps", "max_steps", "max_seconds", "seed", "threads", "device")
    spec |= {key: getattr(given, key) for key in keys}
    return spec, arguments.settings(given)


if __name__ == "__main__":
    main()
    process.leave()
