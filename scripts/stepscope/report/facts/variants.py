"""The variants of a ladder's cell: their options, what each changes, and which are its rungs."""

import json
import shlex
from dataclasses import dataclass

from stepscope.axes import NEUTRAL
from stepscope.report.kit.page import Name
from stepscope.results.option_labels import LABELS

CHANGED = ("attention", "compile", "optimizer", "checkpoint")
PLAIN = {"precision": "fp32"} | {name: NEUTRAL[name] for name in CHANGED}
FUSED_ATTENTION = ("sdpa", "flex", "triton")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A variant by what it changes.

    kind: the value of the option that it changes: `tf32`, `sdpa`, `block`, `checkpoint 2` …
    after: the variant that it is made on. is_aside: it varies a rung, and no rung stands on it.
    fuses_attention: in place of naive attention.
    """

    name: Name
    variant: str
    kind: str
    precision: str
    after: str
    is_aside: bool
    fuses_attention: bool


def declared(command: str) -> list[dict]:
    """The variants that a cell's command names, with their options that are not neutral."""
    words = shlex.split(command or "")
    return json.loads(words[words.index("--variants") + 1]) if "--variants" in words[:-1] else []


def options_of(variant: dict) -> dict:
    """All options of a declared variant."""
    return PLAIN | {name: variant[name] for name in PLAIN if name in variant}


def changes(variants: list[dict]) -> dict[str, Change]:
    """Each variant by its name, in their order."""
    after = {each["name"]: each.get("after", "") for each in variants}
    options = {each["name"]: options_of(each) for each in variants}
    rungs = _longest_way(after)
    made = {}
    for name, own in options.items():
        based = options.get(after[name], PLAIN)
        kind = _kind(own, based) if after[name] else _kind_of_first(own, name)
        made[name] = Change(
            name=Name(_label(kind, name)),
            variant=name,
            kind=kind,
            precision=own["precision"],
            after=after[name],
            is_aside=name not in rungs,
            fuses_attention=kind in FUSED_ATTENTION and based["attention"] == "naive",
        )
    return made


def _kind(options: dict, based: dict) -> str:
    changed = [name for name in PLAIN if options[name] != based[name]]
    return _value(options, changed[0] if changed else "precision")


def _kind_of_first(options: dict, name: str) -> str:
    """A ladder that starts at a later rung is called by that, else by its last option."""
    changed = [each for each in PLAIN if options[each] != PLAIN[each]] or ["precision"]
    called = [each for each in changed if str(options[each]) == name]
    return _value(options, called[0] if called else changed[-1])


def _value(options: dict, name: str) -> str:
    return f"checkpoint {options[name]}" if name == "checkpoint" else str(options[name])


def _label(kind: str, name: str) -> str:
    if kind.startswith("checkpoint"):
        return f"checkpoint every {kind.split()[1]}"
    return LABELS.get(kind, name)


def _longest_way(after: dict[str, str]) -> list[str]:
    """The rungs: the longest way from the first variant along `after`; what branches off is an
    aside."""
    ways: dict[str, list[str]] = {}
    for name, before in after.items():
        ways[name] = [*ways.get(before, []), name]
    return max(ways.values(), key=len)
