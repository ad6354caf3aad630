"""Several devices in one step: what each strategy costs, where each rank's step goes, who waits for
whom."""

from functools import cached_property
from statistics import fmean

from stepscope.report.facts.machine import Machine, Place, machine, place
from stepscope.report.kit.data import Data, Row, grouped, number
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    gap,
    minus,
    over,
    plus,
    scaled,
    share,
    value_of,
)

ALONE = "alone"
COSTLY = 0.05  # of a step: who waits less, and nothing computes, has nothing to gain


@frozen
class Strategy:
    """Of a variant. devices: times the tokens a second of one device. joules: of all devices, a
    token. peak: of the rank that has most."""

    name: Name
    step: Maybe
    predicted: Maybe
    devices: Maybe
    joules: Maybe
    peak: Maybe

    @cached_property
    def gap(self) -> Maybe:
        """How far the prediction is off."""
        return gap(self.step, self.predicted)


@frozen
class Rank:
    """A rank's step under the profiler; computing is split as in the table `ranks`."""

    strategy: Name
    rank: Maybe
    step: Maybe
    alone: Maybe
    slowed: Maybe
    beside: Maybe
    extra: Maybe
    elsewhere: Maybe
    waiting: Maybe
    transfer: Maybe
    idle: Maybe
    residual: Maybe
    waited_for: Maybe

    @cached_property
    def computing(self) -> Maybe:
        """In which anything computes."""
        return plus(self.alone, self.slowed, self.elsewhere, self.extra)

    @cached_property
    def longer(self) -> Maybe:
        """By how much kernels take longer beside communication, of what they take alone there."""
        return share(self.slowed, minus(self.beside, self.slowed))


@frozen
class Collective:
    """Collectives of a size by themselves: bandwidths of the bus. time: of the all-reduce."""

    size: Name
    time: Maybe
    all_reduce: Maybe
    all_gather: Maybe
    reduce_scatter: Maybe


@frozen
class Parallel:
    """Of the cell with the most devices, the longest step of those."""

    data: Data
    machine: Machine
    place: Place
    cell: str

    @cached_property
    def devices(self) -> Maybe:
        """How many share the step."""
        row = self.data.row("collectives", cell=self.cell)
        return number(row, "devices", "count") if row else None

    @cached_property
    def strategies(self) -> tuple[Strategy, ...]:
        """Those that were measured, in the cell's order."""
        names = dict.fromkeys(row["variant"] for row in self._steps)
        return tuple(self._strategy(name) for name in names)

    @cached_property
    def best(self) -> Strategy | None:
        """The one on several devices that has the shortest step."""
        others = [each for each in self.strategies if each.name != ALONE]
        return min(others, key=lambda each: value_of(each.step), default=None)

    @cached_property
    def gain(self) -> Maybe:
        """How many times the tokens of one device that is; on a host that others use it may seem
        more than there are devices, and is then not said."""
        times = self.best.devices if self.best else None
        return times if times and times.value <= value_of(self.devices) else None

    @cached_property
    def ranks(self) -> tuple[Rank, ...]:
        """Of every strategy but one device."""
        rows = self.data.dicts("ranks", cell=self.cell)
        return tuple(_rank(row) for row in rows if row["variant"] != ALONE)

    @cached_property
    def waited(self) -> Rank | None:
        """The rank of the best strategy that all others wait for longest, where that costs one of
        them more than a little."""
        if not any(value_of(each.waiting) > COSTLY * value_of(each.step) for each in self._best):
            return None
        return max(self._best, key=lambda each: value_of(each.waited_for))

    @cached_property
    def is_host(self) -> bool:
        """Whether that rank is later than the others because its device is idle longer."""
        return 0 < self._longer("idle") > self._longer("computing")

    @cached_property
    def is_computing(self) -> bool:
        """Whether it is because it computes longer."""
        return 0 < self._longer("computing") >= self._longer("idle")

    @cached_property
    def slowed(self) -> Rank | None:
        """The rank of the best strategy whose kernels communication slows down most."""
        slow = [each for each in self._best if value_of(each.slowed) > 0 and each.longer]
        return max(slow, key=lambda each: value_of(each.slowed), default=None)

    @cached_property
    def residual(self) -> Maybe:
        """The largest, of its step, without its sign."""
        shares = filter(None, (share(each.residual, each.step) for each in self.ranks))
        largest = max(shares, key=lambda each: abs(each.value), default=None)
        return scaled(largest, -1.0) if value_of(largest) < 0 else largest

    @cached_property
    def difference(self) -> Maybe:
        """How far gradients of a strategy differ at most from those of one device, relative."""
        rows = self.data.series(cell=self.cell, quantity="difference")
        worst = max((row["median"] for row in rows), default=None)
        return None if worst is None else Quantity(worst, "error", cells=(self.cell,))

    @property
    def is_equal(self) -> bool:
        """Whether they do not differ at all."""
        return self.difference is not None and self.difference.value == 0

    @cached_property
    def collectives(self) -> tuple[Collective, ...]:
        """By size, the smallest first."""
        rows = self.data.dicts("collectives", cell=self.cell)
        return tuple(_collectives(own) for own in grouped(rows, "bytes").values())

    @cached_property
    def largest(self) -> Collective | None:
        """Of the most bytes."""
        return self.collectives[-1] if self.collectives else None

    @cached_property
    def hiding(self) -> Maybe:
        """Sequences a device from which the best strategy's communication hides, as predicted."""
        row = self._predicted(str(self.best.name)) if self.best else {}
        return number(row, "hiding_batch", "count")

    @property
    def _best(self) -> list[Rank]:
        return [each for each in self.ranks if self.best and each.strategy == self.best.name]

    def _longer(self, part: str) -> float:
        """Seconds that the rank which is waited for has more of a part than the others' mean."""
        if self.waited is None:
            return 0.0
        others = [each for each in self._best if each is not self.waited]
        mean = fmean(value_of(getattr(each, part)) for each in others)
        return value_of(getattr(self.waited, part)) - mean

    @property
    def _steps(self) -> list[Row]:
        return self.data.series(cell=self.cell, quantity="time", mode="step", phase="step")

    def _predicted(self, name: str) -> Row:
        devices = int(value_of(self.devices))
        where = {"cell": self.cell, "variant": name, "devices": devices}
        return self.data.row("parallel_predicted", **where) or {}

    def _strategy(self, name: str) -> Strategy:
        where = {"cell": self.cell, "variant": name, "mode": "step", "phase": "step"}
        step = self.data.measured("time", **where)
        one = self.data.measured("time", **{**where, "variant": ALONE})
        devices = None if name == ALONE else self.devices
        tokens = self.place.batch * self.place.context * value_of(self.devices)
        energy = self.data.measured("energy", **where)
        faster = over(one, step)
        return Strategy(
            name=Name(name),
            step=step,
            predicted=number(self._predicted(name), "predicted", "s") if devices else None,
            devices=scaled(faster, devices.value, "1") if faster and devices else None,
            joules=scaled(energy, 1 / tokens, "J") if tokens else None,
            peak=self.data.measured("peak_allocated", **where),
        )


def _rank(row: Row) -> Rank:
    def of(name: str) -> Maybe:
        return number(row, name, "s")

    return Rank(
        strategy=Name(row["variant"]),
        rank=count(row["rank"], row["cell"]),
        step=of("clock"),
        alone=of("alone"),
        slowed=of("slowed"),
        beside=of("beside"),
        extra=plus(of("extra"), of("gone"), of("at_once")),
        elsewhere=of("apart"),
        waiting=of("waiting"),
        transfer=of("transfer"),
        idle=of("idle"),
        residual=of("residual"),
        waited_for=of("waited_by_others"),
    )


def _collectives(rows: list[Row]) -> Collective:
    of = {row["collective"]: row for row in rows}
    bus = {name: number(row, "bus", "B/s") for name, row in of.items()}
    return Collective(
        size=Name(Quantity(rows[0]["bytes"], "B")),
        time=number(of["all_reduce"], "seconds", "s"),
        **bus,
    )


def facts(data: Data) -> Parallel | None:
    """None where no step was measured on several devices."""
    rows = data.dicts("ranks")
    if not rows:
        return None
    chosen = max(rows, key=lambda row: (row["devices"], row["clock"]))
    cell = data.row("cells", cell=chosen["cell"])
    own = machine(data)
    where = place(data, own, cell, cell["precision"])
    return Parallel(data=data, machine=own, place=where, cell=cell["cell"]) if where else None
