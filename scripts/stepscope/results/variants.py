"""variants.csv: what each variant of a ladder is run with, and what it changes against the one that
it comes after."""

from collections.abc import Iterator

from stepscope.axes import PLAIN_STEP, is_step
from stepscope.results.cells import MeasuredCell
from stepscope.results.option_labels import LABELS, kind_of


def rows(cells: list[MeasuredCell]) -> list[dict]:
    """A row for each variant of each cell that runs a model in several, measured or not."""
    return [row for cell in cells for row in _rows(cell)]


def asides(cells: list[MeasuredCell]) -> set[tuple[str, str]]:
    """(cell, variant) of those that stand beside their ladder."""
    return {(row["cell"], row["variant"]) for row in rows(cells) if row["is_aside"]}


def _rows(cell: MeasuredCell) -> Iterator[dict]:
    """The rungs of a cell."""
    is_ladder = cell.place["study"] == "ladder" and not is_step(cell.spec)
    declared = cell.spec.get("variants", []) if is_ladder else []
    after = {one["name"]: one.get("after", "") for one in declared}
    ladder = longest_chain(after)
    options = {one["name"]: _options(one) for one in declared}
    # Of a model of one's own: what it cannot have, as an outcome that is ok says.
    plain = {"attention": PLAIN_STEP["attention"]}
    without = [name for name, (status, why) in cell.statuses().items() if status == "ok" and why]
    options |= {name: options[name] | plain for name in without if name in options}
    for order, name in enumerate(after):
        before = options.get(after[name], PLAIN_STEP) | (plain if name in without else {})
        changed = _changed(name, options[name], before, is_first=not after[name])
        value = options[name][changed]
        kind = kind_of(changed, value)
        several = [option for option in PLAIN_STEP if options[name][option] != before[option]]
        labels = [_label(option, options[name][option], name) for option in several]
        label = ", ".join(labels)
        is_later_rung = not after[name] and str(value) == name  # of another ladder
        if is_later_rung or not label:
            label = _label(changed, value, name)
        yield {
            **cell.key,
            "variant": name,
            "order": order,
            "after": after[name],
            "is_aside": name not in ladder,
            "kind": kind,
            "label": label,
            "changed": changed,
            "before": before[changed] if after[name] else "",
            "value": value,
            **options[name],
        }


def _label(option: str, value: str, name: str) -> str:
    """What a value of an option is called, in a variant of a name."""
    is_checkpoint = option == "checkpoint"
    return (
        f"checkpoint every {value}" if is_checkpoint else LABELS.get(kind_of(option, value), name)
    )


def _options(declared: dict) -> dict:
    """All options of a variant, of which its spec lacks the neutral ones."""
    return {name: declared.get(name, plain) for name, plain in PLAIN_STEP.items()}


def _changed(name: str, options: dict, before: dict, *, is_first: bool) -> str:
    """The option that a variant changes. The first of a ladder that starts at a later rung has
    changed all that this one had: it is called by the last."""
    found = [option for option in PLAIN_STEP if options[option] != before[option]]
    found = found or ["precision"]
    if not is_first:
        return found[0]
    called = [option for option in found if str(options[option]) == name]
    return called[0] if called else found[-1]


def longest_chain(after: dict[str, str]) -> list[str]:
    """The rungs: the longest way from the first variant along `after` (variant: the one that it
    comes after); what branches off it is an aside."""
    ways: dict[str, list[str]] = {}
    for name, previous in after.items():
        ways[name] = [*ways.get(previous, []), name]
    return max(ways.values(), key=len, default=[])
