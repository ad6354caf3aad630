"""Figures of the warm-up study: steps from the first on, what so many warm-up steps give, what the first contains."""

from stepscope.figures.warmup.first_step import draw_first_step
from stepscope.figures.warmup.means import draw_means
from stepscope.figures.warmup.steps import draw_steps

FIGURES = {
    "warmup_means": draw_means,
    "warmup_steps": draw_steps,
    "warmup_first_step": draw_first_step,
}
