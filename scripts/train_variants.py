"""Train variants of a step from the same weights on the same batches of bytes, and see what each
has learned.

The bytes are Python's standard library. Each of several fresh processes takes the batches in an
order of its own, so that a difference between variants can be told from chance. Prints for each
variant the loss of files that were held out, in nats a byte, beside that of knowing nothing but how
often each byte occurs. With --out it also writes record.json and samples.csv, which has no times.
What this machine cannot train is a result.

--variants: a list of mappings with name, what differs (precision, attention, compile, optimizer,
loss, checkpoint), and scaled: true for a loss that torch.amp.GradScaler scales. The first is what
the others are compared with. Without it: those of config.yaml.
"""

from stepscope.machine.process import die_with_starter

die_with_starter()

import sys

from stepscope.axes import PLAIN_STEP
from stepscope.config import flags, studies
from stepscope.config.flags import Settings
from stepscope.config.model_cells import BYTES, learners
from stepscope.machine import process
from stepscope.measure.cell import Measurement
from stepscope.yaml_files import read_yaml


def main() -> None:
    spec, settings = parse(sys.argv[1:])
    with Measurement(studies.LEARNING.file, spec, settings) as running:
        from stepscope.measure import learning

        found = running.in_processes(learning.measure)
        more = learning.summary(found)
        running.finish(found, more)
        for row in more["tables"]["ends"]:
            print("  ".join(f"{key} {value}" for key, value in row.items()))


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    of_model = [key for key in flags.MODEL if not key.startswith(("model", "step"))]
    keys = (*of_model, *PLAIN_STEP, "variants", "processes", "steps", "learning_rate")
    spec, settings, error = flags.read(
        __doc__, words, studies.LEARNING, keys, vocab_size=BYTES, processes=2, steps=100
    )
    if spec["vocab_size"] < BYTES:
        error(f"--vocab-size {spec['vocab_size']}: a byte is a token; use at least {BYTES}")
    spec["variants"] = spec["variants"] or learners(read_yaml(flags.CONFIG)["learning"])
    for variant in spec["variants"]:
        if not isinstance(scaled := variant.get("scaled", False), bool):
            error(f"--variants: {variant['name']}: scaled {scaled!r} is neither true nor false")
        if wrong := flags.wrong_variant(variant, (*PLAIN_STEP, "scaled")):
            error(f"--variants: {wrong}")
    return spec, settings


if __name__ == "__main__":
    main()
    process.leave()
