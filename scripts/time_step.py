"""Time the phases of a Transformer's training step: one cell, measured by this process.

Runs the modes from the lightest to the one asked for (inference, forward, forward-backward, step), each with phased
and free steps, and prints mean, standard deviation, median and its 95 % interval of each phase in milliseconds.
With --out it also writes record.json and samples.csv. Running out of memory is a result, with exit code 0.
"""

import sys

from stepscope.axes import modes_up_to, option
from stepscope.measure import arguments, printing, training
from stepscope.measure.cell import Settings
from stepscope.measure.series import TRAINING_COLUMNS


def main() -> None:
    with training.TrainingCell("time_step.py", *parse(sys.argv[1:])) as running:
        from stepscope.measure import steps

        reason, outcomes = running.unsupported(), []
        if reason:
            outcomes = steps.unsupported(modes_up_to(option(running.spec, "mode")), reason)
        else:
            printing.series_header()
            for outcome in steps.measure(running.spec, running.telemetry):
                running.check_memory(outcome.status)
                outcomes.append(outcome)
                for entry in steps.summary([outcome])["phases"]:
                    printing.series(entry["mode"], entry["kind"], entry["phase"], entry)
        summary = steps.summary(outcomes)
        running.check_modes(summary["modes"])
        running.finish(TRAINING_COLUMNS, steps.rows_of(outcomes), summary)


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, without options at their neutral value, and what does not belong to it."""
    flags = training.flags_of_cell(__doc__)
    arguments.add_running(flags)
    return training.read(flags, words, "timing", ["warmup", "steps", "max_steps", "max_seconds"])


if __name__ == "__main__":
    main()
