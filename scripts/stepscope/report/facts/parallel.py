"""Several devices in one step: what each strategy costs, where each rank's step goes, who waits for
whom."""

from functools import cached_property
from math import inf
from statistics import fmean

from stepscope.report.kit.data import Data, Row, grouped, number, shown
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    count,
    exact,
    gap,
    least,
    minus,
    most,
    ordered,
    over,
    plus,
    positive,
    scaled,
    share,
    value_of,
)
from stepscope.report.kit.reserve import usable

from .machine import Chapter, Place, machine, place

ALONE = "alone"
COSTLY = 0.05  # of a step: who waits less, and nothing computes, has nothing to gain


@frozen
class Measured:
    """The tables of a cell. devices: how many share its step."""

    data: Data
    cell: str
    place: Place
    devices: float

    def rows(self, table: str, **where: object) -> list[Row]:
        """Of a table."""
        return self.data.dicts(table, cell=self.cell, **where)

    def step(self, quantity: str, name: str) -> Maybe:
        """A series of a strategy's step."""
        same = {"cell": self.cell, "mode": "step", "phase": "step"}
        return self.data.measured(quantity, variant=name, **same)

    @cached_property
    def strategies(self) -> list[Row]:
        """Those that ran, as _strategy has them, in the cell's order."""
        clocks = self.rows("series", quantity="time", phase="step", status="ok", mode="step")
        return [_strategy(self, row["variant"]) for row in clocks]

    def by_strategy(self, quantity: str) -> dict[str, float]:
        """`difference`: how far its gradients are off one device's; `tolerance`: up to which that
        is rounding."""
        return {row["variant"]: row["median"] for row in self.rows("series", quantity=quantity)}

    @cached_property
    def differing(self) -> list[Name]:
        """Those that are off by more than rounding explains."""
        off, most = self.by_strategy("difference"), self.by_strategy("tolerance")
        return [Name(each) for each in off if off[each] > most.get(each, inf)]

    @cached_property
    def alike(self) -> list[Row]:
        """Those on several devices that compute the same."""
        others = (each for each in self.strategies if not is_alone(each["name"]))
        return [each for each in others if each["name"] not in self.differing]

    @cached_property
    def best(self) -> Row:
        """That of the shortest step of these; empty without one."""
        return least(self.alike, "step") or {}

    @cached_property
    def level(self) -> list[Row]:
        """The others of these whose interval overlaps the best one's."""
        known = [each for each in self.alike if each["step"].ends]
        if self.best not in known:
            return []
        _, latest = self.best["step"].ends
        return [each for each in known if each is not self.best and each["step"].low < latest]

    @cached_property
    def step_options(self) -> str:
        """What the step is built with, without its devices."""
        options = self.data.row("cells", cell=self.cell).get("options") or ""
        return ", ".join(each for each in options.split() if not each.startswith("devices="))

    @property
    def kind(self) -> tuple[str | int, ...]:
        """What a step is but for the number of devices."""
        return *self.place.key, self.place.precision, self.step_options

    def predicted(self, name: str) -> Row:
        """What is predicted of it; empty where nothing is."""
        where = {"cell": self.cell, "variant": name, "devices": self.devices}
        return self.data.row("parallel_predicted", **where)


@frozen
class Parallel(Chapter):
    """Of `own`, the cell with the most devices, the longest step of those.

    devices: how many share the step. failed: strategies that did not run. hiding: sequences a
    device from which the best one's communication hides, as predicted. others: the best of each
    other cell, as _other has it. predictions: by strategy, times the tokens of one device by number
    of devices, and as other cells of the same step measured them; strong: of the best one on the
    most devices, where they share the batch of one. memory: by strategy, as _held has it;
    off_formula: how far a part, or the whole, is off its formula at most. difference: how far
    gradients of those that differ by no more than rounding are off one device's at most, relative,
    and tolerance: how far they might be.

    ranks: of every strategy but one device, each rank's step under the profiler; residual: the
    largest, of its step, without its sign. waited: the rank of the best strategy that all others
    wait for longest, where that costs one of them more than a little: because its device is idle
    longer than theirs (is_host), or computes longer (is_computing), most of which is there where
    one device steps by itself, too (is_slower_alone). slowed: the one whose kernels communication
    slows down most; slowed_kernels: these by category, those first that lose most. collectives: by
    size, the smallest first.
    """

    own: Measured
    devices: Maybe
    failed: list[Name]
    hiding: Maybe
    others: list[Row]
    predictions: list[Row]
    strong: Row
    memory: list[Row]
    off_formula: Maybe
    difference: Maybe
    tolerance: Maybe
    ranks: list[Row]
    residual: Maybe
    waited: Row | None
    is_host: bool
    is_computing: bool
    is_slower_alone: bool
    slowed: Row | None
    slowed_kernels: list[Row]
    collectives: list[Row]

    @cached_property
    def gain(self) -> Maybe:
        """How many times the tokens of one device that is; on a host that others use it may seem
        more than there are devices, and is then not said."""
        times = self.own.best.get("devices")
        return times if value_of(times) <= value_of(self.devices) else None

    @cached_property
    def leanest(self) -> Row:
        """The one of these, or the best, that has the smallest peak."""
        return least([*self.own.level, self.own.best], "peak") or {}

    @property
    def is_overlapping(self) -> bool:
        """Whether the best one sends while the backward pass goes on."""
        return strategy_of(self.own.best.get("name", "")) in ("overlapped", "staged", "ddp", "fsdp")


def facts(data: Data) -> Parallel | None:
    """None where no step was measured on several devices."""
    ranks = data.dicts("ranks")
    chosen = max(ranks, key=lambda row: (row["devices"], row["clock"]), default={})
    own = _measured(data, chosen.get("cell"))
    if own is None:
        return None
    name = own.cell
    clocks = own.rows("series", quantity="time", phase="step")
    off = own.by_strategy("difference")
    rounding = [off[each] for each in off if each not in own.differing]
    best = own.best
    cells = (row["cell"] for row in data.dicts("cells", study="parallel"))
    known = (_measured(data, cell) for cell in cells if cell != name)
    others = [each for each in known if each and each.best]

    every = [_rank(shown(row)) for row in own.rows("ranks") if not is_alone(row["variant"])]
    of_best = [each for each in every if each["variant"] == best.get("name")]
    is_long = any(_of_clock(each, "waiting") > COSTLY for each in of_best)
    waited = most(of_best, "waited_by_others") if is_long else None
    parts = ("idle", "computing", "alone")
    idle, computing, alone = (_longer(of_best, waited, part) for part in parts)
    # It has to explain half of what the others wait for, on the average.
    late = value_of(waited["waited_by_others"]) / (own.devices - 1) if waited else 0.0
    slowed = most((each for each in of_best if positive(each["slowed"])), "slowed")
    held = own.rows("rank_memory")
    formulas = [abs(row["held"] / row["formula"] - 1) for row in held if row["formula"]]
    return Parallel(
        data=data,
        own=own,
        devices=count(own.devices, name),
        failed=[
            Name(f"{row['variant']} ({row['status']})") for row in clocks if row["status"] != "ok"
        ],
        hiding=number(own.predicted(best.get("name", "")), "hiding_batch", "count"),
        others=[_other(each, own) for each in others],
        predictions=_predictions(own, others),
        strong=_strong(own, best),
        memory=[_held(own, variant, rows) for (variant,), rows in grouped(held, "variant").items()],
        off_formula=_largest(formulas, "share", name),
        difference=_largest(rounding, "error", name),
        tolerance=_largest(list(own.by_strategy("tolerance").values()), "error", name),
        ranks=every,
        residual=_largest([_of_clock(each, "residual") for each in every], "share", name),
        waited=waited,
        is_host=2 * idle > late and idle > computing,
        is_computing=2 * computing > late and computing >= idle,
        is_slower_alone=2 * alone >= computing,
        slowed=slowed,
        slowed_kernels=_slowed_kernels(own, slowed) if slowed else [],
        collectives=[
            _collectives(rows) for rows in grouped(own.rows("collectives"), "bytes").values()
        ],
    )


def _measured(data: Data, cell: str | None) -> Measured | None:
    """None of a cell that has no place, or measured no collective."""
    where = place(data, data.row("cells", cell=cell))
    sent = data.row("collectives", cell=cell)
    if where is None or cell is None or not sent:
        return None
    return Measured(data=data, cell=cell, place=where, devices=sent["devices"])


def _other(own: Measured, chosen: Measured) -> Row:
    """What its best strategy costs, where, and what it is built with that the chosen one is not."""
    same = chosen.step_options.split(", ")
    options = [each for each in own.step_options.split(", ") if each not in same]
    return own.best | {
        "place": Name(own.place.name),
        "precision": Name(own.place.precision),
        "on": count(own.devices),
        "batch": count(own.place.batch),
        "alone": own.step("time", ALONE),
        "options": Name(", ".join(options)) if options else None,
    }


def _strategy(own: Measured, name: str) -> Row:
    """step: its time, beside what is predicted of it, and the gap.

    devices: times the tokens a second of one device. joules: of all devices, a token. peak: bytes,
    of the rank that has most.
    """
    step = own.step("time", name)
    devices = 0 if is_alone(name) else own.devices
    # One device's step with the same options, else as it is.
    same = name.replace(strategy_of(name), ALONE, 1)
    faster = over(own.step("time", same) or own.step("time", ALONE), step)
    tokens = own.place.batch * own.place.context * own.devices
    predicted = number(own.predicted(name), "predicted", "s") if devices else None
    return {
        "name": Name(name),
        "step": step,
        "predicted": predicted,
        "gap": gap(step, predicted),
        "devices": scaled(faster, devices, "1") if devices else None,
        "host_free": own.step("host_free_time", name),
        "joules": scaled(own.step("energy", name), 1 / tokens, "J") if tokens else None,
        "peak": own.step("peak_allocated", name),
    }


def _predictions(own: Measured, others: list[Measured]) -> list[Row]:
    """By strategy: `on4`, and where another cell has that step on so many, `measured4`."""
    one = own.step("time", ALONE)
    found = []
    for (name,), rows in grouped(own.rows("parallel_predicted"), "variant").items():
        if is_alone(name):
            continue
        times = {f"on{row['devices']:.0f}": _times(one, row) for row in rows}
        for other in (each for each in others if each.kind == own.kind):
            times[f"measured{other.devices:.0f}"] = _strategy(other, name)["devices"]
        found.append({"name": Name(name)} | times)
    return found


def _strong(own: Measured, best: Row) -> Row:
    known = own.rows("parallel_predicted", variant=best.get("name"))
    rows = [row for row in known if row["devices"] <= own.place.batch]  # a sequence each, at least
    row = max(rows, key=lambda each: each["devices"], default={})
    times = exact(over(own.step("time", ALONE), number(row, "strong", "s")))
    return {"devices": number(row, "devices", "count"), "times": times}


def _held(own: Measured, name: str, rows: list[Row]) -> Row:
    """What the rank that has most holds in all at each point of a step, and by part after it; what
    that has to be by its formula, and the largest batch a device that fits. On a CPU the parts are
    known alone."""
    whole = [row for row in rows if row["part"] == "all"]
    held: Row = {row["point"].replace(" ", "_"): number(row, "held", "B") for row in whole}
    after = [row for row in rows if row["point"] == "after"]
    parts = {row["part"]: number(row, "held", "B") for row in after}
    held |= parts | {"name": Name(name), "largest": None}
    held["formula"] = number(whole[-1], "formula", "B") if whole else None
    each = minus(own.step("peak_asked", name), parts.get("all"))
    if positive(each):
        room = usable(value_of(machine(own.data).memory)) - value_of(parts["all"])
        # What ran fits, whatever is to be left free.
        most_that_fit = max(own.place.batch, int(room / (value_of(each) / own.place.batch)))
        held["largest"] = count(most_that_fit, own.cell)
    return held


def _longer(ranks: list[Row], one: Row | None, part: str) -> float:
    """Seconds that one has more of a part than the others' mean."""
    if one is None:
        return 0.0
    others = [value_of(each[part]) for each in ranks if each is not one]
    return value_of(one[part]) - fmean(others)


def _slowed_kernels(own: Measured, rank: Row) -> list[Row]:
    same = {"variant": rank["variant"], "rank": value_of(rank["rank"])}
    rows = [shown(row) for row in own.rows("rank_slowed", **same)]
    return ordered([row | {"longer": _in_all(row)} for row in rows], "slowed", reverse=True)


def _in_all(row: Row) -> Maybe:
    """By how much kernels take longer beside communication, of what they take alone there."""
    return share(row["slowed"], minus(row["beside"], row["slowed"]))


def _of_clock(rank: Row, part: str) -> float:
    """A part of a rank's step, as a share of it, without its sign."""
    return abs(value_of(share(rank[part], rank["clock"])))


def _largest(values: list[float], unit: str, cell: str) -> Maybe:
    return Quantity(max(values), unit, cells=(cell,)) if values else None


def strategy_of(name: str) -> str:
    """`overlapped` of `overlapped-ctas=8`."""
    return name.split("-")[0]


def is_alone(name: str) -> bool:
    """Whether one device runs it."""
    return strategy_of(name) == ALONE


def _rank(row: Row) -> Row:
    """A rank of the table `ranks`, with what follows from its parts.

    extra: kernels that one device's step has not, less those that it alone has, and less what runs
    at the same time. computing: in which anything computes.
    """
    extra = plus(row["extra"], row["gone"], row["at_once"])
    return row | {
        "extra": extra,
        "computing": plus(row["alone"], row["slowed"], row["apart"], extra),
        "longer": _in_all(row),
    }


def _times(one: Maybe, row: Row) -> Maybe:
    """Times the tokens of one device, by a predicted step."""
    return scaled(exact(over(one, number(row, "predicted", "s"))), row["devices"], "1")


def _collectives(rows: list[Row]) -> Row:
    """Collectives of a size by themselves: the time of the all-reduce, and by collective bytes a
    second of the bus."""
    of = {row["collective"]: row for row in rows}
    bus = {name: number(row, "bus", "B/s") for name, row in of.items()}
    size = Quantity(rows[0]["bytes"], "B")
    time = number(of["all_reduce"], "seconds", "s")
    return bus | {"size": Name(size), "time": time}
