"""variants.csv: what each variant of a ladder is run with, and what it changes against the one that
it comes after."""

from collections.abc import Iterator

from stepscope.axes import PLAIN_STEP, is_step
from stepscope.results.cells import MeasuredCell, came_after
from stepscope.results.option_labels import LABELS, kind_of


def rows(cells: list[MeasuredCell]) -> list[dict]:
    """A row for each variant of each cell that runs a model in several, measured or not."""
    return [row for cell in cells for row in _rows(cell)]


def _rows(cell: MeasuredCell) -> Iterator[dict]:
    """The rungs of a cell."""
    if cell.place["study"] != "ladder" or is_step(cell.spec):
        return
    declared = cell.spec["variants"]
    builds_on = {one["name"]: one.get("after", "") for one in declared}
    after = came_after(cell.spec, cell.statuses())
    options = {
        one["name"]: {option: one.get(option, neutral) for option, neutral in PLAIN_STEP.items()}
        for one in declared
    }
    # Of a model of one's own: what it cannot have, as an outcome that is ok says.
    plain = {"attention": PLAIN_STEP["attention"]}
    without = [name for name, (status, why) in cell.statuses().items() if status == "ok" and why]
    options |= {name: options[name] | plain for name in without if name in options}
    previous = ""
    for order, (name, own) in enumerate(options.items()):
        is_first = not after[name]
        before = options.get(after[name], PLAIN_STEP) | (plain if name in without else {})
        several = [option for option in PLAIN_STEP if own[option] != before[option]]
        several = several or ["precision"]
        # The first of a ladder that starts at a later rung has changed all that this one had: it is
        # called by the last, or by the one that it has its name of.
        called = [option for option in several if str(own[option]) == name]
        changed = (called or several[-1:])[0] if is_first else several[0]
        shown = [changed] if is_first and called else several
        label = ", ".join(_label(option, own[option], name) for option in shown)
        yield {
            **cell.key,
            "variant": name,
            "order": order,
            "after": after[name],
            # Each rung follows the one that it changes; asides leave from a rung further up.
            "is_aside": builds_on[name] != previous,
            "kind": kind_of(changed, own[changed]),
            "label": (cell.built_in or label) if label == "fp32" else label,
            "changed": changed,
            "before": "" if is_first else before[changed],
            "value": own[changed],
            **own,
        }
        previous = name


def _label(option: str, value: str, name: str) -> str:
    """What a value of an option is called, in a variant of a name."""
    if option == "checkpoint":
        return f"checkpoint every {value}"
    return LABELS.get(kind_of(option, value), name)
