"""Time training steps from a process's very first one on: what a benchmark gets with so many warm-up steps.

Exactly --steps steps are measured after --warmup unmeasured ones; nothing runs before them and nothing is discarded.
Prints mean, standard deviation and median of each phase in milliseconds. With --first profiled,
torch.profiler records the first step and, after the others, one more, and the difference is split into loading of
kernels, allocation of memory, and so on. With --out it also writes record.json and samples.csv.
"""

import sys

from stepscope.measure import arguments, printing, process, training
from stepscope.measure.cell import Settings
from stepscope.measure.series import TRAINING_COLUMNS


def main() -> None:
    with training.cell("time_warmup.py", *parse(sys.argv[1:])) as running:
        from stepscope.measure import steps, warmup_steps

        reason, first = running.unsupported(), None
        if reason:
            (outcome,) = steps.unsupported([warmup_steps.MODE], reason)
        else:
            outcome, first = warmup_steps.measure(running.spec, running.telemetry)
        summary = steps.summary([outcome])
        running.check_modes(summary["modes"])
        printing.phases(summary["phases"])
        for part in first["parts"] if first else []:
            print(
                f"{part['part']:<28}{1000 * part['first_seconds']:>12,.1f} ms{1000 * part['steady_seconds']:>12,.1f} ms"
            )
        running.finish(TRAINING_COLUMNS, outcome.rows, summary | ({"first": first} if first else {}))


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, without options at their neutral value, and what does not belong to it."""
    flags = training.flags_of_cell(__doc__, mode=False)
    flags.add_argument(
        "--first", choices=["timed", "profiled"], default="timed", help="what is done with the first step"
    )
    arguments.add_running(flags, fixed_steps=True)
    return training.read(flags, words, "warmup", ["warmup", "steps"], if_changed=["first"])


if __name__ == "__main__":
    main()
    process.leave()
