"""Time the phases of a Transformer's training step: one cell, measured by several processes.

Each runs the modes from the lightest to the one asked for (inference, forward, forward-backward, step) with free steps,
and the heaviest with phased ones too. Prints mean, standard deviation and median of each phase in milliseconds, and the
median of each process. With --out it also writes record.json and samples.csv. Running out of memory is a result, with
exit code 0.
"""

import sys

from stepscope.axes import modes_up_to, option
from stepscope.measure import arguments, printing, process, training
from stepscope.measure.cell import Settings
from stepscope.measure.series import TRAINING_COLUMNS


def main() -> None:
    with training.cell("time_step.py", *parse(sys.argv[1:])) as running:
        from stepscope.measure import steps

        def measured(_number: int) -> list[steps.Outcome]:
            if reason := running.unsupported():
                return steps.unsupported(modes_up_to(option(running.spec, "mode")), reason)
            return steps.measure(running.spec, running.telemetry)

        outcomes = steps.merged(running.in_processes(measured))
        summary = steps.summary(outcomes)
        running.check_modes(summary["modes"])
        printing.phases(summary["phases"])
        running.finish(TRAINING_COLUMNS, steps.rows_of(outcomes), summary)


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, without options at their neutral value, and what does not belong to it."""
    flags = training.flags_of_cell(__doc__)
    arguments.add_running(flags, processes=True)
    return training.read(flags, words, "timing", ["processes", "warmup", "steps", "max_steps", "max_seconds"])


if __name__ == "__main__":
    main()
    process.leave()
