"""GPU memory of a training step and of inference, in closed form: the peak. Standard library only.

The peak is the largest of the moments that `terms.toml` lists with all that is alive then.

What libraries take for themselves is passed in (cuBLAS on an H100: 32 MiB for each thread that
multiplies, thus one in inference and two in a step). Bytes are those that tensors ask for.
PyTorch's allocator counts whole blocks: a tensor of 10 MiB or more gets memory of its own in steps
of 2 MiB, of which up to 1 MiB is not split off but counted as allocated
(c10/cuda/CUDACachingAllocator.cpp, `should_split`). For some sizes of weights that is 2 to 3 % of a
model.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from .footprint import TERMS, Contribution, Setup, group, holds, total

MOST = TERMS["bounds"]["batch"][1]  # below which a batch or a context is looked for
# Mode -> its flags in the table.
MODES = {
    "inference": {"inference"},
    "forward": {"forward"},
    "forward-backward": {"forward", "backward"},
    "step": {"forward", "backward", "step"},
}


@dataclass(frozen=True)
class Peak:
    """A moment and all that is alive in it, largest first."""

    phase: str
    part: str  # as modules are named, e.g. "last block/attention/softmax"
    contributions: list[Contribution]

    @property
    def bytes(self) -> int:
        return total(self.contributions)


def peak(setup: Setup, mode: str, workspace: int = 0) -> Peak:
    """Where most memory is allocated in a mode, in any step but the first, which makes the moments.

    workspace: bytes that libraries hold throughout.
    """
    return max(moments(setup, mode, workspace), key=lambda moment: moment.bytes)


def moments(setup: Setup, mode: str, workspace: int = 0) -> list[Peak]:
    """All moments that can be the peak, in their order.

    mode: "inference", "forward", "forward-backward" or "step".
    """
    flags = setup.flags | MODES[mode]
    always = _alive(setup, TERMS["always"]["alive"], flags, {})
    if workspace:
        always.append(Contribution("workspace", "", "libraries", "as given", workspace, "uint8"))
    layers, every = setup.shape.num_layers, setup.checkpoint
    at_the_loss = {
        "layers": layers,
        "others": layers - 1,
        "kept": 0 if every else layers,  # blocks whose saved tensors are there
        "boundaries": math.ceil(layers / every) if every else 0,  # inputs of groups
    }
    found = []
    for moment in TERMS["moments"]:
        if not holds(moment["when"], flags):
            continue
        places = _blocks(setup) if moment.get("each") else {"": {}}
        for block, others in places.items():
            alive = [*always, *_alive(setup, moment["alive"], flags, at_the_loss | others)]
            alive.sort(key=lambda each: -each.bytes)
            part = f"{block}/{moment['part']}" if block else moment["part"]
            found.append(Peak(moment["phase"], part, alive))
    return found


def _blocks(setup: Setup) -> dict[str, dict[str, int]]:
    """The blocks whose backward pass can be the peak, the first to run first: what is there of the
    others. Within a group of blocks, and from one group to the next, memory changes by the same
    amount: the first and last blocks of the first and of the last two groups."""
    layers = setup.shape.num_layers
    every = setup.checkpoint or layers
    last_group = (layers - 1) // every * every
    ends = {layers - 1, last_group, last_group - 1, last_group - every, every - 1, 0}
    found = {}
    for at in sorted(ends & set(range(layers)), reverse=True):
        # an only block is the last
        name = {0: "first block", layers - 1: "last block"}.get(at, f"block {at + 1}")
        groups, blocks = divmod(at, every)
        found[name] = {"before": blocks, "boundaries before": groups, "after": layers - 1 - at}
    return found


def _alive(
    setup: Setup, entries: list[dict], flags: frozenset[str], counts: dict[str, int]
) -> list[Contribution]:
    """The tensors of the entries of a moment, equal ones of several blocks as one contribution."""
    found: Counter[Contribution] = Counter()
    for entry in entries:
        if not holds(entry.get("when", ""), flags):
            continue
        said = entry.get("count", 1)
        count = counts.get(said, said)
        but = entry.get("but", ())
        for each in group(setup, entry["of"]):
            only = entry.get("only", (each.name,))
            if count and each.name in only and each.name not in but:
                found[replace(each, count=1)] += count * each.count
    return [replace(one, count=count) for one, count in found.items()]


def last_that(holds: Callable[[int], bool]) -> int:
    """The last number from 1 that holds, where all before it do; 0 if none."""
    limit = 1
    while holds(limit) and limit != MOST:
        limit *= 2
    numbers = range(max(1, limit // 2), limit)
    return numbers.start + bisect_left(numbers, True, key=lambda number: not holds(number)) - 1
