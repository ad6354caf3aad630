"""The warm-up study's figures: what to see in them, the fixed parameters, and their alt text."""

from stepscope.report.data.warmup import CLOSE, Warmups, profiled_points
from stepscope.report.kit import formatting
from stepscope.report.kit.blocks import Picture
from stepscope.report.kit.order import ordered

_WORDS = {
    "warmup_means": (
        "What a benchmark gets, over the number of warm-up steps: the mean as a multiple of the steady state, "
        "with ± 5 % shaded, and the standard deviation as a share of the mean. Both axes of values are logarithmic. "
        "One slow first step is in a mean of {steps} steps unless it is warmed away.{unsettled}",
        "Line charts of the mean over the steady state and of the standard deviation over the mean, by the number of "
        "warm-up steps, a panel for each size, a line for each phase.",
    ),
    "warmup_steps": (
        "Time over the step's index, from the first step of the process on. Lines are medians over the processes, "
        "which the bands span; dotted, the steady state of the whole step. Time is logarithmic.",
        "Line charts of the time of forward, backward, optimizer and the whole step over the step's index, a panel for "
        "each size.",
    ),
    "warmup_first_step": (
        "What the first step takes longer than a steady one, by part, under the profiler; what is left of zero was "
        "faster in the first step. The diamond is the same difference without a profiler.",
        "Stacked bars of the first step's excess over a steady step, by part, a bar for each size.",
    ),
}


def pictures(warmups: Warmups) -> dict[str, Picture]:
    """The figures by name; none where nothing was measured."""
    if not warmups.measured:
        return {}
    fixed = [formatting.listing(warmups.hardware, 3)]
    for name, words in (("context", "context"), ("precision", ""), ("batch", "batch"), ("vocab_size", "vocabulary")):
        values = ordered(warmups.cells[name])
        texts = [value if isinstance(value, str) else f"{value:,.0f}" for value in values]
        fixed += [f"{words} {', '.join(texts)}".strip()] if texts else []
    is_unsure = any(not point.is_settled for setting in warmups.measured for point in setting.measured)
    wide = f" Where the steady state is not known to within ± {formatting.percent(CLOSE, 1)}, its interval is said."
    unsettled = wide * is_unsure
    is_drawn = {"warmup_first_step": any(profiled_points(setting) for setting in warmups.settings)}
    return {
        name: Picture(name, f"{caption.format(steps=warmups.steps, unsettled=unsettled)} {'; '.join(fixed)}.", other)
        for name, (caption, other) in _WORDS.items()
        if is_drawn.get(name, True)
    }
