"""What options of a step are set to, as people call it: in figures and on pages."""

from stepscope.model.about import About
from stepscope.model.chosen import PACKAGES, about, names

# Options whose values are words that another option has, too: their name stands in front.
_NAMED = ("checkpoint", "loss")


def kind_of(option: str, value: str | int) -> str:
    """What a value is called among those of all options: `sdpa`, `checkpoint 2`, `loss torch`."""
    return f"{option} {value}" if option in _NAMED else str(value)


# The kind of a change -> what its value says of itself.
ABOUT: dict[str, About] = {}
for _option in PACKAGES:
    ABOUT |= {kind_of(_option, _name): about(_option, _name) for _name in names(_option)}
LABELS = {kind: said.label for kind, said in ABOUT.items()}
