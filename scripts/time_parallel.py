"""Time a training step on several devices of this machine, by strategy: who sends what, and when.

A process (a rank) runs on each device; they find each other without a port. Strategies take turns
in several such sets of processes. Then each is looked at by itself: loss and gradients beside one
device's on the whole batch, memory, energy, and the step taken apart for every rank. Prints the
steps' times in milliseconds, and tables in seconds and bytes. With --out it also writes record.json
and samples.csv. Running out of memory is a result, and so are fewer devices than asked for. --batch
is that of each device.

--variants: a list of mappings with name, strategy (alone, naive, flat, overlapped, staged, ddp,
sharded, zero, fsdp) and what differs: gradients (bf16: the type that `overlapped` and `staged`
send), ctas (the most multiprocessors that NCCL takes), or attention, compile, loss and checkpoint.
Without it: those of config.yaml.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import sys

import pandas as pd
from stepscope.axes import NEUTRAL, PLAIN_STEP
from stepscope.config import flags, studies
from stepscope.config.flags import Settings
from stepscope.config.model_cells import strategies
from stepscope.machine import process
from stepscope.parallel.cell import ParallelMeasurement
from stepscope.yaml_files import read_yaml

STRATEGIES = ("alone", "naive", "flat", "overlapped", "staged", "ddp", "sharded", "zero", "fsdp")
OPTIONS = ("strategy", "gradients", "ctas", "attention", "compile", "loss", "checkpoint")


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    with ParallelMeasurement(studies.PARALLEL.file, spec, settings) as running:
        from stepscope.parallel import measuring

        found, more = measuring.measure(running)
        running.finish(found, more)
        for rows in filter(None, more.get("tables", {}).values()):
            print(pd.DataFrame(rows).to_string(index=False, float_format="{:.4g}".format))


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    of_model = [key for key in flags.MODEL if not key.startswith("step")]
    keys = ("devices", *of_model, *PLAIN_STEP, "variants", *flags.BUDGET)
    spec, settings, error = flags.read(
        __doc__, words, studies.PARALLEL, keys, devices=2, optimizer="fused", steps=6, max_steps=30
    )
    if "optimizer" not in spec:
        error(f"--optimizer {NEUTRAL['optimizer']}: several devices need one of PyTorch's")
    usual = read_yaml(flags.CONFIG)["parallel"]
    spec["variants"] = spec["variants"] or strategies(usual, spec["device"])
    for variant in spec["variants"]:
        if wrong := _wrong(variant):
            error(f"--variants: {wrong}")
    return spec, settings


def _wrong(variant: dict) -> str | None:
    """What is wrong with a variant, in one line; None if nothing is."""
    name = variant["name"]
    if variant.get("strategy") not in STRATEGIES:
        return f"{name}: strategy {variant.get('strategy')!r} is none of {', '.join(STRATEGIES)}"
    if variant.get("gradients", "fp32") not in ("fp32", "bf16"):
        return f"{name}: gradients {variant['gradients']!r} is neither fp32 nor bf16"
    return flags.wrong_variant(variant, OPTIONS)


if __name__ == "__main__":
    main()
    process.leave()
