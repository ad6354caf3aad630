"""The values of options as the table of terms needs them: those of this project by what their
modules say of themselves, others from `terms.toml`. Standard library only."""

import functools
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from stepscope.model.about import Attention, Loss, Optimizer, Precision
from stepscope.model.chosen import PACKAGES, about, names
from stepscope.model.formats import FORMATS


class Row(NamedTuple):
    """A tensor of the table; see its head."""

    module: str
    name: str
    op: str
    dims: str
    dtype: str
    when: str


def _terms() -> dict[str, Any]:
    """The table, with the rows of groups that are made of others."""
    text = Path(__file__).with_name("terms.toml").read_text(encoding="utf-8")
    terms = tomllib.loads(text)
    groups = terms["groups"]
    for known in groups.values():
        known["tensors"] = [Row(*row) for row in known.get("tensors", ())]
        for source in known.get("of", ()):
            for row in groups[source]["tensors"]:
                name, dtype = f"{row.name} {known['name']}", known.get("type", row.dtype)
                known["tensors"].append(row._replace(name=name, dtype=dtype))
    return terms


TERMS = _terms()
DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "uint8": 1}


@dataclass(frozen=True, kw_only=True)
class Value:
    """flags: what conditions in the table ask for. types: what the table's own types stand for.
    rates: the precisions whose rate the products of blocks have, and all else. state, workspace:
    rows of an optimizer."""

    label: str
    flags: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    rates: list[str] = field(default_factory=list)
    state: list[list[str]] = field(default_factory=list)
    workspace: list[list[str]] = field(default_factory=list)


def values(option: str) -> list[str]:
    """All values of an option of which the closed form can know something."""
    own = names(option) if option in PACKAGES else []
    return [*own, *TERMS["options"].get(option, {})]


@functools.cache
def value(option: str, name: str) -> Value:
    """What a value of an option is to the table.

    Raises ValueError where there is no such value, or for an optimizer that does not say what it
    keeps.
    """
    others = TERMS["options"].get(option, {})
    if name in others:
        return Value(**others[name])
    if option not in PACKAGES:
        raise ValueError(f"no {option} {name!r}; there are: {', '.join(values(option))}")
    says = about(option, name)
    if isinstance(says, Precision):
        return _precision(name, says)
    if isinstance(says, Optimizer):
        return _optimizer(name, says)
    is_set = {"compiled": name != "none", "graphs": name == "graphs"}
    if isinstance(says, Attention):
        is_set = {says.keeps: True, "masked": says.masks_window}
    if isinstance(says, Loss):
        is_set = {says.keeps: True, "fused-loss": says.is_fused}
    return Value(label=says.label, flags=_flags(is_set))


def _flags(is_set: dict[str, bool]) -> list[str]:
    return [flag for flag, is_there in is_set.items() if is_there]


def _precision(name: str, says: Precision) -> Value:
    """Weights and moments are fp32 in all precisions of this project."""
    runs = FORMATS[name]
    is_set = {
        "autocast": runs.is_autocast,
        "16-bit": DTYPE_BYTES[runs.dtype] == 2,
        name: bool(runs.outside),
    }
    return Value(
        label=says.label,
        flags=_flags(is_set),
        types={"low": runs.dtype} | dict.fromkeys(("weight", "state", "stream", "kept"), "float32"),
        rates=[name, runs.outside or name],
    )


def _optimizer(name: str, says: Optimizer) -> Value:
    """What it keeps of each parameter, and needs in a step besides; of PyTorch's fused AdamW not
    the step count of each parameter."""
    if says.state is None or says.workspace is None:
        raise ValueError(f"optimizer {name}: its state is not known to the closed form")
    state = [_row("moments", f"{says.state} × parameters")] if says.state else []
    workspace = [_row("denominators", says.workspace)] if says.workspace else []
    return Value(label=says.label, state=state, workspace=workspace)


def _row(name: str, dims: str) -> list[str]:
    return ["optimizer", name, "", dims, "state", ""]
