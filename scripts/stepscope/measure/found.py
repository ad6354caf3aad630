"""What a process found, and how a record's summary is made of what all of them found. Standard
library only."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TypedDict, Unpack

from stepscope.axes import MODES

Call = Callable[[], object]  # something to be run
STATUSES = ("ok", "unsupported", "oom", "failed")  # the worst last
BESIDE = ("host-free", "busy")  # modes in statuses that say nothing of the variant itself
OF_STATUS = ("mode", "length", "direction")  # what of a place a value or a status tells


class Place(TypedDict, total=False):
    """Where in a variant something belongs: what was run, how, and in which of the rounds."""

    mode: str
    kind: str
    round: int | None
    length: int
    direction: str


@dataclass
class Outcome:
    """What became of something, one of STATUSES, and why."""

    status: str = "ok"
    reason: str = ""

    @property
    def is_ok(self) -> bool:
        return self.status == "ok"


@dataclass
class Found:
    """What one process found.

    rows: the samples. values: what is no time sample. statuses: what became of each mode or length.
    checks: of a ladder's variant its loss, gradient_norm and gradient_sample; of a step of one's
    own the losses of its first steps. built: of such a variant what it is.
    """

    process: int = 1
    rows: list[dict] = field(default_factory=list)
    values: list[dict] = field(default_factory=list)
    statuses: list[dict] = field(default_factory=list)
    checks: dict[str, dict] = field(default_factory=dict)
    built: dict[str, dict] = field(default_factory=dict)

    def value(
        self,
        variant: str,
        quantity: str,
        unit: str,
        value: float | None,
        once: bool = False,
        phase: str | None = None,
        **place: Unpack[Place],
    ) -> None:
        """Note a value in SI units, if there is one above 0. once: it is the same in every
        process."""
        if not value:
            return
        found: dict = {
            "variant": variant,
            "process": None if once else self.process,
            "quantity": quantity,
            "unit": unit,
            "value": value,
            "phase": phase,
        }
        self.values.append(found | {key: place.get(key) for key in OF_STATUS})

    def sizes(self, variant: str, sizes: Mapping[str, int], **place: Unpack[Place]) -> None:
        """Note what takes memory, in bytes by quantity; of a mode in its whole step."""
        phase = MODES[place["mode"]].whole if "mode" in place else None
        for quantity, size in sizes.items():
            self.value(variant, quantity, "B", size, phase=phase, **place)

    def status(self, variant: str, outcome: Outcome | None = None, **place: Unpack[Place]) -> None:
        """Note what became of a mode, or of a length and direction; it is `ok` by itself."""
        where = {key: place.get(key) for key in OF_STATUS}
        self.statuses.append({"variant": variant, **asdict(outcome or Outcome()), **where})

    def is_ok(self) -> bool:
        """Whether anything was measured."""
        return any(one["status"] == "ok" for one in self.statuses)


def rows_of(found: list[Found]) -> list[dict]:
    """The samples of all processes, without those of steps that came to nothing."""
    statuses = _worst_of_each(found)
    return [row for one in found for row in one.rows if not _is_lost(row, statuses)]


def _is_lost(one: dict, statuses: list[dict]) -> bool:
    """Whether a sample, or a value, is of a mode that failed; a mode of which nothing was noted
    went the way of its variant."""
    own = chosen(statuses, variant=one["variant"])
    of_mode = chosen(own, mode=one.get("mode"))
    return any(each["status"] == "failed" for each in of_mode or own)


def summary(found: list[Found]) -> dict:
    """`variants`, `values` and `statuses` of a record, and what was `built` of steps of one's own.

    A mode's status is the worst of all processes. A variant's is that of the first that it notes
    (the heaviest mode), or, of attention, `ok` where any length is.
    """
    statuses = _worst_of_each(found)
    about: dict[str, dict] = {}
    for one in statuses:
        is_first = one["variant"] not in about
        is_any = one["length"] and one["status"] == "ok"
        if one["mode"] not in BESIDE and (is_first or is_any):
            about[one["variant"]] = {key: one[key] for key in ("status", "reason")}
    values = [value for one in found for value in one.values if not _is_lost(value, statuses)]
    built: dict[str, dict] = {}
    for process in found:  # the last one has counted what a step computes
        built |= process.built
    told = {"variants": about, "values": values, "statuses": statuses}
    return told | ({"built": built} if built else {})


def _worst_of_each(found: list[Found]) -> list[dict]:
    """Of each mode, or length and direction, of a variant the worst status of all processes."""
    of_place: dict[tuple, list[dict]] = defaultdict(list)
    for process in found:
        for one in process.statuses:
            of_place[one["variant"], *(one[key] for key in OF_STATUS)].append(one)
    return [max(each, key=lambda one: STATUSES.index(one["status"])) for each in of_place.values()]


def chosen(rows: Iterable[dict], **place: object) -> list[dict]:
    """Those of the samples that are at a place."""
    return [row for row in rows if all(row.get(key) == value for key, value in place.items())]
