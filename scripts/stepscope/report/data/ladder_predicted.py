"""What a rung of the ladder was to gain: by closed forms, and by where the profiled step of the same place goes."""

from dataclasses import dataclass

from stepscope.report.data.ceilings import matmul_ceiling
from stepscope.report.data.ladder import Ladder, time
from stepscope.report.data.predicted import optimizer_ms
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.step_parts import StepParts
from stepscope.report.kit.order import NEUTRAL

_AXES = ("precision", *NEUTRAL)


@dataclass(frozen=True)
class Prediction:
    """How many times as fast a change was to be, and the cells that this is worked out from."""

    gain: float
    cells: tuple[str, ...]


def predicted(machine: Machine, one: Ladder, row: dict) -> Prediction | None:
    """The gain over the rung before; None for several changes at once, and where no formula or profile tells.

    Precision: products alone become faster, as the measured ceilings do. Attention: all of it but its products is gone
    from the forward pass. Compiled blocks: no other memory-bound kernel is left. These two are of the profiled step of
    the same place, with nothing fused. A fused AdamW moves its bytes once.
    """
    before = one.at(row.get("compared_with"))
    changed = [axis for axis in _AXES if _value(row, axis) != _value(before, axis)] if before else []
    if len(changed) != 1 or one.is_passed_over(row):
        return None
    values = _value(before, changed[0]), _value(row, changed[0])
    if changed == ["optimizer"]:
        return _optimizer(machine, before) if values == ("own", "fused") else None
    own = _profiled(machine, one, values[0] if changed == ["precision"] else row["precision"])
    if own is None:
        return None
    if changed == ["precision"]:
        return _precision(machine, own, values) if _is_plain(before) else None
    part = {("attention", "naive"): "attention", ("compile", "none"): "other"}.get((changed[0], values[0]))
    return _without(own, getattr(own, part)) if part else None


def _value(row: dict, axis: str) -> str:
    return str(row.get(axis) or NEUTRAL.get(axis)).removesuffix(".0")


def _is_plain(row: dict) -> bool:
    return all(_value(row, axis) == neutral for axis, neutral in NEUTRAL.items())


def _profiled(machine: Machine, one: Ladder, precision: str) -> StepParts | None:
    """The profiled step of a ladder's place in a precision."""
    place = one.size, one.context, one.batch
    return next((each for each in machine.steps if (each.place, each.precision) == (place, precision)), None)


def _without(own: StepParts, saved: float) -> Prediction | None:
    return Prediction(own.total / (own.total - saved), (own.row["cell"],)) if 0 < saved < own.total else None


def _precision(machine: Machine, own: StepParts, values: tuple[str, str]) -> Prediction | None:
    before, after = (matmul_ceiling(machine.tables["ceilings"], machine.hardware, name) for name in values)
    return _without(own, own.products * (1 - before / after)) if before and after else None


def _optimizer(machine: Machine, before: dict) -> Prediction | None:
    least, step, own = optimizer_ms(machine.tables, before), time(before, "step"), before.get("optimizer_median_ms")
    if not (least and step and own and least < own < step):
        return None
    return Prediction(step / (step - own + least), (before["cell"],))
