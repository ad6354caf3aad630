"""What each block of memory is for: its category, its part of the model, the line that made it, the
tensor in it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from . import MEMORY_CATEGORIES, phases, stacks
from .events import OOM
from .known import Known
from .phases import Parts, changes
from .replay import Replay

PARAMETERS, GRADIENTS, OPTIMIZER_STATE, ACTIVATIONS, CAST_WEIGHTS, BUFFERS, WORKSPACE, UNKNOWN = (
    range(len(MEMORY_CATEGORIES))
)

# Buffers that cuBLAS gets from PyTorch, one for each thread and stream, on Hopper and on everything
# before it (parseChosenWorkspaceSize in aten/src/ATen/cuda/CublasHandlePool.cpp).
_CUBLAS_BYTES = (4096 * 8 * 1024, 4096 * 2 * 1024 + 16 * 8 * 1024)
_OF_RANGE = {
    "forward": stacks.FORWARD,
    "inference": stacks.FORWARD,
    "backward": stacks.BACKWARD,
    "optimizer": stacks.OPTIMIZER,
}
_FILLS = r"^(zeros|empty|full|ones)"
_KEY = ["phase", "module", "bytes"]
_ENTRY = ["op", "shape", "dtype", "cast"]
NO_TENSOR = ("", "", "")


@dataclass
class Blocks:
    """A device's history with what is known of each block. part: its number in `parts`, -1 before
    all events.

    tensor: number in `tensors`, rows of (op, shape, dtype), of which the first is empty.
    """

    replay: Replay
    parts: Parts
    category: np.ndarray
    part: np.ndarray
    tensor: np.ndarray
    tensors: list[tuple[str, str, str]]


def from_known(
    replay: Replay, parts: Parts, known: Known, kinds: np.ndarray, casts: np.ndarray
) -> Blocks:
    """Categories from known.json.

    A storage that known.json names has the category given there. Of the rest: what the forward pass
    or inference makes is activations, also when the backward pass makes it again (checkpointing,
    seen in the stack), or cast weights if the same operator of the observed step cast a parameter;
    what backward and optimizer make is workspace, and so are cuBLAS's buffers, made in a process's
    first step.
    """
    part = np.where(replay.recorded, parts.of(replay.start), -1)
    phase = parts.told["phase"].to_numpy()[part]
    kind = kinds[replay.stack]
    marked = set(parts.told["phase"]) - {""}
    if (
        not marked or marked - _OF_RANGE.keys()
    ):  # of a step of one's own, which calls them otherwise
        by_stack = np.array([stacks.PHASE_OF_KIND.get(each, "") for each in stacks.KINDS])[kind]
        phase = np.where(np.isin(phase, list(_OF_RANGE)), phase, by_stack)
    tensor, tensors, cast = _made(replay, parts, part, known)
    parameters = known.tensors[known.tensors["category"] == MEMORY_CATEGORIES[PARAMETERS]]
    cast |= casts[replay.stack] & _half_of(replay.size, parameters["bytes"])

    category = np.full(len(part), UNKNOWN, dtype=np.int8)
    category[np.isin(phase, ("forward", "inference"))] = ACTIVATIONS
    category[np.isin(phase, ("backward", "optimizer"))] = WORKSPACE
    category[(phase == "backward") & (kind == stacks.RECOMPUTED)] = ACTIVATIONS
    is_activation = category == ACTIVATIONS
    category[is_activation & cast] = CAST_WEIGHTS
    unseen = is_activation & ~cast & (tensor == 0)
    category[unseen & _of_cublas(replay, kind)] = WORKSPACE
    blocks = Blocks(replay, parts, category, part, tensor, tensors)
    _seen(blocks, known)
    return blocks


def _of_cublas(replay: Replay, kind: np.ndarray) -> np.ndarray:
    """For each block whether it may be cuBLAS's own: of the very size, made in either pass and
    never freed."""
    sized = np.isin(replay.size, _CUBLAS_BYTES) & np.isin(kind, (stacks.FORWARD, stacks.BACKWARD))
    return sized & (replay.end >= replay.events)


def _made(
    replay: Replay, parts: Parts, part: np.ndarray, known: Known
) -> tuple[np.ndarray, list, np.ndarray]:
    """For each block the operator's output that it is, that list, and whether it is a cast weight.

    An allocation of a step is matched by phase, module and bytes: by order if the step has as many
    of them as the observed one, else with the most frequent entry. The two differ where the first
    optimizer step also made the moments, so that operators which fill a new tensor do not count
    there if there are others.
    """
    found = np.zeros(len(part), dtype=np.int64)
    own = np.flatnonzero(part >= 0)
    made = known.made
    if made.empty or not len(own):
        return found, [NO_TENSOR], np.zeros(len(part), dtype=bool)
    outputs = made[_ENTRY].drop_duplicates()
    made = made[_KEY].assign(
        entry=made.groupby(_ENTRY, sort=False).ngroup() + 1,
        fills=(made["phase"] == "optimizer") & made["op"].str.match(_FILLS),
    )
    blocks = parts.told.iloc[part[own]].reset_index(drop=True).assign(bytes=replay.size[own])
    exact = _placed(blocks, ["step", *_KEY]).merge(_placed(made, _KEY), how="left")["entry"]
    only_fills = made.groupby(_KEY)["fills"].transform("all")
    usual = made[~made["fills"] | only_fills].groupby(_KEY)["entry"]
    frequent = usual.agg(lambda each: each.mode().iloc[0]).reset_index()
    likely = blocks.merge(frequent, how="left", on=_KEY)["entry"]
    found[own] = exact.fillna(likely).fillna(0).to_numpy(dtype=np.int64)
    tensors = outputs[_ENTRY[:3]].itertuples(index=False, name=None)
    is_cast = np.append(False, outputs["cast"].to_numpy(dtype=bool))
    return found, [NO_TENSOR, *tensors], is_cast[found]


def _placed(table: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """With the place of each row among those with the same key, and how many there are."""
    groups = table.groupby(key, sort=False, dropna=False)
    return table.assign(place=groups.cumcount(), number=groups[key[-1]].transform("size"))


def _seen(blocks: Blocks, known: Known) -> None:
    """Set category and tensor of the blocks in which tensors were seen."""
    numbers: dict[tuple[str, str, str], int] = {}
    for each in _held(blocks.replay, known).to_dict("records"):
        block = each["block"]
        op, length, kind = blocks.tensors[blocks.tensor[block]]
        tensor = (op, each["shape"] or length, each["dtype"] or kind)
        blocks.tensor[block] = numbers.setdefault(tensor, len(blocks.tensors))
        if numbers[tensor] == len(blocks.tensors):
            blocks.tensors.append(tensor)
        blocks.category[block] = MEMORY_CATEGORIES.index(each["category"])


def _held(replay: Replay, known: Known) -> pd.DataFrame:
    """The tensors with the number of the `block` that each lay in when it was seen, in the order of
    time; those outside all blocks are omitted."""
    parts = []
    for _, seen in known.tensors.groupby("at"):
        event = int(phases.events_after(replay.device, seen["at"].tolist())[0]) - 1
        alive = np.flatnonzero(replay.alive_after(event))
        alive = alive[np.argsort(replay.address[alive], kind="stable")]
        if not len(alive):
            continue
        address = seen["address"].to_numpy()
        at_most = np.searchsorted(replay.address[alive], address, side="right") - 1
        block = alive[np.maximum(at_most, 0)]
        place = address - replay.address[block]  # negative of what lies before them all
        inside = (place >= 0) & (place < np.maximum(replay.size[block], 1))
        parts.append(seen.assign(block=block)[inside])
    return pd.concat(parts) if parts else known.tensors.assign(block=0)


def belongs(replay: Replay, known: Known) -> bool:
    """Whether half of the tensors of known.json lie in a block of their size."""
    held = _held(replay, known)
    is_found = (held["bytes"] > 0) & (held["bytes"] == replay.size[held["block"]])
    return 2 * is_found.sum() >= (known.tensors["bytes"] > 0).sum()


def from_stacks(
    replay: Replay,
    parts: Parts,
    kinds: np.ndarray,
    casts: np.ndarray,
) -> Blocks:
    """Categories from stacks (see stacks.py) and from how long blocks live; what neither decides is
    unknown. If the stack of an allocation says nothing, the program's range around it decides,
    provided that it is one of a phase.

    - made by a constructor or on a module's way to the device, and never freed: parameters (and
      tables that a constructor makes, which look the same);
    - made by an optimizer: optimizer state if it outlives the optimizer's turn (so, too, what it
      puts in a parameter's place, as in `p.data = …`), else workspace;
    - made in the backward pass: gradients if it outlives the pass, else workspace; of a pass or an
      optimizer's turn that ran out of memory, what is left at the end is unknown;
    - made in the forward pass, or again in the backward pass: activations, or cast weights where a
      frame of C++ is autocast's, which casts activations too, and the size is half that of a
      parameter; activations are also what an unknown line makes and the backward pass frees;
    - of the very size of cuBLAS's buffers and never freed: workspace.
    """
    part = np.where(replay.recorded, parts.of(replay.start), -1)
    phase, is_ranged = parts.told["phase"], parts.told["ranged"].astype(bool)
    by_range = phase.map(_OF_RANGE).where(is_ranged).fillna(stacks.NOTHING).to_numpy(dtype=np.int8)
    kind = kinds[replay.stack]
    # of a block without a stack, whose allocation was not recorded, nothing is known
    kind = np.where((replay.stack < 0) & ~replay.recorded, stacks.NOTHING, kind)
    kind = np.where(kind == stacks.NOTHING, by_range[part], kind)
    lasts = replay.end >= replay.events
    turn = _end_of_turn(parts, replay.events)[part]
    outlives = replay.end > turn
    ran_out = np.flatnonzero(replay.device.action == OOM)
    failed = (turn >= replay.events) & (replay.start <= ran_out.max(initial=-1))
    freed_in = phase.to_numpy()[parts.of(np.minimum(replay.end, replay.events - 1))]
    freed_in_backward = ~lasts & (freed_in == "backward")

    category = np.full(len(part), UNKNOWN, dtype=np.int8)
    category[(kind == stacks.NOTHING) & replay.recorded & freed_in_backward] = ACTIVATIONS
    category[np.isin(kind, (stacks.FORWARD, stacks.RECOMPUTED))] = ACTIVATIONS
    category[(kind == stacks.MADE) & lasts] = PARAMETERS
    for which, kept in ((stacks.OPTIMIZER, OPTIMIZER_STATE), (stacks.BACKWARD, GRADIENTS)):
        category[kind == which] = WORKSPACE
        category[(kind == which) & (outlives | lasts | ~replay.recorded)] = kept
        category[(kind == which) & replay.recorded & lasts & failed] = UNKNOWN
    weights = (category == PARAMETERS) | (~replay.recorded & lasts)
    cast = casts[replay.stack] & _half_of(replay.size, replay.size[weights])
    category[cast & (category == ACTIVATIONS)] = CAST_WEIGHTS
    category[_of_cublas(replay, kind)] = WORKSPACE
    no_tensor = np.zeros(len(part), dtype=np.int64)
    return Blocks(replay, parts, category, part, no_tensor, [NO_TENSOR])


def _half_of(size: np.ndarray, parameters: ArrayLike) -> np.ndarray:
    """Which sizes are those of a parameter in 16 bits instead of 32."""
    return np.isin(2 * size, parameters) & (size > 0)


def _end_of_turn(parts: Parts, events: int) -> np.ndarray:
    """For each part the first event after it and those that follow it in the same phase; 0 for the
    part -1."""
    begins = changes(parts.told["phase"].to_numpy()[:-1])
    ends = np.append(parts.first[begins][1:], events)
    return np.append(ends[np.cumsum(begins) - 1], 0)
