"""A training step of one's own, and the phases that it marks. Standard library only: training
scripts import it."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

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


_NOTHING = nullcontext()
_around: Around | None = None


def phase(name: str) -> AbstractContextManager:
    """A context manager around a phase of a step. It does nothing unless something records.

    Phases of one name add up; within each other the inner one counts; the rest is `rest`.
    """
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
