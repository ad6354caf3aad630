"""Where a cell stands in the ladder of its size and context, what it is called, and what it is compared with.

The plan's order is the ladder: each cell of the chain changes one option of the cell before it. Cells with
checkpointing, and those whose model is compiled as a whole, stand beside the chain.
"""

from collections.abc import Iterator

from stepscope.axes import NEUTRAL

OPTIONS = ("precision", "attention", "compile", "optimizer", "checkpoint")
# What an option's value is called where it is what changed.
WORDS = {
    "precision": {"tf32": "TF32"},
    "attention": {
        "naive": "naive attention",
        "sdpa": "SDPA",
        "flex": "FlexAttention",
        "triton": "Triton attention",
    },
    "compile": {
        "none": "not compiled",
        "block": "blocks compiled",
        "graphs": "CUDA graphs",
        "model": "whole model compiled",
    },
    "optimizer": {"own": "own AdamW", "torch": "PyTorch's AdamW", "fused": "fused AdamW"},
}


def option(spec: dict, name: str) -> object:
    """The value of an option, neutral where the spec does not have it."""
    return spec.get(name, NEUTRAL.get(name))


def is_aside(spec: dict) -> bool:
    """Whether the cell stands beside the chain."""
    return bool(option(spec, "checkpoint")) or option(spec, "compile") == "model"


def group_of(entry: dict) -> tuple:
    """Cells of one ladder share this: hardware, size, context and batch."""
    return entry["cell"].split("/")[0], entry["size"], entry["spec"]["context"], entry["spec"]["batch"]


def chain(entries: list[dict]) -> list[dict]:
    """The cells of one ladder that are rungs, in their order."""
    return [entry for entry in entries if not is_aside(entry["spec"])]


def name(entry: dict, reference: dict | None) -> str:
    """What changed against the reference, as `CUDA graphs`; without one, how the cell runs, as `fp32, naive`."""
    spec = entry["spec"]
    if reference is None:
        parts = [_word(spec, "precision"), _word(spec, "attention").removesuffix(" attention")]
        return ", ".join([*parts, *(_word(spec, each) for each in OPTIONS[2:] if option(spec, each) != NEUTRAL[each])])
    changed = [each for each in OPTIONS if option(spec, each) != option(reference["spec"], each)]
    return " + ".join(_word(spec, each) for each in changed) or "nothing changed"


def _word(spec: dict, name: str) -> str:
    value = option(spec, name)
    if name == "checkpoint":
        return f"checkpoint every {value}" if value else "no checkpointing"
    return WORDS[name].get(value, str(value))


def counterpart(entry: dict, entries: list[dict]) -> dict | None:
    """What an aside is compared with: the cell with the same options that keeps all activations, or, for a whole model
    that is compiled, the one that compiles block by block. None if the ladder does not have it."""
    spec = entry["spec"]
    wanted = {each: option(spec, each) for each in OPTIONS}
    if wanted["checkpoint"]:
        wanted["checkpoint"] = 0
    else:
        wanted["compile"] = "block"
    alike = (each for each in entries if {key: option(each["spec"], key) for key in OPTIONS} == wanted)
    return next(alike, None)


def places(entries: list[dict]) -> Iterator[tuple[dict, int | None, dict | None]]:
    """Each cell of one ladder with its place in the chain (None for an aside), and what its name refers to: the cell
    before it in the chain, or an aside's counterpart."""
    rungs = chain(entries)
    for entry in entries:
        if is_aside(entry["spec"]):
            yield entry, None, counterpart(entry, entries)
        else:
            at = rungs.index(entry)
            yield entry, at, rungs[at - 1] if at else None
