"""The whole model is compiled as one."""

from stepscope.model.about import About

from . import Compilation

ABOUT = About(
    label="whole model compiled",
    title="Compile the whole model",
    mechanism="Chains of elementwise operations become one kernel each.",
    recipe="`model.compile()`",
)
COMPILATION = Compilation(parts="model")
