"""How long a run still takes: what its cells were expected to, corrected by what those that have ended took."""

from collections.abc import Mapping


class TimeLeft:
    """Follows the cells of a run. Times are seconds of any clock that goes on.

    expected: cell → seconds, of all cells that this run measures; None where nothing is known. at_once: how many run
    together; None where that shows only from how fast they end, as in the queue of a cluster.

    Cells take `correction` times what was expected: so many seconds as those that have ended took over what they were
    expected to, where the plan weighs as much as one more cell that took just what was expected.
    """

    def __init__(self, expected: Mapping[str, float | None], at_once: int | None):
        known = [seconds for seconds in expected.values() if seconds is not None]
        self._mean = sum(known) / len(known) if known else None
        self._expected = {name: seconds if seconds is not None else self._mean for name, seconds in expected.items()}
        self._at_once = at_once
        self._waiting = set(expected)
        self._started: dict[str, float] = {}
        self._first: float | None = None
        self._ended: list[tuple[float, float]] = []

    def begin(self, name: str, now: float) -> None:
        """A cell's job has begun, or was given to the cluster."""
        if name in self._expected:
            self._waiting.discard(name)
            self._started[name] = now
            self._first = now if self._first is None else self._first

    def end(self, name: str, now: float) -> None:
        """A cell's job has ended, well or not."""
        if name in self._started:
            self._ended.append((self._expected[name] or 0.0, now - self._started.pop(name)))

    @property
    def correction(self) -> float:
        """What cells take over what was expected."""
        prior = self._mean or 0.0
        expected = sum(one for one, _ in self._ended) + prior
        return (sum(taken for _, taken in self._ended) + prior) / expected if expected else 1.0

    def left(self, now: float) -> float | None:
        """Seconds until the last cell ends; None where nothing tells."""
        if self._mean is None:
            return None
        if self._at_once is None:
            return self._of_a_queue(now)
        running = [
            max(self._expected[name] * self.correction - (now - begun), 0.0) for name, begun in self._started.items()
        ]
        rest = [self._expected[name] * self.correction for name in self._waiting] + running
        return max(sum(rest) / self._at_once, max(rest, default=0.0))

    def _of_a_queue(self, now: float) -> float | None:
        """The same at the pace at which the cells that have ended came in, their wait included."""
        done = sum(expected for expected, _ in self._ended)
        if not done or self._first is None:
            return None
        rest = sum(self._expected[name] for name in (*self._waiting, *self._started))
        return rest * (now - self._first) / done


def in_words(seconds: float) -> str:
    """A duration that is not known well: `40 s`, `12 min`, `1 h 20 min`."""
    if seconds < 57.5:
        return f"{max(5 * round(seconds / 5), 1):.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"
