"""Figures of the attention study: time, memory, growth with the head dimension, rates."""

from stepscope.figures.attention.head_dimension import draw_head_dimension
from stepscope.figures.attention.memory import draw_memory
from stepscope.figures.attention.rates import draw_rates
from stepscope.figures.attention.time import draw_time

FIGURES = {
    "attention_time": draw_time,
    "attention_memory": draw_memory,
    "attention_head_dimension": draw_head_dimension,
    "attention_rates": draw_rates,
}
