"""variants.csv: what each variant of a ladder is run with, and what it changes against the one that
it comes after."""

from collections.abc import Iterator

from stepscope.axes import PLAIN_STEP, is_step

from .cells import MeasuredCell, came_after, of_study
from .option_labels import LABELS, kind_of


def rows(cells: list[MeasuredCell]) -> list[dict]:
    """A row for each variant of each ladder of a model, measured or not."""
    return [row for cell in of_study(cells, "ladder") for row in _rows(cell)]


def _rows(cell: MeasuredCell) -> Iterator[dict]:
    """The rungs of a cell; of steps of one's own, whose options are none of ours, none."""
    if is_step(cell.spec):
        return
    after, statuses = came_after(cell), cell.statuses()
    options: dict[str, dict] = {}
    previous = ""
    for order, (name, variant) in enumerate(cell.variants.items()):
        own = {option: variant.get(option, plain) for option, plain in PLAIN_STEP.items()}
        before = options.get(after[name], PLAIN_STEP)
        status, why = statuses.get(name, ("", ""))
        if status == "ok" and why:  # what a model of one's own cannot have
            plain = {"attention": PLAIN_STEP["attention"]}
            own, before = own | plain, before | plain
        options[name] = own
        several = [option for option in PLAIN_STEP if own[option] != before[option]]
        several = several or ["precision"]
        if not after[name]:
            # The first of a ladder that starts at a later rung has changed all that this one had:
            # it is called by the one that it has its name of, or by the last.
            called = [option for option in several if str(own[option]) == name]
            several = called[:1] or several
        changed = several[0] if after[name] else several[-1]
        label = ", ".join(_label(option, own[option], name) for option in several)
        yield {
            **cell.key,
            "variant": name,
            "order": order,
            "after": after[name],
            # Each rung follows the one that it changes; asides leave from a rung further up.
            "is_aside": variant.get("after", "") != previous,
            "kind": kind_of(changed, own[changed]),
            "label": (cell.built_in or label) if label == "fp32" else label,
            "changed": changed,
            "before": before[changed] if after[name] else "",
            "value": own[changed],
            **own,
        }
        previous = name


def _label(option: str, value: str, name: str) -> str:
    """What a value of an option is called, in a variant of a name."""
    if option == "checkpoint":
        return f"checkpoint every {value}"
    return LABELS.get(kind_of(option, value), name)
