"""A training step of one's own, and the phases that it marks. Standard library only: training
scripts import it."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

MOST = 1e18  # operations or items of a step
Around = Callable[[str], AbstractContextManager]  # from a name to what is entered around it


@dataclass(frozen=True)
class Step:
    """What the `build` function of a step returns; all but `run` is optional.

    run: one whole optimizer step, whatever it holds; it may return its loss. module, optimizer
    (or several, as a list): what memory is told apart by, and what is said of the step. items: of
    what a step takes how many, as (8192, "tokens"). flop: floating-point operations of a step;
    else they are counted. graph: the same step with inputs that stay in their place, to be captured
    as a CUDA graph; else `run` is tried.
    """

    run: Callable[[], object]
    module: Any = None
    optimizer: Any = None
    items: tuple[float, str] | None = None
    flop: float | None = None
    graph: Callable[[], object] | None = None

    def __post_init__(self) -> None:
        """Raise TypeError, in one line, for what cannot be a part of a step."""
        number = f"a number above 0, {MOST:.0e} at most"
        module, graph = self.module, self.graph
        parts = {
            "run": (callable(self.run), "a function"),
            "graph": (graph is None or callable(graph), "a function"),
            "module": (module is None or _has(module, "named_parameters"), "an nn.Module"),
            "optimizer": (all(_has(each, "step") for each in self.optimizers), "one, or a list"),
            "items": (self.items is None or _is_counted(self.items), '(8192, "tokens")'),
            "flop": (self.flop is None or _is_positive(self.flop), number),
        }
        for name, (is_right, wanted) in parts.items():
            if not is_right:
                shown = " ".join(repr(getattr(self, name)).split())[:80]
                raise TypeError(f"a step's {name} is {shown}; give {wanted}")

    @property
    def optimizers(self) -> list:
        """Those that it has."""
        given = self.optimizer
        several = given if isinstance(given, list | tuple) else [given]
        return [each for each in several if each is not None]


def _has(value: object, method: str) -> bool:
    """Whether it is an object that has a method."""
    return not isinstance(value, type) and callable(getattr(value, method, None))


def _is_counted(items: object) -> bool:
    match items:
        case (number, str()):
            return _is_positive(number)
    return False


def _is_positive(number: Any) -> bool:
    """Whether it is a number above 0, which True is not, and none that no step reaches."""
    return isinstance(number, int | float) and number is not True and 0 < number <= MOST


_NOTHING = nullcontext()
_around: Around | None = None
_NOT_PHASES = ("step", "rest")  # all of them together, and what lies outside
MOST_LETTERS = 60


def phase(name: str) -> AbstractContextManager:
    """A context manager around a phase of a step. It does nothing unless something records.

    Phases of one name add up; within each other the inner one counts; the rest is `rest`. Raises
    ValueError for what is no name, or that of something else.
    """
    is_name = isinstance(name, str) and name.strip() and name.isprintable()
    if not is_name or len(name) > MOST_LETTERS or name in _NOT_PHASES:
        raise ValueError(
            f"phase({name!r:.80}): name it by a word or two, as phase('forward'), of at most"
            f" {MOST_LETTERS} letters and none of {', '.join(_NOT_PHASES)}"
        )
    return _NOTHING if _around is None else _around(name)


@contextlib.contextmanager
def phases_seen_by(around: Around) -> Iterator[None]:
    """Within it each phase is entered through `around(name)`."""
    global _around
    before, _around = _around, around
    try:
        yield
    finally:
        _around = before
