"""Figures of the ladder study: the time of a step rung by rung, the rate over the rungs, checkpointing."""

from stepscope.figures.ladder.checkpoint import draw_checkpoint
from stepscope.figures.ladder.rates import draw_rates
from stepscope.figures.ladder.steps import draw_steps

FIGURES = {
    "ladder_steps": draw_steps,
    "ladder_rates": draw_rates,
    "ladder_checkpoint": draw_checkpoint,
}
