"""Time the rungs of the optimisation ladder at one place: the same training step, made cheaper by
one change at a time.

In each of several fresh processes the rungs take turns, where all fit the memory together; else
they come one after another, in another order in the next process. Prints for each rung its times in
milliseconds, peaks in MiB, how long compiling took, how many kernels a step launches, and whether
loss and gradients are those of the first rung. With --out it also writes record.json and
samples.csv. A rung that runs out of memory, or that cannot run here, is a result.

--variants: a list of mappings with name, what differs (precision, attention, compile, optimizer,
checkpoint), and the name of the rung that it is compared with as `after`.
"""

import sys

from stepscope.axes import NEUTRAL, PRECISIONS
from stepscope.config import flags, studies
from stepscope.config.flags import Settings
from stepscope.machine import process
from stepscope.measure.own_cell import cell
from stepscope.model.chosen import names

OPTIONS = ("precision", "attention", "compile", "optimizer", "checkpoint")
ON_GPU = (
    *({"name": name, "precision": name} for name in ("fp32", "tf32", "bf16")),
    {"name": "sdpa", "attention": "sdpa"},
    {"name": "triton", "attention": "triton"},
    {"name": "compile", "compile": "block"},
    {"name": "graphs", "compile": "graphs"},
    {"name": "torch", "optimizer": "torch"},
    {"name": "fused", "optimizer": "fused"},
    {"name": "fp8", "precision": "fp8"},
)
ON_CPU = (
    {"name": "fp32", "precision": "fp32"},
    {"name": "sdpa", "attention": "sdpa"},
    {"name": "torch", "optimizer": "torch"},
    {"name": "fused", "optimizer": "fused"},
    {"name": "compile", "compile": "block"},
)


def main() -> None:
    with cell(studies.LADDER.file, *parse(sys.argv[1:])) as running:
        from stepscope.measure import ladder

        found = running.in_processes(ladder.measure)
        names = [variant["name"] for variant in running.spec["variants"]]
        running.finish(found, names, {"checks": found[0].checks})


def parse(words: list[str]) -> tuple[dict, Settings]:
    """Flags to the cell's spec, and what does not belong to it."""
    keys = (*flags.MODEL, "variants", *flags.BUDGET)
    spec, settings, error = flags.read(__doc__, words, studies.LADDER, keys, steps=6, max_steps=30)
    spec["variants"] = spec["variants"] or climbed(ON_GPU if spec["device"] == "cuda" else ON_CPU)
    if wrong := next(
        filter(None, (_wrong(one, spec["variants"]) for one in spec["variants"])), None
    ):
        error(f"--variants: {wrong}")
    return spec, settings


def climbed(changes: tuple[dict, ...]) -> list[dict]:
    """Every rung with all of its options, from what each changes of the one before."""
    rungs: list[dict] = []
    for change in changes:
        before = {key: value for key, value in rungs[-1].items() if key != "after"} if rungs else {}
        rungs.append(before | change | ({"after": rungs[-1]["name"]} if rungs else {}))
    return rungs


def _wrong(variant: dict, variants: list[dict]) -> str | None:
    """What is wrong with a variant, in one line; None if nothing is."""
    name, known = (
        variant["name"],
        {"precision": tuple(PRECISIONS), "compile": flags.FLAGS["compile"].choices},
    )
    known |= {option: tuple(names(option)) for option in ("attention", "optimizer")}
    for key, value in variant.items():
        if key not in ("name", "after", *OPTIONS):
            return f"{name} has no {key}; options are {', '.join(OPTIONS)}"
        if key in known and value not in known[key]:
            return f"{name}: {key} {value!r} is none of {', '.join(known[key])}"
        if key == "checkpoint" and not (isinstance(value, int) and value >= 0):
            return f"{name}: checkpoint {value!r} is no whole number of at least 0"
        if value == NEUTRAL.get(key):
            return f"{name}: {key} {value!r} is neutral; leave it out"
    if "after" in variant and variant["after"] not in [
        one["name"] for one in variants if one is not variant
    ]:
        return f"{name}: there is no other variant {variant['after']!r} that it is compared with"
    return None


if __name__ == "__main__":
    main()
    process.leave()
