"""What a measuring program shows on the terminal."""

import math
import statistics
from dataclasses import dataclass

from stepscope import confidence


def configuration(spec: dict, note: str = "") -> None:
    """The spec, one key a line, and a note such as the parameter count."""
    width = max(map(len, spec))
    for key, value in spec.items():
        print(f"{key:<{width}}  {value}")
    if note:
        print(note)
    print(flush=True)


def series_header() -> None:
    """Heading of the lines that series() prints."""
    print(f"{'mode':<17}{'kind':<8}{'phase':<18}{'n':>4}{'mean':>11}{'std':>10}{'median':>11}   of each process (ms)")


def phases(found: list[dict]) -> None:
    """The heading and a line for each phase of a summary; nothing if there are none."""
    if found:
        series_header()
    for entry in found:
        series(entry["mode"], entry["kind"], entry["phase"], entry)


def series(mode: str, kind: str, phase: str, found: dict) -> None:
    """One line of statistics in milliseconds, or the status."""
    name = f"{mode:<17}{kind:<8}{phase:<18}"
    if found["status"] != "ok":
        print(f"{name}{found['status']}", flush=True)
        return
    over = over_processes(found["processes"])
    times = f"{1000 * over.mean:>11.3f}{1000 * over.std:>10.3f}{1000 * over.median:>11.3f}"
    print(f"{name}{over.count:>4}{times}   {over.each(3)}", flush=True)


@dataclass(frozen=True)
class OverProcesses:
    """A series over its processes, in seconds, as in the tables; the report alone knows the interval, since it takes
    the spread from all cells."""

    count: int
    mean: float
    std: float
    median: float
    medians: list[float]

    def each(self, decimals: int) -> str:
        """Every process's median in milliseconds."""
        return " ".join(f"{1000 * median:.{decimals}f}" for median in self.medians)


def over_processes(found: list[dict]) -> OverProcesses:
    """What summarise() says of each process, put together."""
    medians = [one["median"] for one in found]
    return OverProcesses(
        sum(one["count"] for one in found),
        statistics.fmean(one["mean"] for one in found),
        math.sqrt(statistics.fmean((one["std"] or 0.0) ** 2 for one in found)),
        confidence.centre(medians),
        medians,
    )
