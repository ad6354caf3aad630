"""What options of a step are set to, as people call it: in figures and on pages."""

from stepscope.model.about import About
from stepscope.model.chosen import PACKAGES, about, names

# Options whose values are words that another option has, too: their name stands in front.
_NAMED = ("checkpoint", "loss")


def kind_of(option: str, value: str | int) -> str:
    """What a value is called among those of all options: `sdpa`, `checkpoint 2`, `loss torch`."""
    return f"{option} {value}" if option in _NAMED else str(value)


def _every() -> dict[str, About]:
    """What each implementation that can be chosen says of itself, by its kind."""
    found = {}
    for option in PACKAGES:
        for name in names(option):
            found[kind_of(option, name)] = about(option, name)
    return found


# The kind of a change -> what its value says of itself.
ABOUT = _every()
LABELS = {kind: said.label for kind, said in ABOUT.items()}
