"""What each block of memory is for: its category, its part of the model, the line that made it, the
tensor in it."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.snapshot import CATEGORIES, phases, stacks
from stepscope.snapshot.events import OOM
from stepscope.snapshot.known import Known
from stepscope.snapshot.phases import Parts
from stepscope.snapshot.replay import Replay

PARAMETERS, GRADIENTS, OPTIMIZER_STATE, ACTIVATIONS, CAST_WEIGHTS, BUFFERS, WORKSPACE, UNKNOWN = (
    range(len(CATEGORIES))
)

# Buffers that cuBLAS gets from PyTorch, one for each thread and stream, on Hopper and on everything
# before it (parseChosenWorkspaceSize in aten/src/ATen/cuda/CublasHandlePool.cpp).
_CUBLAS_BYTES = (4096 * 8 * 1024, 4096 * 2 * 1024 + 16 * 8 * 1024)
_OF_RANGE = {
    "forward": stacks.FORWARD,
    "inference": stacks.FORWARD,
    "backward": stacks.BACKWARD,
}
_OF_RANGE |= {"optimizer": stacks.OPTIMIZER}
_FILLS = r"^(zeros|empty|full|ones)"
_KEY = ["phase", "module", "bytes"]
_ENTRY = ["op", "shape", "dtype", "cast"]


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
    what backward and optimizer make is workspace, and so are cuBLAS's buffers if the recording
    began before they were made.
    """
    part = np.where(replay.recorded, parts.of(replay.start), -1)
    phase = np.array([*parts.phase, ""], dtype=object)[part]
    category = np.full(len(part), UNKNOWN, dtype=np.int8)
    category[np.isin(phase, ("forward", "inference"))] = ACTIVATIONS
    category[np.isin(phase, ("backward", "optimizer"))] = WORKSPACE
    category[(phase == "backward") & (kinds[replay.stack] == stacks.RECOMPUTED)] = ACTIVATIONS
    tensor, tensors, cast = _made(replay, parts, part, known)
    weights = {
        each["bytes"] for each in known.tensors if each["category"] == CATEGORIES[PARAMETERS]
    }
    cast |= casts[replay.stack] & _half_of(replay.size, np.array(sorted(weights), dtype=np.int64))
    category[cast & (category == ACTIVATIONS)] = CAST_WEIGHTS
    if _saw_warm_up(known):
        category[
            _of_cublas(replay, kinds[replay.stack]) & (category == ACTIVATIONS) & (tensor == 0)
        ] = WORKSPACE
    blocks = Blocks(replay, parts, category, part, tensor, tensors)
    _seen(blocks, known)
    return blocks


def _saw_warm_up(known: Known) -> bool:
    """Whether the recording began before the model was made, and thus before the libraries' own
    buffers."""
    return min(
        (each["at"] for each in known.tensors if each["category"] == "parameters"), default=(0, 0)
    ) > (0, 0)


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
    tensors = [("", "", "")]
    cast = np.zeros(len(part), dtype=bool)
    found = np.zeros(len(part), dtype=np.int64)
    made = pd.DataFrame(known.made, columns=[*_KEY, *_ENTRY])
    own = np.flatnonzero(part >= 0)
    if made.empty or not len(own):
        return found, tensors, cast
    entries = made.groupby(_ENTRY, sort=False).ngroup().to_numpy()
    rows = made.drop_duplicates(_ENTRY)
    tensors += list(rows[_ENTRY[:3]].itertuples(index=False, name=None))
    is_cast = np.append(False, rows["cast"].to_numpy(dtype=bool))
    made = made[_KEY].assign(entry=entries + 1)
    made["place"], made["number"] = _places(made, _KEY)
    blocks = pd.DataFrame({"step": pd.factorize(np.array(parts.step, dtype=object)[part[own]])[0]})
    for name in ("phase", "module"):
        blocks[name] = np.array(getattr(parts, name), dtype=object)[part[own]]
    blocks["bytes"] = replay.size[own]
    blocks["place"], blocks["number"] = _places(blocks, ["step", *_KEY])
    exact = blocks.merge(made, how="left", on=[*_KEY, "place", "number"])["entry"]
    moments = (made["phase"] == "optimizer") & rows["op"].str.match(_FILLS).to_numpy()[
        made["entry"] - 1
    ]
    others = (
        made[~moments].merge(made[moments][_KEY].drop_duplicates(), on=_KEY)[_KEY].drop_duplicates()
    )
    both = (
        made.merge(
            others,
            how="left",
            on=_KEY,
            indicator=True,
        )["_merge"].to_numpy()
        == "both"
    )
    frequent = made[~(moments & both)].groupby(_KEY)["entry"].agg(lambda each: each.mode().iloc[0])
    likely = blocks.merge(frequent.reset_index(), how="left", on=_KEY)["entry"]
    found[own] = exact.fillna(likely).fillna(0).to_numpy(dtype=np.int64)
    return found, tensors, is_cast[found]


def _places(table: pd.DataFrame, key: list[str]) -> tuple[pd.Series, pd.Series]:
    """The place of each row among those with the same key, and how many there are."""
    groups = table.groupby(key, sort=False)
    return groups.cumcount(), groups[key[-1]].transform("size")


def _seen(blocks: Blocks, known: Known) -> None:
    """Set category and tensor of the blocks in which tensors were seen."""
    numbers: dict[tuple[str, str, str], int] = {}
    for each, number in _holding(blocks.replay, known):
        op, length, kind = blocks.tensors[blocks.tensor[number]]
        tensor = (op, each["shape"] or length, each["dtype"] or kind)
        blocks.tensor[number] = numbers.setdefault(tensor, len(blocks.tensors))
        if numbers[tensor] == len(blocks.tensors):
            blocks.tensors.append(tensor)
        blocks.category[number] = CATEGORIES.index(each["category"])


def _holding(replay: Replay, known: Known) -> Iterator[tuple[dict, int]]:
    """(tensor, number of the block that it lay in when it was seen), in the order of time; tensors
    outside all blocks are omitted."""
    by_mark: dict[tuple[int, int], list[dict]] = {}
    for each in known.tensors:
        by_mark.setdefault(each["at"], []).append(each)
    for at, seen in sorted(by_mark.items(), key=lambda item: item[0]):
        event = int(phases.events_after(replay.device, [at])[0]) - 1
        alive = np.flatnonzero(replay.alive_after(event))
        alive = alive[np.argsort(replay.address[alive], kind="stable")]
        if not len(alive):
            continue
        address = np.array([each["address"] for each in seen])
        place = np.searchsorted(replay.address[alive], address, side="right") - 1
        found = alive[np.maximum(place, 0)]
        inside = (place >= 0) & (
            address - replay.address[found] < np.maximum(replay.size[found], 1)
        )
        yield from zip(itertools.compress(seen, inside), found[inside], strict=True)


def belongs(replay: Replay, known: Known) -> bool:
    """Whether known.json counts no event that is not there, and half of its tensors lie in a block
    of their size."""
    if phases.lacks_events(replay.device, known):
        return False
    listed = sum(each["bytes"] > 0 for each in known.tensors)
    found = sum(
        0 < each["bytes"] == replay.size[number] for each, number in _holding(replay, known)
    )
    return 2 * found >= listed


def from_stacks(replay: Replay, parts: Parts, kinds: np.ndarray, casts: np.ndarray) -> Blocks:
    """Categories from stacks (see stacks.py) and from how long blocks live; what neither decides is
    unknown. If the stack of an allocation says nothing, the program's range around it decides,
    provided that it is one of a phase.

    - made by a constructor or on a module's way to the device, and never freed: parameters (and
      tables that a constructor makes, which look the same); also what an optimizer puts in a
      parameter's place (`p.data = …`);
    - made by an optimizer: optimizer state if it outlives the optimizer's turn, else workspace;
    - made in the backward pass: gradients if it outlives the pass, else workspace; of a pass or an
      optimizer's turn that ran out of memory, what is left at the end is unknown;
    - made in the forward pass, or again in the backward pass: activations, or cast weights where a
      frame of C++ is autocast's, which casts activations too, and the size is half that of a
      parameter; activations are also what an unknown line makes and the backward pass frees;
    - of the very size of cuBLAS's buffers and never freed: workspace.
    """
    events, kind = replay.events, kinds[replay.stack]
    stackless = replay.stack < 0
    kind = np.where(
        stackless & ~replay.recorded, stacks.NOTHING, kind
    )  # its allocation was not recorded
    part = np.where(replay.recorded, parts.of(replay.start), -1)
    phase = np.array([*parts.phase, ""], dtype=object)
    by_range = [
        _OF_RANGE.get(name, 0) if ranged else 0
        for name, ranged in zip(parts.phase, parts.ranged, strict=True)
    ]
    kind = np.where(kind == stacks.NOTHING, np.array([*by_range, stacks.NOTHING])[part], kind)
    lasts = replay.end >= events
    outlives = replay.end > _end_of_turn(parts, events)[part]
    failed = _end_of_turn(parts, events)[part] >= events
    failed &= replay.start <= np.flatnonzero(replay.device.action == OOM).max(initial=-1)
    freed_in_backward = ~lasts & (phase[parts.of(np.minimum(replay.end, events - 1))] == "backward")

    category = np.full(len(part), UNKNOWN, dtype=np.int8)
    category[(kind == stacks.NOTHING) & replay.recorded & freed_in_backward] = ACTIVATIONS
    category[np.isin(kind, (stacks.FORWARD, stacks.RECOMPUTED))] = ACTIVATIONS
    category[(kind == stacks.MADE) & lasts] = PARAMETERS
    for which, kept in ((stacks.OPTIMIZER, OPTIMIZER_STATE), (stacks.BACKWARD, GRADIENTS)):
        category[kind == which] = WORKSPACE
        category[(kind == which) & (outlives | lasts | ~replay.recorded)] = kept
        category[(kind == which) & replay.recorded & lasts & failed] = UNKNOWN
    category[rebound(replay, parts, kind, (kind == stacks.OPTIMIZER) & (outlives | lasts))] = (
        PARAMETERS
    )
    weights = (category == PARAMETERS) | (~replay.recorded & lasts)
    cast = casts[replay.stack] & _half_of(replay.size, np.unique(replay.size[weights]))
    category[cast & (category == ACTIVATIONS)] = CAST_WEIGHTS
    category[_of_cublas(replay, kind)] = WORKSPACE
    return Blocks(
        replay, parts, category, part, np.zeros(len(part), dtype=np.int64), [("", "", "")]
    )


def rebound(replay: Replay, parts: Parts, kind: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Mask of the blocks that hold parameters which an optimizer replaces, step by step.

    As in `p.data = p.data - lr * m`: it makes the new block, which it keeps (`kept`), and in the
    same turn the old one of the same size is freed. The first one was made by a constructor. Of
    several kept blocks of the size the latest has the old one's place: moments that are replaced
    too come before.
    """
    made = kind == stacks.MADE
    freed = np.flatnonzero((replay.end < replay.events) & (kept | made))
    events = [
        (int(replay.start[at]), True, int(at)) for at in np.flatnonzero(kept & replay.recorded)
    ]
    events += [(int(replay.end[at]), False, int(at)) for at in freed]
    turn = _end_of_turn(parts, replay.events)
    is_optimizer = np.array([name == "optimizer" for name in parts.phase] + [False], dtype=bool)
    found = np.zeros(len(kind), dtype=bool)
    waiting: dict[tuple[int, int], list[int]] = {}  # (size, end of a turn) → blocks kept in it
    for event, starts, at in sorted(events):
        part = int(parts.of(np.array([event]))[0])
        key = int(replay.size[at]), int(turn[part])
        if starts:
            waiting.setdefault(key, []).append(at)
        elif is_optimizer[part] and (made[at] or found[at]) and waiting.get(key):
            found[[at, waiting[key].pop()]] = True
    return found


def _half_of(size: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Which sizes are those of a parameter in 16 bits instead of 32."""
    return np.isin(2 * size, parameters) & (size > 0)


def _end_of_turn(parts: Parts, events: int) -> np.ndarray:
    """For each part the first event after it and those that follow it in the same phase; 0 for the
    part -1."""
    end = np.append(np.append(parts.first[1:], events)[: len(parts.first)], 0)
    for number in range(len(parts.first) - 2, -1, -1):
        if parts.phase[number] == parts.phase[number + 1]:
            end[number] = end[number + 1]
    return end
