"""Compiled blocks, whose forward and backward pass are each replayed from a CUDA graph."""

from stepscope.model.about import About

from . import Compilation

ABOUT = About(
    label="CUDA graphs",
    title="Replay CUDA graphs",
    mechanism="Forward and backward become a launch each.",
    recipe="`torch.cuda.make_graphed_callables(model, (tokens,))`, under"
    " `autocast(..., cache_enabled=False)`",
    takes_away="host",
)
COMPILATION = Compilation(parts="blocks", replays=True)
