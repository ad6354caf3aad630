"""Nothing is compiled."""

from stepscope.model.about import About
from stepscope.model.compilation import Compilation

ABOUT = About(label="not compiled")
COMPILATION = Compilation(parts="")
