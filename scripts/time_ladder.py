"""Time the rungs of the optimisation ladder at one place: the same training step, made cheaper by
one change at a time.

In each of several fresh processes the rungs take turns, where all fit the memory together; else
they come one after another, in another order in the next process. Prints for each rung its times in
milliseconds, peaks in MiB, how long compiling took, how many kernels a step launches, and whether
loss and gradients are those of the first rung. With --out it also writes record.json and
samples.csv. A rung that runs out of memory, or cannot run here, is a result.

--variants: a list of mappings with name, what differs (precision, attention, compile, optimizer,
checkpoint), and the name of the rung that it is compared with as `after`; or steps of one's own,
each with `step`, FILE:FUNCTION. Without it: the rungs of config.yaml.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import sys

from stepscope.axes import NEUTRAL, PLAIN_STEP
from stepscope.config import flags, ladder_cells, studies
from stepscope.config.flags import Settings
from stepscope.machine import process
from stepscope.measure.cell import Measurement
from stepscope.yaml_files import read_yaml


def main() -> None:
    with Measurement(studies.LADDER.file, *parse(sys.argv[1:])) as running:
        from stepscope.measure import ladder

        found = running.in_processes(ladder.measure)
        running.finish(found, {"checks": found[0].checks})


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    of_model = [key for key in flags.MODEL if not key.startswith("step")]
    keys = (*of_model, "variants", *flags.BUDGET)
    spec, settings, error = flags.read(__doc__, words, studies.LADDER, keys, steps=6, max_steps=30)
    if not spec["variants"]:
        device = spec["device"]
        rungs = read_yaml(flags.CONFIG)["ladder"]["rungs"][device]
        spec["variants"] = ladder_cells.rungs_of(rungs, f"config key ladder.rungs.{device}")
    for variant in spec["variants"]:
        if wrong := _wrong(variant, spec["variants"]):
            error(f"--variants: {wrong}")
    return spec, settings


def _wrong(variant: dict, variants: list[dict]) -> str | None:
    """What is wrong with a variant, in one line; None if nothing is."""
    name = variant["name"]
    for key, value in variant.items():
        if value == NEUTRAL.get(key):
            return f"{name}: {key} {value!r} is neutral; leave it out"
    others = [one["name"] for one in variants if one is not variant]
    if "after" in variant and variant["after"] not in others:
        return f"{name}: there is no other variant {variant['after']!r} that it is compared with"
    return None if "step" in variant else flags.wrong_variant(variant, PLAIN_STEP)


if __name__ == "__main__":
    main()
    process.leave()
