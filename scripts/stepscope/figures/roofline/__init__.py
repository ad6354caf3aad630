"""Figures of the roofline: the phases of a training step, and attention."""

from stepscope.figures.roofline.attention import draw_roofline_attention
from stepscope.figures.roofline.phases import draw_roofline

FIGURES = {"roofline": draw_roofline, "roofline_attention": draw_roofline_attention}
