"""The ladder study's figures: what to see in them, the fixed parameters, and their alt text."""

from stepscope.report.data.ladder import Ladder, peak, rate, time
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.order import machine_labels

_WORDS = {
    "ladder_steps": (
        "Time of a training step, rung by rung: each bar is one change more than the bar above it. The parts are "
        "phases that wait for the device; the tick is the step that runs freely, its time stands beside the bar with "
        "the gain over the rung before. Bars below the gap vary one rung.",
        "Stacked bars of the time of forward, backward and optimizer, a bar a rung, a panel for each size and context.",
    ),
    "ladder_rates": (
        "Arithmetic rate over the rungs, on a logarithmic axis.",
        "TFLOP/s over the rungs, a line for each size and context.",
    ),
    "ladder_checkpoint": (
        "Left: peak memory of a step over k, measured and in closed form; none keeps all activations. Right: the same "
        "peaks over the time of the step, k beside each point; every block is computed once more, whatever k is.",
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
        name: Picture(name, f"{caption} {_marks(name, shown[name])}{_fixed(shown[name])}", other)
        for name, (caption, other) in _WORDS.items()
        if shown[name]
    }


def _marks(name: str, shown: list[Ladder]) -> str:
    """What the stairs, hollow points and ~ are, where there are any."""
    rungs, recomputed = [row for one in shown for row in one.rungs], [row for one in shown for row in one.checkpoints]
    timed = [row for row in (recomputed if name == "ladder_checkpoint" else rungs) if time(row)]
    words = ""
    if name == "ladder_rates":
        words += _STAIRS * any(formatting.known(row.get("peak_tflops")) for row in rungs)
        words += "Hollow: forward and backward alone. " * any(not time(row, "step") for row in timed)
    return words + "~: noisy. " * any(bool(row.get("noisy")) for row in timed)


def _fixed(shown: list[Ladder]) -> str:
    """Hardware and batch, for a caption's end."""
    batches = [formatting.count(batch) for batch in sorted({one.batch for one in shown})]
    machines = formatting.listing(machine_labels(one.hardware for one in shown), 3)
    return f"{machines}; batch {formatting.listing(batches, 3)}."
