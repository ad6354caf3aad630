"""Time attention by itself: implementations in turns, at one head dimension and precision, over
growing sequences.

Prints for each implementation, length and direction the times of several fresh processes in
milliseconds, the memory that is allocated when the first backward begins (inputs, output and what
autograd saved) and the peaks, in MiB. With --out it also writes record.json and samples.csv.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import sys

from stepscope.axes import CAUSAL, IMPLEMENTATIONS
from stepscope.config import flags, studies
from stepscope.config.flags import Settings
from stepscope.machine import process
from stepscope.measure.cell import Measurement
from stepscope.model.formats import FORMATS


def main() -> None:
    with Measurement(studies.ATTENTION.file, *parse(sys.argv[1:])) as running:
        from stepscope.measure import attention

        running.finish(running.in_processes(attention.measure))


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    shape = (
        "d_head",
        "lengths",
        "batch",
        "tokens",
        "heads",
        "key_value_heads",
        "mask",
        "window",
        "precision",
    )
    spec, settings, error = flags.read(
        __doc__,
        words,
        studies.ATTENTION,
        ("variants", *shape, *flags.BUDGET),
        variants=[{"name": name} for name in IMPLEMENTATIONS],
        batch=None,
        warmup=3,
        steps=6,
        max_steps=40,
        max_seconds=0.15,
    )
    for variant in spec["variants"]:
        if (name := variant["name"]) not in IMPLEMENTATIONS:
            error(
                f"--variants: there is no implementation {name!r}; choose from"
                f" {', '.join(IMPLEMENTATIONS)}"
            )
    if FORMATS[spec["precision"]].outside:
        whole = ", ".join(name for name, one in FORMATS.items() if not one.outside)
        error(f"--precision {spec['precision']} is of linear layers; attention has {whole}")
    if "batch" in spec and "tokens" in spec:
        error("give --batch or --tokens, not both")
    if "window" in spec and "mask" not in spec:
        error(f"--window needs a causal mask; add --mask {CAUSAL}")
    heads, groups = spec.get("heads", 0), spec.get("key_value_heads", 0)
    if groups and (not heads or heads % groups):
        error(f"--key-value-heads {groups} does not divide --heads {heads}; use a divisor")
    if groups and groups == heads:
        del spec["key_value_heads"]
    return ({} if "tokens" in spec else {"batch": 8}) | spec, settings


if __name__ == "__main__":
    main()
    process.leave()
