"""Time one rung of the optimisation ladder: a Transformer's training step, run in one of the ways to make it cheaper.

Runs forward and backward, then the whole step, and prints mean, standard deviation, median and its 95 % interval of
each phase in milliseconds, how long compiling took, how many kernels a step launches, and the loss and the gradients'
norm, which must be those of the plain step. With --out it also writes record.json and samples.csv. Running out of
memory is a result, with exit code 0.
"""

import sys

from stepscope.measure import arguments, cell, cell_arguments, printing
from stepscope.measure.sample_columns import TRAINING
from stepscope.model.chosen import CHOSEN_BY_NAME
from stepscope.model.shape import ModelShape
from stepscope.plan.axes import NEUTRAL
from stepscope.plan.grid import command_of

PROGRAM = "time_ladder.py"


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    shape = ModelShape(spec["d_model"], spec["d_ff"], spec["num_layers"], spec["num_heads"], spec["vocab_size"])
    chosen = {option: spec.get(option, NEUTRAL[option]) for option in CHOSEN_BY_NAME}
    with cell.Cell(PROGRAM, spec, settings, command_of(PROGRAM, spec), chosen) as running:
        printing.configuration(spec, f"parameters: {shape.parameters / 1e6:,.3f} M")
        from stepscope.measure import ladder_steps, ladder_workload, steps

        reason = running.unsupported() or ladder_workload.unsupported(spec)
        rung = ladder_steps.unsupported(reason) if reason else ladder_steps.measure(spec, running.telemetry)
        for outcome in rung.outcomes:
            running.check_memory(outcome.status)
            if outcome.status != "ok":
                print(f"{outcome.mode}: {outcome.status}: {outcome.reason}")
        found = steps.summary(rung.outcomes)
        printing.series_header()
        for entry in found["phases"]:
            printing.series(entry["mode"], entry["kind"], entry["phase"], entry)
        for name, value in rung.about.items():
            if isinstance(value, int | float):
                print(f"{name.replace('_', ' ')}: {value:,.6g}")
        rows = [row for outcome in rung.outcomes for row in outcome.rows]
        running.finish(TRAINING, rows, found | {"ladder": rung.about})


def parse(words: list[str]) -> tuple[dict, cell.Settings]:
    """Flags to the cell's spec, without options at their neutral value, and what is no part of it."""
    flags = arguments.parser(__doc__)
    cell_arguments.add_cell(flags, mode=False, compiles=("none", "block", "model", "graphs"))
    flags.add_argument(
        "--checkpoint",
        type=arguments.not_negative,
        default=0,
        help="keep the input of every so many blocks only, and compute the rest again; 0: keep all",
    )
    arguments.add_running(flags)
    given = flags.parse_args(words)
    cell_arguments.resolve_shape(given, flags)
    arguments.resolve_running(given, flags)
    settings = ["warmup", "steps", "max_steps", "max_seconds"]
    spec = cell_arguments.cell_spec("ladder", given, flags, settings, refuse=False)
    every, blocks = spec.get("checkpoint", 0), spec["num_layers"]
    if every > blocks:
        flags.error(f"--checkpoint {every} is more than the model's blocks ({blocks}); use fewer")
    return spec, cell.Settings(out=given.out, time_limit=given.time_limit)


if __name__ == "__main__":
    main()
