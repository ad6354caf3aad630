"""Inside one attention: what a call of it, and of each of its parts, takes, computes and moves."""

from functools import cached_property

from stepscope.report.kit.data import Data, Row, number, shown
from stepscope.report.kit.named import Name, first_of, frozen, made_of
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

from . import profile
from .machine import Chapter, Machine, Place, machine
from .profile import Profiled, profiled

CORE = ("attention scores", "mask", "softmax", "attention × V")  # what sequences mix by
MOST = 0.5  # of a call, from which on its parts tell where its time goes
OF_CALL = ("host_time", "gpu_time", "flop", "bytes", "kernels")  # a step's in the table


@frozen
class Inside(Chapter):
    """Of `own`, the plain profiled step of page one's place, by a call of attention.

    whole, parts: the call, and each of its parts in their order, as _a_call has them; core: those
    of CORE together, if all are there; longest: that of the most time, where the parts
    are most of the call. softmax: it over the product
    of Q and K, by what is counted of both; scores_flop: operations of that product over the
    softmax's. arithmetic, traffic: all operations
    at the rate of a large product, all bytes at that of a large copy; traffic_gap: how far the call
    is off these. ridge: operations a byte from which on arithmetic would limit. linear: the
    projections, of the call. of_forward: all calls, of the forward pass; beside: all else of it.
    """

    own: Profiled
    place: Place
    whole: Row
    parts: list[Row]
    core: list[Row]
    longest: Row | None
    softmax: dict[str, Maybe]
    scores_flop: Maybe
    arithmetic: Maybe
    traffic: Maybe
    ridge: Maybe
    linear: Maybe
    of_forward: Maybe

    traffic_gap = made_of(gap, "whole.gpu_time", "traffic")

    @property
    def rows(self) -> list[Row]:
        """All parts, and what sequences mix by together."""
        return [*self.parts, *self.core]

    def part(self, name: str) -> Row:
        """The one of this name; empty where there is none."""
        return _part(self.parts, name)

    @cached_property
    def beside(self) -> Maybe:
        """Of the forward pass what is not attention."""
        return minus(Quantity(1.0, "share"), self.of_forward)

    @property
    def is_by_bytes(self) -> bool:
        """Whether the softmax takes longer for fewer operations and more bytes."""
        more = (self.scores_flop, self.softmax["gpu_time"], self.softmax["bytes"])
        return all(value_of(each) > 1 for each in more)

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


def _together(parts: list[Row], whole: Maybe) -> Row:
    """Of several parts the sums."""
    sums = {name: plus(*(part[name] for part in parts)) for name in OF_CALL}
    return {
        "module": Name(f"{parts[0]['module']} to {parts[-1]['module']}"),
        **sums,
        "share": share(sums["gpu_time"], whole),
        "bandwidth": over(sums["bytes"], sums["gpu_time"], "B/s"),
    }


def _part(parts: list[Row], name: str) -> Row:
    return first_of(each for each in parts if each["module"] == name) or {}


def facts(data: Data) -> Inside | None:
    """Where its attention has parts."""
    step = profile.plain_step(profiled(data), profile.subject(data))
    if step is None:
        return None
    attention = first_of(data.dicts("modules", cell=step.cell, attention=True)) or {}
    of_it = {"cell": step.cell, "kind": "module", "parent": attention.get("module")}
    rows = data.dicts("modules", **of_it)
    if not attention or not rows:
        return None
    own = machine(data)
    rate = own.rate(step.place.precision)
    whole = _a_call(attention, None, own)
    parts = [_a_call(row, whole["gpu_time"], own) for row in rows]
    core = [part for part in parts if part["module"] in CORE]
    soft, scores = (_part(parts, name) for name in ("softmax", "attention scores"))
    covered = share(plus(*(part["gpu_time"] for part in parts)), whole["gpu_time"])
    projections = [part["gpu_time"] for part in parts if part["module"].endswith("projection")]
    forward = data.row("phases", cell=step.cell, phase="forward")
    return Inside(
        data=data,
        own=step,
        place=step.place,
        whole=whole,
        parts=parts,
        core=[_together(core, whole["gpu_time"])] if len(core) == len(CORE) else [],
        longest=most(parts, "gpu_time") if value_of(covered) > MOST else None,
        softmax={name: over(soft.get(name), scores.get(name)) for name in OF_CALL},
        scores_flop=over(scores.get("flop"), soft.get("flop")),
        arithmetic=time_of(plus(*(part["flop"] for part in parts)), rate),
        traffic=plus(*(part["least"] for part in parts)),
        ridge=over(rate, own.copy, "FLOP/B"),
        linear=share(plus(*projections), whole["gpu_time"]),
        of_forward=share(number(attention, "gpu_time", "s"), number(forward, "gpu_time", "s")),
    )
