"""Time the phases of a Transformer's training step: one cell, measured by this process.

Runs the modes from the lightest to the one asked for (inference, forward, forward-backward, step), each with phased
and free steps, and prints mean, standard deviation, median and its 95 % interval of each phase in milliseconds.
With --out it also writes record.json and samples.csv. Running out of memory is a result, with exit code 0.
"""

import sys

from stepscope.measure import arguments, cell, cell_arguments, printing
from stepscope.model.chosen import CHOSEN_BY_NAME
from stepscope.model.shape import ModelShape
from stepscope.plan.axes import MODES, NEUTRAL
from stepscope.plan.grid import command_of

COLUMNS = [
    "mode",
    "kind",
    "step",
    "phase",
    "warmup",
    "seconds",
    "event_seconds",
    "sm_clock_mhz",
    "power_w",
    "temperature_c",
]


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    shape = ModelShape(spec["d_model"], spec["d_ff"], spec["num_layers"], spec["num_heads"], spec["vocab_size"])
    chosen = {option: spec.get(option, NEUTRAL[option]) for option in CHOSEN_BY_NAME}
    with cell.Cell("time_step.py", spec, settings, command_of("time_step.py", spec), chosen) as process:
        printing.configuration(spec, f"parameters: {shape.parameters / 1e6:,.3f} M")
        from stepscope.measure import steps

        outcomes = []
        reason = process.unsupported()
        if reason:
            modes = MODES[: MODES.index(spec.get("mode", NEUTRAL["mode"])) + 1]
            outcomes = [steps.Outcome(mode, "unsupported", reason) for mode in modes]
        else:
            printing.series_header()
            for outcome in steps.measure(spec, process.telemetry):
                process.check_memory(outcome.status)
                outcomes.append(outcome)
                found = steps.summary([outcome])
                for entry in found["phases"]:
                    printing.series(entry["mode"], entry["kind"], entry["phase"], entry)
        for outcome in outcomes:
            if outcome.status != "ok":
                print(f"{outcome.mode}: {outcome.status}: {outcome.reason}")
        process.finish(COLUMNS, [row for outcome in outcomes for row in outcome.rows], steps.summary(outcomes))


def parse(words: list[str]) -> tuple[dict, cell.Settings]:
    """Flags to the cell's spec, without options at their neutral value, and what is no part of it."""
    flags = arguments.parser(__doc__)
    cell_arguments.add_cell(flags)
    arguments.add_running(flags)
    given = flags.parse_args(words)
    cell_arguments.resolve_shape(given, flags)
    arguments.resolve_running(given, flags)
    spec = cell_arguments.cell_spec("timing", given, flags, ["warmup", "steps", "max_steps", "max_seconds"])
    return spec, cell.Settings(out=given.out, time_limit=given.time_limit)


if __name__ == "__main__":
    main()
