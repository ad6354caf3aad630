"""Figures of the attention study; each is drawn in a module of its own, attention_*.py."""

from stepscope.figures.attention_head_dimension import draw_head_dimension
from stepscope.figures.attention_memory import draw_memory
from stepscope.figures.attention_rates import draw_rates
from stepscope.figures.attention_time import draw_time

FIGURES = {
    "attention_time": draw_time,
    "attention_memory": draw_memory,
    "attention_head_dimension": draw_head_dimension,
    "attention_rates": draw_rates,
}
