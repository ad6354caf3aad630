"""Figures of the attention study: time, memory, growth with the head dimension, rates."""

from stepscope.figures.attention.growth import draw_head_dimension, draw_memory, draw_time
from stepscope.figures.attention.rates import draw_rates

FIGURES = {
    "attention_time": draw_time,
    "attention_memory": draw_memory,
    "attention_head_dimension": draw_head_dimension,
    "attention_rates": draw_rates,
}
