"""Inside one attention: what a call of it, and of each of its parts, takes, computes and moves."""

from functools import cached_property

from stepscope.report.facts import profile
from stepscope.report.facts.machine import Chapter, Machine, Place
from stepscope.report.facts.profile import Profiled, profiled
from stepscope.report.kit.data import Data, Row, number, shown
from stepscope.report.kit.named import frozen
from stepscope.report.kit.quantity import (
    Maybe,
    Quantity,
    gap,
    is_below,
    minus,
    most,
    over,
    plus,
    scaled,
    share,
    time_of,
    value_of,
)

OF_CALL = ("host_time", "gpu_time", "flop", "bytes", "kernels")  # a step's in the table


@frozen
class Inside(Chapter):
    """Of `own`, the plain profiled step of page one's place."""

    own: Profiled

    @property
    def place(self) -> Place:
        """Where that is."""
        return self.own.place

    @cached_property
    def _attention(self) -> Row:
        rows = self.data.dicts("modules", cell=self.own.cell, attention=True)
        return next(iter(rows), {})

    @cached_property
    def whole(self) -> Row:
        """A call, as parts() has it."""
        return _a_call(self._attention, None, self.machine)

    @cached_property
    def parts(self) -> list[Row]:
        """A call of each of its parts, in their order."""
        same = {"cell": self.own.cell, "kind": "module", "parent": self._attention["module"]}
        rows = self.data.dicts("modules", **same)
        return [_a_call(row, self.whole["gpu_time"], self.machine) for row in rows]

    def part(self, name: str) -> Row:
        """The one of this name; empty where there is none."""
        return next((each for each in self.parts if each["module"] == name), {})

    @property
    def longest(self) -> Row | None:
        """The part of the most time."""
        return most(self.parts, "gpu_time")

    @cached_property
    def softmax(self) -> dict[str, Maybe]:
        """The softmax over the product of Q and K, by what is counted of both."""
        soft, scores = self.part("softmax"), self.part("attention scores")
        return {name: over(soft.get(name), scores.get(name)) for name in OF_CALL}

    @cached_property
    def scores_flop(self) -> Maybe:
        """Operations of that product over the softmax's."""
        return over(self.part("attention scores").get("flop"), self.part("softmax").get("flop"))

    @property
    def is_by_bytes(self) -> bool:
        """Whether the softmax takes longer for fewer operations and more bytes."""
        more = (self.scores_flop, self.softmax["gpu_time"], self.softmax["bytes"])
        return all(value_of(each) > 1 for each in more)

    @cached_property
    def arithmetic(self) -> Maybe:
        """All operations of a call at the rate of a large product."""
        flop = plus(*(part["flop"] for part in self.parts))
        return time_of(flop, self.machine.rate(self.place.precision))

    @cached_property
    def traffic(self) -> Maybe:
        """All its bytes at that of a large copy."""
        return plus(*(part["least"] for part in self.parts))

    @cached_property
    def traffic_gap(self) -> Maybe:
        """How far the call is off its bytes."""
        return gap(self.whole["gpu_time"], self.traffic)

    @cached_property
    def ridge(self) -> Maybe:
        """Operations a byte from which on arithmetic would limit."""
        return over(self.machine.rate(self.place.precision), self.machine.copy, "FLOP/B")

    @cached_property
    def linear(self) -> Maybe:
        """The projections, of the call."""
        times = [self.part(f"{name} projection").get("gpu_time") for name in ("QKV", "output")]
        return share(plus(*times), self.whole["gpu_time"])

    @cached_property
    def of_forward(self) -> Maybe:
        """All calls, of the forward pass."""
        forward = self.data.row("phases", cell=self.own.cell, phase="forward")
        return share(number(self._attention, "gpu_time", "s"), number(forward, "gpu_time", "s"))

    @cached_property
    def beside(self) -> Maybe:
        """All else, of the forward pass."""
        return minus(Quantity(1.0, "share"), self.of_forward)

    @property
    def is_host_behind(self) -> bool:
        """Whether the host takes longer to launch a call than the GPU to run it."""
        return is_below(self.whole["gpu_time"], self.whole["host_time"])


def _a_call(row: Row, whole: Maybe, machine: Machine) -> Row:
    """A row of `modules` with what a call has of it, and `share` of the whole, `intensity`
    (operations a byte), `bandwidth`, `least`: its bytes at the rate of a copy, and `top_mean`, of a
    launch of its top kernel."""
    told = shown(row, calls="count", kernels="count", top_calls="count")
    of_call = {name: scaled(told[name], 1 / row["calls"]) for name in OF_CALL}
    spent, moved = of_call["gpu_time"], of_call["bytes"]
    of_top = scaled(told["gpu_time"], value_of(told["top_share"]))
    return {
        **told,
        **of_call,
        "share": share(spent, whole),
        "intensity": over(of_call["flop"], moved, "FLOP/B"),
        "bandwidth": over(moved, spent, "B/s"),
        "least": time_of(moved, machine.copy),
        "top_mean": over(of_top, told["top_calls"], "s"),
    }


def facts(data: Data) -> Inside | None:
    """Where its attention has parts."""
    step = profile.plain_step(profiled(data), profile.subject(data))
    found = Inside(data=data, own=step) if step else None
    return found if found and found._attention and found.parts else None
