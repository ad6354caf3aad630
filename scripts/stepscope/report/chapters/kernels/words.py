"""What the chapter's sentences share: how a step is named, ranges, and a ratio with what may be said of it."""

from collections.abc import Iterable

from stepscope.report.data.ladder import shared_phase
from stepscope.report.data.step_parts import work
from stepscope.report.kit import formatting
from stepscope.report.kit.compare import interval_text
from stepscope.report.kit.finding import Number
from stepscope.report.studies.page_one.changes import Change


def place(row: dict) -> str:
    """`2.7B at context 256`."""
    return f"{row['size']} at context {row['context']:,.0f}"


def cells(rows: Iterable[dict]) -> tuple[str, ...]:
    return tuple(row["cell"] for row in rows)


def steps(rows: list[dict]) -> str:
    """`1 step`, `8 steps`: of how many a range is."""
    return "1 step" if len(rows) == 1 else f"{len(rows):,} steps"


def of_range(values: Iterable[float], rows: Iterable[dict], digits: int = 3) -> Number:
    """A range over these cells."""
    return Number(list(values), cells(rows), lambda own: formatting.value_range(own, digits))


def percents(shares: Iterable[float], rows: Iterable[dict]) -> Number:
    """A range of shares of one."""
    return Number(list(shares), cells(rows), lambda own: f"{formatting.value_range([100 * each for each in own], 2)} %")


def gain(made: Change) -> Number:
    """`× 1.30 [1.28, 1.33], faster`; `× 1.30, once measured`; or no verdict, where two processes disagree."""
    return Number(made.speed.ratio, made.cells, lambda ratio: formatting.times(ratio) + _said(made))


def _said(made: Change) -> str:
    if made.speed.has_interval:
        return f" {interval_text(made.speed)}, {made.speed.verdict}"
    return doubts(made) if is_once_measured(made) else f", no verdict{doubts(made)}"


def doubts(made: Change) -> str:
    """`, once measured, throttled`: that a single process measured each rung, or the GPU lowered its clocks for one."""
    rows = (made.row, made.ladder.at(made.row.get("compared_with")) or {})
    is_throttled = any(isinstance(row.get("throttle"), str) and row["throttle"] for row in rows)
    return ", once measured" * is_once_measured(made) + ", throttled" * is_throttled


def is_once_measured(made: Change) -> bool:
    """Whether a single process measured each of both rungs."""
    rows, phase = (made.row, made.ladder.at(made.row.get("compared_with")) or {}), phase_of(made)
    return all((row.get(f"{phase}_processes") or 1) <= 1 for row in rows)


def phase_of(made: Change) -> str:
    """The phase that both rungs have a time of: `step`, else `forward_backward`."""
    return shared_phase(made.row, made.ladder.at(made.row.get("compared_with"))) or "step"


def where(made: Change) -> str:
    """`medium at 512`, or `medium at 512, forward+backward` where the whole step does not fit."""
    return made.place + ", forward+backward" * (phase_of(made) != "step")


def work_of(made: Change) -> float:
    """Parameters × context of a change's ladder, 0 where they are not known."""
    return work(made.ladder.parameters, made.ladder.context)[0]
