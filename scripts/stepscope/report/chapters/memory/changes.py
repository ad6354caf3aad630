"""What inference needs beside training, and what mixed precision saves and does not."""

from stepscope.report.chapters.memory.cells import Recorded, cells, numbers, place
from stepscope.report.data.memory import REFERENCE, PeakChange, peak_changes
from stepscope.report.data.memory_course import course
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known
from stepscope.report.kit.sizes import percent_change

_INFERENCE, _MIXED = "what does inference need beside training", "what does mixed precision save"
_FEW = 0.1  # of the step's activations, below which inference keeps none of earlier blocks
_SAME = 0.01  # a difference below this share is called none


def change_findings(own: Recorded) -> tuple[Finding, ...]:
    """Inference beside training; activations, what stays in fp32, the peak, and inference in this precision."""
    found = (_inference(own), _activations(own), _masters(own), _peaks(own), _mixed_inference(own))
    return tuple(each for each in found if each)


def _inference(own: Recorded) -> Finding | None:
    other = own.at(own.row, mode="inference")
    if other is None:
        return None
    less, more = own.memory.requested(other), own.memory.requested(own.row)
    values = own.sizes([other], inference=less) | numbers([other, own.row], formatting.percent, share=less / more)
    answer = f"Inference of {place(own.row)} needs {{inference}} {own.unit.name}, {{share}} of the step's."
    held, of_step, cause = own.memory.at_peak(other), own.memory.at_peak(own.row), ""
    if not any(held.get(name) for name in ("gradients", "optimizer state")):
        is_short = held.get("activations", 0.0) < _FEW * of_step.get("activations", 0.0)
        kept = "gradients, moments or activations of earlier blocks" if is_short else "gradients or moments"
        cause = f"It keeps no {kept}."
    return Finding(_INFERENCE, answer, values, own.hardware, cause=cause)


def _both(own: Recorded, item: str) -> tuple[dict, list[float]] | None:
    """(the cell in fp32, [an item's measured bytes there, and in the chapter's step]); None unless both are known."""
    plain = own.at(own.row, precision=REFERENCE)
    if plain is None or plain["cell"] == own.row["cell"]:
        return None
    values = [own.memory.account(row, item).get("measured_bytes") for row in (plain, own.row)]
    return (plain, values) if all(known(value) and value for value in values) else None


def _activations(own: Recorded) -> Finding | None:
    """What the forward pass keeps, in fp32 and in the chapter's precision, and the copies of weights beside it."""
    both = _both(own, "saved in all")
    if both is None:
        return None
    plain, (before, after) = both
    values = own.sizes([plain, own.row], before=before, after=after)
    precision = own.row["precision"]
    answer = f"{precision} keeps {{after}} {own.unit.name} of activations for backward, {REFERENCE} {{before}}"
    casts = own.memory.account(own.row, "cast weights").get("measured_bytes")
    if known(casts) and casts:
        values |= own.sizes([own.row], casts=casts)
        answer += f"; {precision}'s copies of weights add {{casts}}"
    return Finding(_MIXED, f"{answer}.", values, own.hardware)


def _masters(own: Recorded) -> Finding | None:
    """That parameters, moments and gradients are as large as in fp32; what they are where they are not."""
    both, plain = _both(own, "gradients"), own.at(own.row, precision=REFERENCE)
    starts = [found.start for row in (plain, own.row) if row and (found := course(own.memory, row))]
    if both is None or len(starts) < 2:
        return None
    gradients = both[1]
    values = own.sizes([plain, own.row], start=starts[1], gradients=gradients[1])
    if all(abs(after / before - 1) <= _SAME for before, after in (starts, gradients)):
        answer = (
            f"Parameters, moments and gradients stay in fp32: in both a step begins with {{start}} {own.unit.name} and "
            "makes {gradients} of gradients."
        )
        return Finding(_MIXED, answer, values, own.hardware)
    values |= own.sizes([plain], plain_start=starts[0], plain_gradients=gradients[0])
    answer = (
        f"A step begins with {{start}} {own.unit.name} instead of {{plain_start}} in fp32, its gradients take "
        "{gradients} instead of {plain_gradients}."
    )
    return Finding(_MIXED, answer, values, own.hardware)


def _changes(own: Recorded, kind: str) -> list[PeakChange]:
    """Those of the chapter's precision in a mode, where both finished."""
    found = [each for each in peak_changes(own.memory) if each.row in own.rows and each.share is not None]
    return [each for each in found if each.row["precision"] == own.row["precision"] and mode(each.row) == kind]


def _range(own: Recorded, found: list[PeakChange]) -> Number:
    """`−22 to +1.0 %`, of the bytes that tensors asked for, as in the chapter's table."""
    names = cells(row for each in found for row in (each.reference, each.row))
    return Number([_share(own, each) for each in found], names, _range_text)


def _share(own: Recorded, each: PeakChange) -> float:
    before, after = (own.memory.requested(row) for row in (each.reference, each.row))
    return (after - before) / before


def _range_text(values: list[float]) -> str:
    low, high = percent_change(min(values)), percent_change(max(values))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _peaks(own: Recorded) -> Finding | None:
    """By how much the step's peak changes."""
    found = _changes(own, "step")
    if not found:
        return None
    points = "1 point" if len(found) == 1 else f"{len(found):,} points"
    answer = (
        f"In {own.row['precision']} the step's peak changes by {{change}}, in bytes that tensors asked for ({points})."
    )
    return Finding(_MIXED, answer, {"change": _range(own, found)}, own.hardware)


def _mixed_inference(own: Recorded) -> Finding | None:
    found = _changes(own, "inference")
    if not found:
        return None
    cause = ""
    if min(_share(own, each) for each in found) > 0 and all(
        own.memory.at_peak(each.row).get("cast weights") for each in found
    ):
        cause = "Autocast keeps 16-bit copies beside the fp32 weights."
    answer = f"In {own.row['precision']} that of inference changes by {{change}}."
    return Finding(_MIXED, answer, {"change": _range(own, found)}, own.hardware, cause=cause)
