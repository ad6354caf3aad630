"""The precisions by name, the widest first: what is said of each, and what runs under its name.
Standard library only."""

from stepscope.model.about import Precision
from stepscope.model.chosen import names, said
from stepscope.model.precisions import Format

# By the bytes of an element, then by name, in which order they come.
_FORMATS = {name: said("precision", name, Format) for name in names("precision")}
FORMATS = dict(sorted(_FORMATS.items(), key=lambda one: -one[1].bytes))

PRECISIONS = {name: said("precision", name, Precision) for name in FORMATS}
