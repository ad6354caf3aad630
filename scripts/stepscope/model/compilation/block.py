"""Each block is compiled by itself: the compiler sees one of them, and its code serves all."""

from stepscope.model.about import About

from . import Compilation

ABOUT = About(
    label="blocks compiled",
    title="Compile the blocks",
    mechanism="Chains of elementwise operations become one kernel each.",
    recipe="`for block in model.blocks: block.compile()`",
)
COMPILATION = Compilation(parts="blocks")
