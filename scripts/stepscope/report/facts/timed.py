"""Plain steps: those of the timing study of which nothing is changed."""

from functools import cached_property

from stepscope.report.kit.data import Data
from stepscope.report.kit.named import first_of, frozen, made_of
from stepscope.report.kit.quantity import Maybe, Quantity, count, over, plus, scaled

from .machine import Place, limited, place

PLAIN = {"study": "timing", "options": ""}


def _series(quantity: str, phase: str = "step", mode: str = "step") -> cached_property[Maybe]:
    """The fact that is a series of the plain step."""

    def measured(timed: "Timed") -> Maybe:
        same = PLAIN | {"precision": timed.place.precision} | timed.place.where
        return timed.place.data.measured(quantity, mode=mode, phase=[phase, ""], **same)

    return cached_property(measured)


@frozen
class Timed:
    """A plain step at a place. limits: what limits it by the mean of its processes; limited: as
    pages say it."""

    place: Place
    limits: str

    limited = made_of(limited, "limits", "step", "gpu")
    step = _series("time")
    forward = _series("time", "forward")
    backward = _series("time", "backward")
    optimizer = _series("time", "optimizer")
    gpu = _series("alone_time")  # without the host: host-free, else busy
    host_free = _series("host_free_time")
    busy = _series("busy_time")
    launches = _series("launches")
    tokens = _series("tokens_per_second")
    of_peak = _series("share_of_ceiling")
    peak = _series("peak_reserved")
    # The forward pass that keeps nothing, and that of training run by itself.
    inference = _series("time", "inference", "inference")
    training = _series("time", "forward", "forward")

    @cached_property
    def context(self) -> Quantity:
        """The place's."""
        return count(self.place.context)

    both = made_of(plus, "forward", "backward")  # forward and backward

    backward_ratio = made_of(over, "backward", "forward")  # backward over forward

    both_ratio = made_of(over, "both", "forward")  # both over forward

    @cached_property
    def of_billion(self) -> Maybe:
        """The step's time for each 1e9 parameters."""
        return scaled(over(self.step, self.place.parameters, "s"), 1e9)

    each = made_of(over, "step", "launches", unit="s")  # the clock's time for each launch


def timed(data: Data, **where: object) -> list[Timed]:
    """All plain steps that were timed whole."""
    same = PLAIN | {"quantity": "time", "mode": "step", "phase": "step"}
    found: dict[tuple[object, ...], Timed] = {}
    for row in data.series(**(same | where)):
        at = place(data, row)
        if at:
            limits = row["limits"].replace("gpu", "GPU")
            found.setdefault((*at.key, at.precision), Timed(place=at, limits=limits))
    return list(found.values())


def in_bf16(data: Data, **where: object) -> list[Timed]:
    """Those in bf16, but for models that their files build in another type than fp32."""
    found = timed(data, precision="bf16", **where)
    return [each for each in found if not each.place.dtype]


def timed_at(where: Place, precision: str = "") -> Timed | None:
    """The plain step at a place, in its precision if no other is named."""
    found = timed(where.data, precision=precision or where.precision, **where.where)
    return first_of(found)
