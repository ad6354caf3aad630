"""The variants of a ladder's cell: their options, what each changes, and which are its rungs."""

import json
import shlex
from dataclasses import dataclass

from stepscope.axes import PLAIN_STEP
from stepscope.model.about import About, TakesAway
from stepscope.report.kit.page import Name
from stepscope.results.option_labels import ABOUT, kind_of


@dataclass(frozen=True, kw_only=True)
class Change:
    """A variant by what it changes.

    kind: what its new value is called among those of all options: `tf32`, `sdpa`, `checkpoint 2` …
    after: the variant that it is made on. is_aside: it varies a rung, and no rung stands on it.
    takes_away: of the step before it, by which its gain is predicted.
    """

    name: Name
    variant: str
    kind: str
    precision: str
    after: str
    is_aside: bool
    takes_away: TakesAway

    @property
    def about(self) -> About:
        """What the value that it changes says of itself; of a number of blocks no more than its
        name."""
        return ABOUT.get(self.kind) or About(label=str(self.name), title=str(self.name))

    @property
    def fuses_attention(self) -> bool:
        """Whether it stands in place of attention that writes its scores out."""
        return self.takes_away == "scores"


def declared(command: str) -> list[dict]:
    """The variants that a cell's command names, with their options that are not neutral."""
    words = shlex.split(command or "")
    return json.loads(words[words.index("--variants") + 1]) if "--variants" in words[:-1] else []


def options_of(variant: dict) -> dict:
    """All options of a declared variant."""
    return PLAIN_STEP | {name: variant[name] for name in PLAIN_STEP if name in variant}


def changes(variants: list[dict]) -> dict[str, Change]:
    """Each variant by its name, in their order."""
    after = {each["name"]: each.get("after", "") for each in variants}
    options = {each["name"]: options_of(each) for each in variants}
    rungs = _longest_way(after)
    made = {}
    for name, own in options.items():
        based = options.get(after[name], PLAIN_STEP)
        option = _changed(own, based) if after[name] else _changed_of_first(own, name)
        kind = kind_of(option, own[option])
        made[name] = Change(
            name=Name(_label(option, own[option], name)),
            variant=name,
            kind=kind,
            precision=own["precision"],
            after=after[name],
            is_aside=name not in rungs,
            takes_away=_taken_away(kind, based),
        )
    return made


def _changed(options: dict, based: dict) -> str:
    changed = (name for name in PLAIN_STEP if options[name] != based[name])
    return next(changed, "precision")


def _changed_of_first(options: dict, name: str) -> str:
    """A ladder that starts at a later rung is called by that, else by its last option."""
    changed = [each for each in PLAIN_STEP if options[each] != PLAIN_STEP[each]] or ["precision"]
    called = [each for each in changed if str(options[each]) == name]
    return called[0] if called else changed[-1]


def _label(option: str, value: str | int, name: str) -> str:
    if option == "checkpoint":
        return f"checkpoint every {value}"
    kind = kind_of(option, value)
    return ABOUT[kind].label if kind in ABOUT else name


def _taken_away(kind: str, based: dict) -> TakesAway:
    """One fused attention in place of another takes no scores away."""
    taken = ABOUT[kind].takes_away if kind in ABOUT else ""
    had_scores = ABOUT[str(based["attention"])].takes_away != "scores"
    return taken if had_scores or taken != "scores" else ""


def _longest_way(after: dict[str, str]) -> list[str]:
    """The rungs: the longest way from the first variant along `after`; what branches off is an
    aside."""
    ways: dict[str, list[str]] = {}
    for name, before in after.items():
        ways[name] = [*ways.get(before, []), name]
    return max(ways.values(), key=len)
