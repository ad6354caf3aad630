"""What to doubt in page one: cells that are missing or old, clocks that are known badly, formats
that compute something else."""

from stepscope.report.facts import ladder as climbing
from stepscope.report.facts import method
from stepscope.report.facts.ladders import Ladder
from stepscope.report.facts.machine import Place
from stepscope.report.facts.rungs import Rung
from stepscope.report.facts.timed import Timed, in_bf16
from stepscope.report.kit.data import Data, Row
from stepscope.report.kit.named import first_of, frozen
from stepscope.report.kit.quantity import Maybe, Quantity, count, joined, value_of

LOOSE = 0.1  # half an interval that a reader should be told of
MOST = 3  # that are told


@frozen
class Doubts:
    """Of page one's ladder and of all cells.

    told: those that weigh most, of those that there are. planned: cells; missing: of them; older:
    those that other code measured; at_once: on how many GPUs they ran at a time. trained: the
    coarse rung's precision as the learning study trained it. slower: what the card does slower
    than all others of its type that are known, of several. loosest: half the widest interval of a
    rung, of its step, where that is wide; loosest_rung: that rung. hosts: the plain step that
    launches limit which is known worst by the clock.
    """

    told: list[str]
    planned: Maybe
    missing: Maybe
    older: Maybe
    at_once: Maybe
    trained: Row | None
    slower: Row | None
    loosest: Maybe
    loosest_rung: Rung | None
    hosts: Timed | None


def doubts(data: Data, ladder: Ladder | None, elsewhere: Place | None) -> Doubts:
    """elsewhere: where the kernels were profiled, if not at the ladder's place."""
    cells = data.dicts("cells")
    climbed = climbing.facts(data)
    standing = [row for row in method.beside_others(data) if row["standing"] == "slower"]
    slower = first_of(row for row in standing if value_of(row["cards"]) > 1)
    rung = max(ladder.rungs if ladder else (), key=_half_width, default=None)
    width = _half_width(rung) if rung else 0.0
    cells_of = joined(rung.step) if rung else ()
    loosest = Quantity(width, "share", cells=cells_of) if width > LOOSE else None
    limited = in_bf16(data, limits="launches")
    loose = [each for each in limited if _half_width(each) > LOOSE]
    missing = _some([row for row in cells if row["status"] == "missing"])
    ran = [row for row in cells if row["status"] == "ok"]
    found = Doubts(
        told=[],
        planned=count(len(cells)),
        missing=missing,
        older=_some([row for row in ran if not row["is_current"]]),
        at_once=method.at_once(cells),
        trained=climbed.trained if climbed else None,
        slower=slower,
        loosest=loosest,
        loosest_rung=rung,
        hosts=max(loose, key=_half_width, default=None),
    )
    weights = {
        "missing": found.missing,
        "older": found.older,
        "loose": loosest,
        "coarse": ladder and ladder.top_is_coarse,
        "card": slower,
        "together": found.at_once,
        "hosts": None if loosest else found.hosts,
        "elsewhere": elsewhere,
        "throttled": climbed and climbed.is_throttled,
    }
    found.told.extend([name for name, weight in weights.items() if weight][:MOST])
    return found


def _half_width(measured: Rung | Timed) -> float:
    return measured.step.half_width if measured.step else 0.0


def _some(rows: list[Row]) -> Maybe:
    return count(len(rows), *(row["cell"] for row in rows)) if rows else None
