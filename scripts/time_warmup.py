"""Time training steps from a process's very first one on: what a benchmark gets with so many warm-up steps.

Exactly --steps steps are measured after --warmup unmeasured ones; nothing runs before them and nothing is discarded.
Prints mean, standard deviation, median and its 95 % interval of each phase in milliseconds. With --first profiled,
torch.profiler records the first step and, after the others, one more, and the difference is split into loading of
kernels, allocation of memory, and so on. With --out it also writes record.json and samples.csv.
"""

import sys

from stepscope.measure import arguments, cell, cell_arguments, printing
from stepscope.measure.sample_columns import TRAINING
from stepscope.model.chosen import CHOSEN_BY_NAME
from stepscope.model.shape import ModelShape
from stepscope.plan.axes import NEUTRAL
from stepscope.plan.grid import command_of

PROGRAM = "time_warmup.py"


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    shape = ModelShape(spec["d_model"], spec["d_ff"], spec["num_layers"], spec["num_heads"], spec["vocab_size"])
    chosen = {option: spec.get(option, NEUTRAL[option]) for option in CHOSEN_BY_NAME}
    with cell.Cell(PROGRAM, spec, settings, command_of(PROGRAM, spec), chosen) as running:
        printing.configuration(spec, f"parameters: {shape.parameters / 1e6:,.3f} M")
        from stepscope.measure import steps, warmup_steps

        reason = running.unsupported()
        if reason:
            outcome, first = steps.Outcome(warmup_steps.MODE, "unsupported", reason), None
        else:
            outcome, first = warmup_steps.measure(spec, running.telemetry)
        running.check_memory(outcome.status)
        if outcome.status != "ok":
            print(f"{outcome.mode}: {outcome.status}: {outcome.reason}")
        found = steps.summary([outcome])
        if found["phases"]:
            printing.series_header()
        for entry in found["phases"]:
            printing.series(entry["mode"], entry["kind"], entry["phase"], entry)
        for part in first["parts"] if first else []:
            print(
                f"{part['part']:<28}{1000 * part['first_seconds']:>12,.1f} ms{1000 * part['steady_seconds']:>12,.1f} ms"
            )
        running.finish(TRAINING, outcome.rows, found | ({"first": first} if first else {}))


def parse(words: list[str]) -> tuple[dict, cell.Settings]:
    """Flags to the cell's spec, without options at their neutral value, and what is no part of it."""
    flags = arguments.parser(__doc__)
    cell_arguments.add_cell(flags, mode=False)
    flags.add_argument(
        "--first", choices=["timed", "profiled"], default="timed", help="what is done with the first step"
    )
    arguments.add_running(flags, fixed_steps=True)
    given = flags.parse_args(words)
    cell_arguments.resolve_shape(given, flags)
    arguments.resolve_running(given, flags)
    spec = cell_arguments.cell_spec("warmup", given, flags, ["warmup", "steps"])
    return spec | ({"first": given.first} if given.first != "timed" else {}), cell.Settings(
        out=given.out, time_limit=given.time_limit
    )


if __name__ == "__main__":
    main()
