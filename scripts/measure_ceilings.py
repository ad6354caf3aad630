"""Measure what this machine reaches at best: a large matrix product in one precision, or a large copy.

Both in short bursts after idle and sustained. Prints the rate of the least of the times: TFLOP/s for the product of two
square matrices (2 n^3 operations), GB/s for the copy (bytes read plus bytes written; 1 GB is 10^9 bytes). With --out it
also writes record.json and samples.csv.
"""

import sys

from stepscope.axes import PRECISIONS
from stepscope.measure import arguments, process
from stepscope.measure.cell import Cell, Settings


def main() -> None:
    with Cell("measure_ceilings.py", *parse(sys.argv[1:])) as running:
        from stepscope.measure import ceilings
        from stepscope.measure.found import rows_of

        found = running.in_processes(ceilings.measure)
        running.finish(found, list(ceilings.KINDS))
        for kind in ceilings.KINDS:
            times = [row["seconds"] for row in rows_of(found) if row["kind"] == kind and not row["warmup"]]
            if times:
                rate, unit = ceilings.rate_of(running.spec, min(times))
                scale, shown = {"FLOP/s": (1e12, "TFLOP/s"), "B/s": (1e9, "GB/s read and written")}[unit]
                print(f"{kind}: {rate / scale:.4g} {shown}")


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    flags = arguments.parser(__doc__)
    group = flags.add_argument_group("cell")
    group.add_argument("--operation", choices=["matmul", "copy"], default="matmul", help="what to measure")
    group.add_argument("--order", type=arguments.positive, default=None, help="order of the square matrices (8192)")
    group.add_argument("--mebibytes", type=arguments.positive, default=None, help="size of the copied tensor (2048)")
    group.add_argument("--precision", choices=PRECISIONS, default="fp32", help="of the matrices")
    group.add_argument("--max-seconds", type=arguments.duration, default=2.0, help="of the sustained series")
    arguments.add_running(flags, steps=10, warmup=3)
    given = flags.parse_args(words)
    arguments.resolve_running(given, flags)
    size, other, default = ("order", "mebibytes", 8192) if given.operation == "matmul" else ("mebibytes", "order", 2048)
    if getattr(given, other) is not None:
        flags.error(f"--{other} does not go with --operation {given.operation}; use --{size}")
    spec = {"study": "ceilings", "operation": given.operation, size: getattr(given, size) or default}
    return spec | {"precision": given.precision} | arguments.running_keys(given), arguments.settings(given)


if __name__ == "__main__":
    main()
    process.leave()
