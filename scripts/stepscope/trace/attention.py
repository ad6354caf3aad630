"""The parts of attention: what a step's ranges inside it took, on the host and on the GPU."""

import re

import pandas as pd

from stepscope.trace.attribution import Attribution
from stepscope.trace.phase_tables import is_operator

ATTENTION = re.compile(r"attention|self[_ ]?attn|mha|scaled_dot_product_attention|multi[_ ]?head.*", re.IGNORECASE)
LINEAR = re.compile(r"qkv|proj", re.IGNORECASE)


def attention_name(names: list[str]) -> str | None:
    """The name of the ranges that hold a whole attention; the shortest that fits."""
    fitting = [name for name in names if not is_operator(name) and ATTENTION.fullmatch(name)]
    return min(fitting, key=len) if fitting else None


def layers(found: Attribution) -> int | None:
    """Blocks of the model: how often a step, or its forward pass, opens an attention range; None without any."""
    trace = found.trace
    name = attention_name(sorted({trace.names[code] for code in trace.ranges["name"].unique()}))
    if name is None:
        return None
    count = int((trace.ranges["name"] == trace.names.index(name)).sum())
    return count // found.steps if count % found.steps == 0 else None


def attention(found: Attribution, table: pd.DataFrame, forward_gpu_ms: float | None, forward_host_ms: float | None):
    """The parts of attention in the forward pass, per step: those directly inside it, its linear part, and the rest.

    table: of ranges(). forward: the time of the phase that attention is in, per step. Empty without an attention range.
    """
    modules = table[~table["operator"].astype(bool)] if len(table) else table
    name = attention_name(list(modules["range"])) if len(modules) else None
    if name is None:
        return pd.DataFrame()
    keys = ["host_ms_per_step", "gpu_ms_per_step", "kernels_per_step"]
    whole = modules[modules["range"] == name].iloc[0]
    children = modules[modules["parent"] == name]
    linear = children[children["range"].str.contains(LINEAR)]
    rows = [("attention", "whole", whole)]
    rows += [(row["range"], "part", row) for _, row in children.iterrows()]
    rows.append(("outside these parts", "rest", whole[keys] - children[keys].sum()))
    if len(linear):
        rows.append(("linear (" + " + ".join(linear["range"]) + ")", "sum", linear[keys].sum()))
        rows.append(("attention without linear", "sum", whole[keys] - linear[keys].sum()))
    forward = {"gpu": forward_gpu_ms, "host": forward_host_ms}
    result = []
    for label, kind, row in rows:
        entry = {"part": label, "kind": kind} | {key: float(row[key]) for key in keys}
        for side in ("gpu", "host"):
            value = entry[f"{side}_ms_per_step"]
            entry[f"share_of_attention_{side}_time"] = _share(value, whole[f"{side}_ms_per_step"])
            entry[f"share_of_forward_{side}_time"] = _share(value, forward[side])
        result.append(entry)
    if forward_gpu_ms is not None:
        without = {"part": "forward without attention", "kind": "forward"}
        for side in ("gpu", "host"):
            without[f"{side}_ms_per_step"] = forward[side] - whole[f"{side}_ms_per_step"]
            without[f"share_of_forward_{side}_time"] = _share(without[f"{side}_ms_per_step"], forward[side])
        result.append(without)
    return pd.DataFrame(result)


def _share(part: float, whole: float | None) -> float | None:
    return part / whole if whole else None
