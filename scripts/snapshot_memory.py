"""Record every allocation of a few training steps of a Transformer: one cell, as a PyTorch memory snapshot.

Warm-up steps come first, outside the recording. On a GPU the snapshot is the allocator's history, on a CPU it is made
from torch.profiler's memory events. It prints the peak and the phases' times by the host's clock, in milliseconds,
taken in the same recorded steps. With --out it also writes record.json, samples.csv and a folder with snapshot.pickle,
which pytorch.org/memory_viz opens, and known.json, which says what each block is; `analyze_snapshot.py` makes tables of
both.
"""

import json
import pickle
import sys
from pathlib import Path

from stepscope.measure import arguments, cell, cell_arguments, outputs, printing
from stepscope.measure.sample_columns import TRAINING
from stepscope.model.chosen import CHOSEN_BY_NAME
from stepscope.model.shape import ModelShape
from stepscope.plan.axes import NEUTRAL
from stepscope.plan.grid import command_of

PROGRAM = "snapshot_memory.py"


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    shape = ModelShape(spec["d_model"], spec["d_ff"], spec["num_layers"], spec["num_heads"], spec["vocab_size"])
    chosen = {option: spec.get(option, NEUTRAL[option]) for option in CHOSEN_BY_NAME}
    command = command_of(PROGRAM, spec)
    with cell.Cell(PROGRAM, spec, settings, command, chosen) as running, outputs.growing(settings.out) as folder:
        printing.configuration(spec, f"parameters: {shape.parameters / 1e6:,.3f} M")
        from stepscope.measure import memory_steps, steps

        capacity = memory_steps.capacity(spec["device"])
        reason = running.unsupported()
        if reason:
            found = memory_steps.Recording(steps.Outcome(spec.get("mode", NEUTRAL["mode"]), "unsupported", reason))
        else:
            found = memory_steps.measure(spec, running.telemetry)
        running.check_memory(found.outcome.status)
        about = {"baselines": found.baselines, "capacity": capacity, "snapshot": None, "known": None}
        if found.snapshot:
            about |= {"recorded": found.recorded, "recorder": found.recorder} | _write(folder, found)
        _say(found)
        outputs.keep(folder, settings.out, "snapshot")
        running.finish(TRAINING, found.outcome.rows, steps.summary([found.outcome]) | {"memory": about})


def _write(folder: Path, found) -> dict:
    """Write the snapshot and what is known of it; their names."""
    with (folder / "snapshot.pickle").open("wb") as file:
        pickle.dump(found.snapshot, file)
    (folder / "known.json").write_text(json.dumps(found.known))
    return {"snapshot": "snapshot.pickle", "known": "known.json"}


def _say(found) -> None:
    """Print the status, peaks and landmarks, and the phases' times."""
    from stepscope.measure import steps

    outcome = found.outcome
    if outcome.status != "ok":
        print(f"{outcome.mode}: {outcome.status}: {outcome.reason}")
    for name, size in {**outcome.peaks, **found.baselines}.items():
        if size is not None:
            print(f"{name.removesuffix('_bytes').replace('_', ' ')}: {size / 2**20:,.1f} MiB")
    phases = steps.summary([outcome])["phases"]
    if phases:
        printing.series_header()
    for entry in phases:
        printing.series(entry["mode"], entry["kind"], entry["phase"], entry)


def parse(words: list[str]) -> tuple[dict, cell.Settings]:
    """Flags to the cell's spec, without options at their neutral value, and what is no part of it."""
    flags = arguments.parser(__doc__)
    cell_arguments.add_cell(flags)
    arguments.add_running(flags, fixed_steps=True)
    given = flags.parse_args(words)
    cell_arguments.resolve_shape(given, flags)
    arguments.resolve_running(given, flags)
    spec = cell_arguments.cell_spec("memory", given, flags, ["warmup", "steps"])
    return spec, cell.Settings(out=given.out, time_limit=given.time_limit)


if __name__ == "__main__":
    main()
