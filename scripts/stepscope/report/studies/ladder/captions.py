"""The ladder study's figures: what to see in them, the fixed parameters, and their alt text."""

from stepscope.report.data.ladder import Ladder, peak, rate, recomputed, time
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.order import machine_labels

_WORDS = {
    "ladder_steps": (
        "Time of a training step, rung by rung: each bar is one change more than the bar above it. The parts are "
        "phases timed one by one; the tick is a step that runs freely, as in a training, and beside the bar stand its "
        "time and its gain over the rung before, with the 95 % interval where there is one.",
        "Stacked bars of the time of forward, backward and optimizer, a bar a rung, a panel for each size and context.",
    ),
    "ladder_rates": (
        "Arithmetic rate over the rungs, on a logarithmic axis.",
        "TFLOP/s over the rungs, a line for each size and context.",
    ),
    "ladder_checkpoint": (
        "Left: peak memory of a step with a checkpoint every k blocks, measured{of_process} and in closed form"
        "{of_tensors}; √(n b / a) is the k with the lowest peak by the rule. Right: the measured peaks over the time "
        "of a step, k beside each point. Every block is computed once more, whatever k is; none keeps all activations "
        "and computes nothing twice{base}.",
        "Peak memory over k, and over the time of a step, for each size and context with checkpointing.",
    ),
}
_STAIRS = "The stairs are the peak of the data sheet in each rung's precision: the distance to them is the MFU. "


def pictures(found: list[Ladder]) -> dict[str, Picture]:
    """The figures by name; none where nothing was measured."""
    shown = {
        "ladder_steps": [one for one in found if any(time(row) for row in one.rows)],
        "ladder_rates": [one for one in found if any(formatting.known(rate(row, "tflops")) for row in one.rungs)],
        "ladder_checkpoint": [one for one in found if any(peak(row) for row in one.checkpoints)],
    }
    return {
        name: Picture(name, f"{_filled(caption, shown[name])} {_marks(name, shown[name])}{_fixed(shown[name])}", other)
        for name, (caption, other) in _WORDS.items()
        if shown[name]
    }


def _filled(caption: str, shown: list[Ladder]) -> str:
    """The caption, which says what was measured where that is not what the closed form is of."""
    groups = recomputed(shown)
    kinds = {one.is_of_tensors for one in groups}
    return caption.format(
        of_process=" of the whole process" * (kinds == {False}) + " (on a CPU of the whole process)" * (len(kinds) > 1),
        of_tensors=" of its tensors alone" * (kinds == {False}),
        base=" (hollow)" if any(one.base for one in groups) else "",
    )


def _marks(name: str, shown: list[Ladder]) -> str:
    """What the stairs, hollow points and ~ are, where there are any."""
    rungs, grouped = [row for one in shown for row in one.rungs], [row for one in shown for row in one.checkpoints]
    timed = [row for row in (grouped if name == "ladder_checkpoint" else rungs) if time(row)]
    words = "Bars below the gap vary one rung. " * (name == "ladder_steps" and any(one.wholes for one in shown))
    if name == "ladder_rates":
        words += _STAIRS * any(formatting.known(row.get("peak_tflops")) for row in rungs)
        words += "Hollow: forward and backward alone. " * any(not time(row, "step") for row in timed)
    return words + "~: noisy. " * any(bool(row.get("noisy")) for row in timed)


def _fixed(shown: list[Ladder]) -> str:
    """Hardware and batch, for a caption's end."""
    batches = [formatting.count(batch) for batch in sorted({one.batch for one in shown})]
    machines = formatting.listing(machine_labels(one.hardware for one in shown), 3)
    return f"{machines}; batch {formatting.listing(batches, 3)}."
