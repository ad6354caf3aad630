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
        """Raise TypeError or ValueError, in one line, for what cannot be a part of a step."""
        for name, value in (("run", self.run), ("graph", self.graph)):
            if not callable(value) and (name == "run" or value is not None):
                raise TypeError(f"a step's {name} is {_kind(value)}; give a function")
        if self.module is not None and _lacks(self.module, "named_parameters"):
            raise TypeError(f"a step's module is {_kind(self.module)}; give a torch.nn.Module")
        for each in self.optimizers:
            if _lacks(each, "step"):
                raise TypeError(f"a step's optimizer is {_kind(each)}; give one, or a list")
        numbers = [] if self.flop is None else [self.flop]
        match self.items:
            case None:
                pass
            case (int() | float() as number, str()):
                numbers.append(number)
            case _:
                raise TypeError(f'a step\'s items are {_kind(self.items)}; write (8192, "tokens")')
        for number in numbers:
            if not _is_positive(number):
                told = f"a step's flop or items are {_kind(number)}"
                wanted = f"a number above 0, {MOST:.0e} at most"
                raise ValueError(f"{told}; give {wanted}, or leave out what is not known")

    @property
    def optimizers(self) -> list:
        """Those that it has."""
        given = self.optimizer
        several = given if isinstance(given, list | tuple) else [given]
        return [each for each in several if each is not None]


def _lacks(value: object, method: str) -> bool:
    """Whether it is no object that has a method."""
    return isinstance(value, type) or not callable(getattr(value, method, None))


def _kind(value: object) -> str:
    """What it is, in a few words."""
    return " ".join(repr(value).split())[:80]


def _is_positive(number: object) -> bool:
    """Whether it is a number above 0, and none that no step reaches."""
    if not isinstance(number, int | float) or isinstance(number, bool):
        return False
    return 0 < number <= MOST


_NOTHING = nullcontext()
_around: Around | None = None
_NOT_PHASES = ("step", "rest")  # all of them together, and what lies outside
MOST_LETTERS = 60


def phase(name: str) -> AbstractContextManager:
    """A context manager around a phase of a step. It does nothing unless something records.

    Phases of one name add up; within each other the inner one counts; the rest is `rest`. Raises
    ValueError for what is no name, or that of something else.
    """
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"phase({name!r}): name it by a word or two, as phase('forward')")
    if name in _NOT_PHASES:
        raise ValueError(f"phase({name!r}): that is all phases together, or what lies outside")
    if len(name) > MOST_LETTERS:
        raise ValueError(f"phase({name[:20]!r}...): use at most {MOST_LETTERS} letters")
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
