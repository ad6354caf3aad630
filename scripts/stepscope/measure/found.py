"""What a process found, and how a record's summary is made of what all of them found. Standard
library only."""

import statistics
from dataclasses import dataclass, field

STATUSES = ("ok", "unsupported", "oom")  # the worst last
BESIDE = ("host-free", "busy")  # modes in statuses that say nothing of the variant itself
LAUNCH_LIMITED = 1.15  # clock over host-free time, or over busy time, from which on launches limit


@dataclass
class Found:
    """Samples, values that are no time samples, what became of each mode or length, and the
    ladder's checks."""

    process: int = 1
    rows: list[dict] = field(default_factory=list)
    values: list[dict] = field(default_factory=list)
    statuses: list[dict] = field(default_factory=list)
    checks: dict[str, dict] = field(
        default_factory=dict
    )  # variant -> loss, gradient_norm, gradient_sample

    def value(
        self,
        variant: str,
        quantity: str,
        unit: str,
        value: float | None,
        once: bool = False,
        **place,
    ) -> None:
        """Note a value in SI units, if there is one above 0. once: it is the same in every process.
        place: mode, phase, length, direction."""
        if not value:
            return
        where = dict.fromkeys(("mode", "phase", "length", "direction")) | place
        process = None if once else self.process
        named = {
            "variant": variant,
            "process": process,
            "quantity": quantity,
            "unit": unit,
            "value": value,
        }
        self.values.append(named | where)

    def status(self, variant: str, status: str, reason: str, **place: object) -> None:
        """Note what became of a mode, or of a length and direction."""
        where = dict.fromkeys(("mode", "length", "direction")) | place
        self.statuses.append({"variant": variant, "status": status, "reason": reason} | where)

    def is_ok(self, variant: str | None = None) -> bool:
        """Whether anything was measured, or anything of a variant."""
        return any(
            one["status"] == "ok" for one in self.statuses if variant in (None, one["variant"])
        )


def rows_of(found: list[Found]) -> list[dict]:
    """The samples of all processes."""
    return [row for one in found for row in one.rows]


def summary(found: list[Found], variants: list[str], device: str) -> dict:
    """`variants`, `values` and `statuses` of a record.

    A mode's status is the worst of all processes. A variant's is that of the first that it notes
    (the heaviest mode), or, of attention, `ok` where any length is.
    """
    worst: dict[tuple, dict] = {}
    for one in (status for process in found for status in process.statuses):
        key = (one["variant"], one["mode"], one["length"], one["direction"])
        before = worst.get(key)
        if before is None or STATUSES.index(one["status"]) > STATUSES.index(before["status"]):
            worst[key] = one
    rows = rows_of(found)
    about = {}
    for name in variants:
        own = [
            one for one in worst.values() if one["variant"] == name and one["mode"] not in BESIDE
        ]
        own = own or [{"status": "ok", "reason": ""}]
        chosen = next((one for one in own if one.get("length") and one["status"] == "ok"), own[0])
        about[name] = {"status": chosen["status"], "reason": chosen["reason"], "limited": None}
        if chosen["status"] == "ok":
            about[name]["limited"] = "cpu" if device == "cpu" else limited(rows, name)
    values = [value for one in found for value in one.values]
    return {"variants": about, "values": values, "statuses": list(worst.values())}


def limited(rows: list[dict], variant: str) -> str | None:
    """What limits a variant's step on a GPU: `launches` where its time by the clock exceeds the
    host-free one, or else the busy one, by more than LAUNCH_LIMITED; else `gpu`. None without
    either."""
    clock = median(rows, variant, "free")
    alone = median(rows, variant, "host-free") or median(rows, variant, "busy")
    if clock is None or alone is None:
        return None
    return "launches" if clock > LAUNCH_LIMITED * alone else "gpu"


def median(rows: list[dict], variant: str, kind: str, phase: str = "step") -> float | None:
    """The median of the processes' medians, in seconds; None without samples."""
    by_process: dict[int, list[float]] = {}
    for row in rows:
        if (row["variant"], row.get("kind"), row["phase"], row["warmup"]) == (
            variant,
            kind,
            phase,
            False,
        ):
            by_process.setdefault(row["process"], []).append(row["seconds"])
    return statistics.median(map(statistics.median, by_process.values())) if by_process else None
