"""Several devices in one step: what each strategy costs, where each rank's step goes, who waits for
whom."""

from functools import cached_property
from math import inf
from statistics import fmean

from stepscope.report.facts import method
from stepscope.report.facts.machine import Chapter, Place, place
from stepscope.report.kit.data import Data, Row, grouped, number, shown
from stepscope.report.kit.named import Name, frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    exact,
    gap,
    least,
    minus,
    most,
    over,
    plus,
    positive,
    scaled,
    share,
    value_of,
)
from stepscope.report.kit.reserve import usable

ALONE = "alone"
COSTLY = 0.05  # of a step: who waits less, and nothing computes, has nothing to gain


@frozen
class Parallel(Chapter):
    """Of the cell with the most devices, the longest step of those."""

    place: Place
    cell: str

    @cached_property
    def devices(self) -> Maybe:
        """How many share the step."""
        return number(self.data.row("collectives", cell=self.cell), "devices", "count")

    @cached_property
    def strategies(self) -> list[Row]:
        """Those that were measured, in the cell's order."""
        steps = self.data.series(cell=self.cell, quantity="time", mode="step", phase="step")
        return [self._strategy(row["variant"]) for row in steps]

    def _strategy(self, name: str) -> Row:
        """step: its time, beside what is predicted of it, and the gap.

        devices: times the tokens a second of one device. joules: of all devices, a token. peak:
        bytes, of the rank that has most.
        """
        step = self._measured("time", name)
        devices = None if is_alone(name) else self.devices
        faster = over(self._of_one(name), step)
        energy = self._measured("energy", name)
        tokens = self.place.batch * self.place.context * value_of(self.devices)
        predicted = number(self._predicted(name), "predicted", "s") if devices else None
        return {
            "name": Name(name),
            "step": step,
            "predicted": predicted,
            "gap": gap(step, predicted),
            "devices": scaled(faster, value_of(devices), "1") if devices else None,
            "host_free": self._measured("host_free_time", name),
            "joules": scaled(energy, 1 / tokens, "J") if tokens else None,
            "peak": self._measured("peak_allocated", name),
        }

    def _of_one(self, name: str) -> Maybe:
        """One device's step with the same options, else as it is."""
        same = name.replace(strategy_of(name), ALONE, 1)
        return self._measured("time", same) or self._measured("time", ALONE)

    @cached_property
    def predictions(self) -> list[Row]:
        """By strategy: times the tokens of one device, by number of devices."""
        rows = self.data.dicts("parallel_predicted", cell=self.cell)
        one = self._measured("time", ALONE)
        return [
            {"name": Name(name)} | {f"on{row['devices']:.0f}": _times(one, row) for row in own}
            for (name,), own in grouped(rows, "variant").items()
            if not is_alone(name)
        ]

    @cached_property
    def strong(self) -> Row:
        """Of the best strategy on the most devices that are predicted, where they share the batch
        of one: times one device's step."""
        rows = self.data.dicts("parallel_predicted", cell=self.cell)
        own = [row for row in rows if row["variant"] == self.best.get("name")]
        row = max(own, key=lambda each: each["devices"], default={})
        times = exact(over(self._measured("time", ALONE), number(row, "strong", "s")))
        return {"devices": number(row, "devices", "count"), "times": times}

    @cached_property
    def memory(self) -> list[Row]:
        """By strategy: what the rank that has most holds in all at each point of a step, and by
        part after it; what that has to be by its formula, and the largest batch a device that
        fits. On a CPU the parts are known alone."""
        grouped_rows = grouped(self._memory, "variant").items()
        return [self._held(name, own) for (name,), own in grouped_rows]

    @property
    def _memory(self) -> list[Row]:
        return self.data.dicts("rank_memory", cell=self.cell)

    def _held(self, name: str, rows: list[Row]) -> Row:
        whole = [row for row in rows if row["part"] == "all"]
        held: Row = {row["point"].replace(" ", "_"): number(row, "held", "B") for row in whole}
        after = [row for row in rows if row["point"] == "after"]
        parts = {row["part"]: number(row, "held", "B") for row in after}
        held |= parts | {"name": Name(name), "largest": None}
        held["formula"] = number(whole[-1], "formula", "B") if whole else None
        each = minus(self._measured("peak_asked", name), parts.get("all"))
        if positive(each):
            room = usable(value_of(self.machine.memory)) - value_of(parts["all"])
            # What ran fits, whatever is to be left free.
            count = max(self.place.batch, int(room / (value_of(each) / self.place.batch)))
            held["largest"] = Quantity(count, "count", cells=(self.cell,))
        return held

    @cached_property
    def off_formula(self) -> Maybe:
        """How far a part, or the whole, is off its formula at most."""
        rows = [row for row in self._memory if row["formula"]]
        worst = max((abs(row["held"] / row["formula"] - 1) for row in rows), default=None)
        return None if worst is None else Quantity(worst, "share", cells=(self.cell,))

    def _measured(self, quantity: str, name: str) -> Maybe:
        same = {"cell": self.cell, "mode": "step", "phase": "step"}
        return self.data.measured(quantity, variant=name, **same)

    def _predicted(self, name: str) -> Row:
        devices = value_of(self.devices)
        where = {"cell": self.cell, "variant": name, "devices": devices}
        return self.data.row("parallel_predicted", **where)

    @cached_property
    def best(self) -> Row:
        """The one on several devices that has the shortest step, of those that compute the same;
        empty without one."""
        others = [each for each in self.strategies if not is_alone(each["name"])]
        same = [each for each in others if each["name"] not in self.differing]
        return least(same, "step") or {}

    @property
    def is_overlapping(self) -> bool:
        """Whether that one sends while the backward pass goes on."""
        return strategy_of(self.best.get("name", "")) in ("overlapped", "staged", "ddp", "fsdp")

    @cached_property
    def failed(self) -> list[Name]:
        """Those that did not run."""
        rows = self.data.dicts("series", cell=self.cell, quantity="time", phase="step")
        return [
            Name(f"{row['variant']} ({row['status']})") for row in rows if row["status"] != "ok"
        ]

    @cached_property
    def gain(self) -> Maybe:
        """How many times the tokens of one device that is; on a host that others use it may seem
        more than there are devices, and is then not said."""
        times = self.best.get("devices")
        return times if value_of(times) <= value_of(self.devices) else None

    @cached_property
    def ranks(self) -> list[Row]:
        """Of every strategy but one device, each rank's step under the profiler."""
        rows = self.data.dicts("ranks", cell=self.cell)
        return [_rank(shown(row)) for row in rows if not is_alone(row["variant"])]

    @property
    def _best(self) -> list[Row]:
        return [each for each in self.ranks if each["variant"] == self.best.get("name")]

    @cached_property
    def waited(self) -> Row | None:
        """The rank of the best strategy that all others wait for longest, where that costs one of
        them more than a little."""
        waits = [value_of(over(each["waiting"], each["clock"])) for each in self._best]
        is_long = max(waits, default=0.0) > COSTLY
        return most(self._best, "waited_by_others") if is_long else None

    @cached_property
    def is_host(self) -> bool:
        """Whether that rank is later than the others because its device is idle longer."""
        return 0 < self._longer("idle") > self._longer("computing")

    @cached_property
    def is_computing(self) -> bool:
        """Whether it is because it computes longer."""
        return 0 < self._longer("computing") >= self._longer("idle")

    def _longer(self, part: str) -> float:
        """Seconds that the rank which is waited for has more of a part than the others' mean."""
        if self.waited is None:
            return 0.0
        others = [value_of(each[part]) for each in self._best if each is not self.waited]
        return value_of(self.waited[part]) - fmean(others)

    @cached_property
    def slowed(self) -> Row | None:
        """The rank of the best strategy whose kernels communication slows down most."""
        rank = most(self._best, "slowed")
        return rank if rank and positive(rank["slowed"]) else None

    @cached_property
    def slowed_kernels(self) -> list[Row]:
        """That rank's kernels by category, those first that lose most beside communication."""
        if self.slowed is None:
            return []
        rank = value_of(self.slowed["rank"])
        own = {"cell": self.cell, "variant": self.best["name"], "rank": rank}
        rows = [shown(row) for row in self.data.dicts("rank_slowed", **own)]
        for row in rows:
            row["longer"] = share(row["slowed"], minus(row["beside"], row["slowed"]))
        return list(sorted(rows, key=lambda row: -value_of(row["slowed"])))

    @cached_property
    def residual(self) -> Maybe:
        """The largest, of its step, without its sign."""
        shares = [share(each["residual"], each["clock"]) for each in self.ranks]
        largest = max(shares, key=lambda each: abs(value_of(each)), default=None)
        return scaled(largest, -1.0) if value_of(largest) < 0 else largest

    @property
    def is_suspect(self) -> bool:
        """Whether they compile SDPA with a release that was seen to do it with wrong gradients."""
        row = self.data.row("cells", cell=self.cell)
        is_compiled = "attention=sdpa" in row["options"] and "compile=" in row["options"]
        return is_compiled and method.is_suspect(row["torch"]) and self.machine.is_gpu

    @property
    def _compared(self) -> list[Row]:
        return self.data.series(cell=self.cell, quantity="difference")

    @cached_property
    def differing(self) -> list[Name]:
        """Those whose gradients are off one device's by more than rounding explains."""
        rows = self.data.series(cell=self.cell, quantity="tolerance")
        most = {row["variant"]: row["median"] for row in rows}
        wrong = [row for row in self._compared if row["median"] > most.get(row["variant"], inf)]
        return [Name(row["variant"]) for row in wrong]

    @cached_property
    def difference(self) -> Maybe:
        """How far gradients of a strategy differ at most from those of one device, relative."""
        same = [row for row in self._compared if row["variant"] not in self.differing]
        worst = max((row["median"] for row in same), default=None)
        return None if worst is None else Quantity(worst, "error", cells=(self.cell,))

    @cached_property
    def collectives(self) -> list[Row]:
        """By size, the smallest first."""
        rows = self.data.dicts("collectives", cell=self.cell)
        return [_collectives(own) for own in grouped(rows, "bytes").values()]

    @cached_property
    def hiding(self) -> Maybe:
        """Sequences a device from which the best strategy's communication hides, as predicted."""
        return number(self._predicted(self.best.get("name", "")), "hiding_batch", "count")


def strategy_of(name: str) -> str:
    """`overlapped` of `overlapped-ctas=8`."""
    return name.split("-")[0]


def is_alone(name: str) -> bool:
    """Whether one device runs it."""
    return strategy_of(name) == ALONE


def _rank(row: Row) -> Row:
    """A rank of the table `ranks`, with what follows from its parts.

    extra: kernels that one device's step has not, less those that it alone has, and less what runs
    at the same time. computing: in which anything computes. longer: by how much kernels take longer
    beside communication, of what they take alone there.
    """
    extra = plus(row["extra"], row["gone"], row["at_once"])
    return row | {
        "extra": extra,
        "computing": plus(row["alone"], row["slowed"], row["apart"], extra),
        "longer": share(row["slowed"], minus(row["beside"], row["slowed"])),
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


def facts(data: Data) -> Parallel | None:
    """None where no step was measured on several devices."""
    ranks = data.dicts("ranks")
    chosen = max(ranks, key=lambda row: (row["devices"], row["clock"]), default={})
    cell = data.row("cells", cell=chosen.get("cell"))
    where = place(data, cell)
    return Parallel(data=data, place=where, cell=cell["cell"]) if where else None
