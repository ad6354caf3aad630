"""Figures of the timing study: growth with size and context, the split into phases, samples."""

from stepscope.figures.timing.growth import draw_by_context, draw_by_size
from stepscope.figures.timing.phases import draw_phases
from stepscope.figures.timing.samples import draw_distribution, draw_samples

FIGURES = {
    "timing_by_size": draw_by_size,
    "timing_by_context": draw_by_context,
    "timing_phases": draw_phases,
    "timing_samples": draw_samples,
    "timing_distribution": draw_distribution,
}
