"""Figures of the precision study: growing sums, what autocast does, mixed precision over the timing grid."""

from stepscope.figures.precision.accumulation import draw_accumulation
from stepscope.figures.precision.forced import draw_forced
from stepscope.figures.precision.speedup import draw_speedup

FIGURES = {
    "precision_accumulation": draw_accumulation,
    "precision_forced": draw_forced,
    "precision_speedup": draw_speedup,
}
