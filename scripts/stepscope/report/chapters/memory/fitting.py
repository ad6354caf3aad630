"""Which steps do not fit and why, and which allocations are the largest."""

from stepscope.report.chapters.memory.cells import Recorded, numbers, place
from stepscope.report.chapters.memory.parts import by_category
from stepscope.report.data.memory import part, saved_by_blocks
from stepscope.report.data.spotlight import Machine
from stepscope.report.data.unprofiled import mode
from stepscope.report.kit import formatting
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.kit.formatting import known, listing
from stepscope.report.kit.order import precision_rank
from stepscope.report.kit.sizes import size

_FITS, _LARGEST = "which step does not fit", "what are the largest allocations"
_MOST_NAMED = 3


def fitting_findings(machine: Machine, own: Recorded) -> tuple[Finding, ...]:
    """The steps that ran out of memory, what was predicted of the largest, and what grows."""
    found = (_lost(machine, own), _predicted(own), _squared(own))
    return tuple(each for each in found if each)


def _lost(machine: Machine, own: Recorded) -> Finding | None:
    """The points at which a step runs out of memory, with their precisions; or that there are none."""
    rows = [row for row in machine.timing if row["mode"] == "step" and not row["options"]]
    tried = [row for row in rows if row.get("step_status") in ("ok", "oom")]
    lost: dict[str, list[dict]] = {}
    for row in (row for row in tried if row["step_status"] == "oom"):
        lost.setdefault(place(row), []).append(row)
    if not tried:
        return None
    names = tuple(row["cell"] for row in tried)
    if not lost:
        values = {"steps": Number(len(tried), names, formatting.count)}
        return Finding(_FITS, "All {steps} steps that were timed fit.", values, own.hardware)
    told = []
    for name, found in lost.items():
        precisions = sorted({str(row["precision"]) for row in found}, key=precision_rank)
        told.append(f"{name} ({', '.join(precisions)})")
    values = {"lost": Number(sum(map(len, lost.values())), names, formatting.count)}
    answer = f"Of {len(tried):,} timed steps {{lost}} ran out of memory: {listing(told, _MOST_NAMED)}."
    return Finding(_FITS, answer, values, own.hardware)


def _predicted(own: Recorded) -> Finding | None:
    """What the closed form predicts of a step that did not fit, in the chapter's precision if there is one."""
    rows = [row for row in own.rows if row["status"] == "oom" and mode(row) == "step"]
    rows = [row for row in rows if known(row.get("predicted_peak_bytes")) and known(row.get("capacity_total_bytes"))]
    alike = [row for row in rows if row["precision"] == own.row["precision"]] or rows
    if not alike:
        return None
    row = min(alike, key=lambda row: row["predicted_peak_bytes"])
    peak, whole = row["predicted_peak_bytes"], row["capacity_total_bytes"]
    values = own.sizes([row], predicted=peak, whole=whole)
    answer = f"{place(row)} in {row['precision']} is predicted to need {{predicted}} {own.unit.name} of {{whole}}"
    if peak <= whole:
        return Finding(_FITS, f"{answer}: it should have fitted.", values, own.hardware)
    activations = by_category(own, row).get("activations")
    if activations:
        values |= own.sizes([row], activations=activations)
        answer += ", {activations} of it for activations"
    return Finding(_FITS, f"{answer}.", values, own.hardware)


def _squared(own: Recorded) -> Finding | None:
    """The share of context × context in what a block saves, from the shortest to the longest context of a size."""
    alike = [each for each in saved_by_blocks(own.memory) if each.row in own.rows and each.squared_share is not None]
    names = ("size", "precision", "batch")
    found = [each for each in alike if all(each.row[name] == own.row[name] for name in names)]
    found = sorted((each for each in found if mode(each.row) == "step"), key=lambda each: each.row["context"])
    if len(found) < 2 or found[-1].squared_share <= found[0].squared_share:
        return None
    first, last = found[0], found[-1]
    values = {
        name: Number(each.squared_share, (each.row["cell"],), formatting.percent)
        for name, each in (("first", first), ("last", last))
    }
    answer = (
        "Twice the context makes context × context tensors four times as large: they are {first} of the activations "
        f"that a block of {own.row['size']} saves at {first.row['context']:,.0f}, {{last}} at "
        f"{last.row['context']:,.0f}."
    )
    return Finding(_FITS, answer, values, own.hardware)


def largest_findings(own: Recorded) -> tuple[Finding, ...]:
    """The largest activation with what it is made of, and a tensor of the residual stream."""
    return tuple(each for each in (_largest(own), _stream(own)) if each)


def _largest(own: Recorded) -> Finding | None:
    rows = [each for each in own.memory.rows("largest", own.row) if known(each["bytes"])]
    made = [each for each in rows if each["category"] == "activations"]
    if not made:
        return None
    kept = [each for each in made if each["bytes"] == max(row["bytes"] for row in made)]
    each = max(kept, key=lambda row: row["alive_at_peak"])
    values = numbers([own.row], size, size=each["bytes"])
    values["alive"] = Number(each["alive_at_peak"], (own.row["cell"],), formatting.count)
    what = f" ({each['formula']})" if each["formula"] else ""
    inside = part(each["module"]).removeprefix("blocks.*: ")
    values["inside"] = Number(inside or str(each["frame"] or "no part"), (own.row["cell"],), str)
    answer = (
        f"The largest activation of {place(own.row)} takes {{size}}{what}. It comes from {{inside}}; {{alive}} such "
        f"{'is' if each['alive_at_peak'] == 1 else 'are'} alive at the peak."
    )
    larger = max(rows, key=lambda row: row["bytes"])
    cause = ""
    if larger["bytes"] > each["bytes"]:
        values |= numbers([own.row], size, larger=larger["bytes"])
        cause = f"Larger are {larger['category']}: {{larger}}."
    return Finding(_LARGEST, answer, values, own.hardware, cause=cause)


def _stream(own: Recorded) -> Finding | None:
    stream = own.row.get("residual_stream_bytes")
    if not known(stream):
        return None
    values = numbers([own.row], size, stream=stream)
    answer = "A tensor of the residual stream takes {stream}."
    return Finding(_LARGEST, answer, values, own.hardware)
