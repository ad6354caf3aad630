"""The parts of attention: what the ranges inside it took in the forward pass, on the host and on the GPU."""

import re

import numpy as np
import pandas as pd

from stepscope.recordings import names as people
from stepscope.trace.attribution import Attribution
from stepscope.trace.nesting import climb
from stepscope.trace.range_tables import by_name

# A range holds a whole attention if its name has one of the first words and none beside the second ones: "attention
# scores" is a part of it.
ATTENTION = frozenset(["attention", "attn", "mha", "gqa", "mqa", "mla", "sdpa", "multihead"])
BESIDE = frozenset(
    [
        "block", "blocks", "causal", "core", "cross", "decoder", "dot", "encoder", "flash", "forward", "fused",
        "fwd", "grouped", "h", "head", "heads", "layer", "layers", "masked", "model", "module", "multi", "pass",
        "product", "query", "scaled", "self", "sublayer", "the", "transformer",
    ]
)  # fmt: skip
LINEAR = re.compile(r"qkv|proj", re.IGNORECASE)
FORWARD = ("forward", "inference")
_SUMS = ("host_ms_per_step", "host_exclusive_ms_per_step", "gpu_ms_per_step", "gpu_exclusive_ms_per_step")
_SUMS += ("kernels_per_step", "kernels_exclusive_per_step")


def attention_code(found: Attribution) -> int | None:
    """The name code of the ranges that hold a whole attention; of several names that fit the one of the most time."""
    names, codes = found.trace.names, found.trace.ranges["name"].to_numpy()
    fitting = [code for code in np.unique(codes) if not found.operator[code] and is_attention(names[code])]
    return max(fitting, key=lambda code: int(found.lengths[codes == code].sum()), default=None)


def is_attention(name: str) -> bool:
    """Whether this is what people call a whole attention: "self_attn", "scaled dot product attention"."""
    words = {word for word in people.words(name) if not word.isdigit()} if len(name) <= people.LONGEST else set()
    return bool(words & ATTENTION) and words <= ATTENTION | BESIDE


def forward_phase(found: Attribution) -> str | None:
    """The phase that is the forward pass; None without one."""
    return next((phase for wanted in FORWARD for phase in found.phases if phase.lower() == wanted), None)


def in_forward(found: Attribution) -> np.ndarray:
    """Mask of the ranges inside the forward pass; of all ranges, if there is no such phase.

    Activation checkpointing runs a part of it again in the backward pass: that does not count.
    """
    codes, phase = found.trace.ranges["name"].to_numpy(), forward_phase(found)
    if phase is None:
        return np.ones(len(codes), dtype=bool)
    return climb(found.parent, found.parent, codes != found.trace.names.index(phase)) >= 0


def layers(found: Attribution) -> int | None:
    """Blocks of the model: how many attention ranges a step opens in its forward pass; None if that differs or is 0."""
    code = attention_code(found)
    if code is None:
        return None
    codes = found.trace.ranges["name"].to_numpy()
    own = (codes == code) & in_forward(found)
    nested = climb(found.parent[own], found.parent, codes != code) >= 0  # one within another of its name
    count = int(own.sum() - nested.sum())
    return count // found.steps if count and count % found.steps == 0 else None


def attention(found: Attribution, times: pd.DataFrame, phases: pd.DataFrame) -> pd.DataFrame:
    """The parts of attention in the forward pass, per step: those directly inside it, its linear part, and the rest.

    times: of range_times(); phases: the table of phases. Empty without an attention range.
    """
    code = attention_code(found)
    if code is None:
        return pd.DataFrame()
    name = found.trace.names[code]
    excluded = found.is_phase | found.operator
    table = by_name(found, times, in_forward(found) & ~excluded[times["name"].to_numpy()])
    if table.empty or name not in set(table["range"]):
        return pd.DataFrame()
    whole = table[table["range"] == name].iloc[0]
    children = table[(table["parent"] == name) & (table["range"] != name)]
    linear = children[children["range"].str.contains(LINEAR)]
    forward = {"gpu": None, "host": None}
    phase = forward_phase(found)
    if phase is not None:
        row = phases[phases["phase"] == phase].iloc[0]
        forward = {side: row[f"{side}_ms_per_step"] for side in forward}
    rows = [{"part": "attention", "kind": "whole", **whole}]
    rows += [{"part": row["range"], "kind": "part", **row} for _, row in children.iterrows()]
    inclusive = [key for key in _SUMS if "exclusive" not in key]
    rest = whole[inclusive] - children[inclusive].sum()
    rows.append({"part": "outside these parts", "kind": "rest", **rest})
    if len(linear):
        label = "linear (" + " + ".join(linear["range"]) + ")"
        rows.append({"part": label, "kind": "sum", **linear[list(_SUMS)].sum()})
        rows.append({"part": "attention without linear", "kind": "sum", **(whole[inclusive] - linear[inclusive].sum())})
    for row in rows:
        for side in ("gpu", "host"):
            value = row[f"{side}_ms_per_step"]
            row[f"share_of_attention_{side}_time"] = _share(value, whole[f"{side}_ms_per_step"])
            row[f"share_of_forward_{side}_time"] = _share(value, forward[side])
    if phase is not None:
        without = {"part": "forward without attention", "kind": "forward"}
        for side in ("gpu", "host"):
            without[f"{side}_ms_per_step"] = forward[side] - whole[f"{side}_ms_per_step"]
            without[f"share_of_forward_{side}_time"] = _share(without[f"{side}_ms_per_step"], forward[side])
        rows.append(without)
    return pd.DataFrame(rows).drop(columns=["range", "parent", "operator", "count", "count_per_step"])


def _share(part: float, whole: float | None) -> float | None:
    return part / whole if whole else None
