"""Points that several studies measured: the same work, timed by the timing study and once more by another study.

The timing study's value is the one that the report uses; here the others stand beside it, and what differed.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.axes import STEP_PHASES
from stepscope.report.data.control import floors
from stepscope.report.data.warmup import is_profiled, steady_of
from stepscope.report.kit.compare import HOSTS_AGREE, LEAST_MARGIN, Comparison, Timed, by_fields, judged, timed
from stepscope.report.kit.formatting import known
from stepscope.report.kit.order import with_order
from stepscope.tables.reader import Tables

POINT = by_fields("hardware", "size", "context", "precision", "batch", "options")
LADDER, WARMUP = "ladder", "warmup"


@dataclass(frozen=True)
class Again:
    """A point's phase in another study (its row) beside the timing study's row; how that study's time compares."""

    study: str
    phase: str
    row: dict
    timing: dict
    found: Comparison

    @property
    def hardware(self) -> str:
        return self.row["hardware"]

    @property
    def causes(self) -> list[tuple[str, str, float, float]]:
        """What the two cells' records say differed: (name, unit, timing's value, the other's)."""
        looked_at = (
            ("host loop", "ms", "host_python_ms", math.log1p(HOSTS_AGREE)),
            ("launch loop", "ms", "host_launches_ms", math.log1p(HOSTS_AGREE)),
            ("SM clock", "MHz", "sm_clock_median_mhz", LEAST_MARGIN),
        )
        found = []
        for name, unit, column, least in looked_at:
            both = self.timing.get(column), self.row.get(column)
            if all(known(value) and value > 0 for value in both) and abs(math.log(both[0] / both[1])) > least:
                found.append((name, unit, *both))
        return found

    @property
    def is_other_gpu(self) -> bool:
        """Whether the records name two GPUs."""
        both = self.timing.get("device_uuid"), self.row.get("device_uuid")
        return None not in both and both[0] != both[1]


def measured_again(tables: Tables) -> list[Again]:
    """Each phase that another study timed at a point of the timing study, one family of comparisons a machine."""
    timing = with_order(tables["timing"])
    if timing.empty:
        return []
    references = {POINT(row): row for row in timing.to_dict("records") if row["repeat"] == 1}
    pairs = []
    for study, phase, row, own in (*_ladder(tables), *_warmup(tables)):
        reference = references.get(POINT(row), {})
        both = own, timed(reference, f"{phase}_") if reference else None
        if None not in both:
            pairs.append((study, phase, row, reference, both))
    of_run, found = floors(timing), []
    for hardware in dict.fromkeys(row["hardware"] for _, _, row, _, _ in pairs):
        own = [pair for pair in pairs if pair[2]["hardware"] == hardware]
        comparisons = judged([both for *_, both in own], of_run)
        found += [Again(*rest, comparison) for (*rest, _), comparison in zip(own, comparisons, strict=True)]
    return found


def _ladder(tables: Tables) -> Iterator[tuple[str, str, dict, Timed | None]]:
    """The free step of each of the ladder's cells; without one its forward and backward pass."""
    for row in with_order(tables[LADDER]).to_dict("records"):
        phase = next((name for name in ("step", "forward_backward") if timed(row, f"{name}_")), "step")
        if row["repeat"] == 1:
            yield LADDER, phase, row, timed(row, f"{phase}_")


def _warmup(tables: Tables) -> Iterator[tuple[str, str, dict, Timed | None]]:
    """The steady state of each of the warm-up study's points, by phase: its steps are phased, as those of the timing
    study's phases are."""
    points = {}
    for row in with_order(tables[WARMUP]).to_dict("records"):
        if row["repeat"] == 1 and not is_profiled(row) and known(row.get("step_steady_ms")) and row["status"] == "ok":
            points[POINT(row)] = row
    for row in points.values():
        for phase in STEP_PHASES:
            yield WARMUP, phase, row, steady_of(row, phase)
