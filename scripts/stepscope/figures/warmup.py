"""Figures of the warm-up study; each is drawn in a module of its own, warmup_*.py."""

from stepscope.figures.warmup_first_step import draw_first_step
from stepscope.figures.warmup_means import draw_means
from stepscope.figures.warmup_steps import draw_steps

FIGURES = {
    "warmup_means": draw_means,
    "warmup_steps": draw_steps,
    "warmup_first_step": draw_first_step,
}
