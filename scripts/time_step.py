"""Time the phases of a Transformer's training step: one cell, measured by this process.

Runs the modes from the lightest to the one asked for (inference, forward, forward-backward, step), each with phased
and free steps, and prints mean, standard deviation, median and its 95 % interval of each phase in milliseconds.
With --out it also writes record.json and samples.csv. Running out of memory is a result, with exit code 0.
"""

import sys

from stepscope.measure import arguments, cell, printing
from stepscope.model.chosen import CHOSEN_BY_NAME, names
from stepscope.model.shape import ModelShape
from stepscope.plan.axes import MODES, NEUTRAL, PRECISIONS
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
    arguments.add_shape(flags)
    group = flags.add_argument_group("cell")
    group.add_argument("--context", type=arguments.positive, default=128, help="sequence length in tokens")
    group.add_argument("--batch", type=arguments.positive, default=4, help="sequences")
    group.add_argument("--precision", choices=PRECISIONS, default="fp32", help="fp32 has TF32 off; 16 bits: autocast")
    group.add_argument("--mode", choices=MODES, default="step", help="the heaviest thing to run")
    group.add_argument("--attention", choices=names("attention"), default="naive", help="implementation")
    group.add_argument("--compile", choices=["none"], default="none", help="torch.compile")
    group.add_argument("--optimizer", choices=names("optimizer"), default="own", help="AdamW's implementation")
    group.add_argument("--repeat", type=arguments.positive, default=1, help="number of this run of the same cell")
    arguments.add_running(flags)
    given = flags.parse_args(words)
    arguments.resolve_shape(given, flags)
    arguments.resolve_running(given, flags)
    keys = "d_model d_ff num_layers num_heads vocab_size context batch precision warmup steps max_steps max_seconds"
    spec = {"study": "timing"} | {key: getattr(given, key) for key in f"{keys} seed threads device".split()}
    spec |= {key: getattr(given, key) for key in NEUTRAL if getattr(given, key, NEUTRAL[key]) != NEUTRAL[key]}
    try:
        ModelShape(*(spec[key] for key in ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size")))
    except ValueError as error:
        flags.error(str(error))
    return spec, cell.Settings(out=given.out, time_limit=given.time_limit)


if __name__ == "__main__":
    main()
