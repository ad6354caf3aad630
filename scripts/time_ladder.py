"""Time one rung of the optimisation ladder: a Transformer's training step, run in one of the ways to make it cheaper.

Several processes run forward and backward, then the whole step. Prints mean, standard deviation and median of each
phase in milliseconds, the median of each process, how long compiling took, how many kernels a step launches, and the
loss and the gradients' norm, which must be those of the plain step. With --out it also writes record.json and
samples.csv. Running out of memory is a result, with exit code 0.
"""

import sys

from stepscope.measure import arguments, printing, process, training
from stepscope.measure.cell import Settings
from stepscope.measure.series import TRAINING_COLUMNS


def main() -> None:
    with training.cell("time_ladder.py", *parse(sys.argv[1:])) as running:
        from stepscope.measure import ladder_steps, ladder_workload, steps

        def measured(number: int) -> ladder_steps.Rung:
            if reason := running.unsupported() or ladder_workload.unsupported(running.spec):
                return ladder_steps.unsupported(reason)
            return ladder_steps.measure(running.spec, running.telemetry, is_checked=number == 1)

        rungs = running.in_processes(measured)
        outcomes, about = steps.merged([rung.outcomes for rung in rungs]), rungs[0].about
        summary = steps.summary(outcomes) | {"ladder": about}
        running.check_modes(summary["modes"])
        printing.phases(summary["phases"])
        for name, value in about.items():
            if isinstance(value, int | float):
                print(f"{name.replace('_', ' ')}: {value:,.6g}")
        running.finish(TRAINING_COLUMNS, steps.rows_of(outcomes), summary)


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, without options at their neutral value, and what does not belong to it."""
    flags = training.flags_of_cell(__doc__, mode=False, compiles=("none", "block", "model", "graphs"))
    flags.add_argument(
        "--checkpoint",
        type=arguments.not_negative,
        default=0,
        help="keep the input of every so many blocks only, and compute the rest again; 0: keep all",
    )
    arguments.add_running(flags, processes=True)
    keys = ["processes", "warmup", "steps", "max_steps", "max_seconds"]
    spec, settings = training.read(flags, words, "ladder", keys, refuse=False)
    every, blocks = spec.get("checkpoint", 0), spec.get("num_layers")
    if blocks and every > blocks:
        flags.error(f"--checkpoint {every} is more than the model's blocks ({blocks}); use fewer")
    return spec, settings


if __name__ == "__main__":
    main()
    process.leave()
