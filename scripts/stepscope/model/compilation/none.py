"""Nothing is compiled."""

from stepscope.model.about import About

from . import Compilation

ABOUT = About(label="not compiled")
COMPILATION = Compilation(parts="")
