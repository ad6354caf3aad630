"""The precisions by name, the widest first: what is said of each, and what runs under its name.
Standard library only."""

from .about import Precision
from .chosen import names, said
from .precisions import Format

# By the bytes of an element, then by name, in which order they come.
_FORMATS = {name: said("precision", name, Format) for name in names("precision")}
FORMATS = dict(sorted(_FORMATS.items(), key=lambda one: -one[1].bytes))

PRECISIONS = {name: said("precision", name, Precision) for name in FORMATS}
