"""What no GPU's rate changes: peaks of memory, cells that ran out of it, and sums in low precision."""

from collections.abc import Sequence

from stepscope.report.data.published import FITS_HERE, MEMORY_TOLERANCE, SAME, Beside
from stepscope.report.kit import formatting
from stepscope.report.kit.chapter import Part
from stepscope.report.kit.compare import NOT_COMPARABLE, ratio_range
from stepscope.report.kit.finding import Finding, Number
from stepscope.report.studies.published.findings import cells_of
from stepscope.report.studies.published.tables import our_unit


def part(found: Sequence[Beside]) -> Part:
    """All of these, under a question that names what there is to agree."""
    of_peaks, of_fits, of_sums = peaks(found), fits(found), sums(found)
    things = ["peaks of memory" if of_peaks else "limits of memory"] * bool(of_peaks or of_fits)
    things += ["sums in low precision"] * bool(of_sums)
    question = f"Do published {formatting.listing(things)} agree with ours?"
    return Part(question, tuple(each for each in (of_peaks, of_fits, of_sums) if each))


def peaks(found: Sequence[Beside]) -> Finding | None:
    """How many published peaks of memory agree with ours."""
    own = [each for each in found if our_unit(each.figure) == "bytes" and each.ratio is not None]
    own = [each for each in own if each.verdict != NOT_COMPARABLE]
    if not own:
        return None
    alike = [each for each in own if each.verdict == SAME]
    numbers = {
        "peaks": Number(len(own), cells_of(own), formatting.count),
        "alike": Number(len(alike), cells_of(alike), formatting.count),
        "range": Number([each.ratio for each in own], cells_of(own), ratio_range),
    }
    within = formatting.percent(MEMORY_TOLERANCE)
    answer = (
        f"{{alike}} of {{peaks}} published peaks of memory are within {within} of ours; they are {{range}} times ours."
    )
    return Finding("does the memory agree", answer, numbers)


def fits(found: Sequence[Beside]) -> Finding | None:
    """How many cells ran out of memory there and finish here."""
    own = [each for each in found if each.verdict == FITS_HERE and each.has_time]
    if not own:
        return None
    are = (
        "cell has no published time: it ran out of memory, and finishes"
        if len(own) == 1
        else ("cells have no published time: they ran out of memory, and finish")
    )
    answer = f"{{cells}} {are} here."
    return Finding("what fits here only", answer, {"cells": Number(len(own), cells_of(own), formatting.count)})


def sums(found: Sequence[Beside]) -> Finding | None:
    """Whether sums in low precision come out as they were published."""
    own = [each for each in found if each.figure["quantity"] == "sum"]
    if not own:
        return None
    alike = [each for each in own if each.verdict == SAME]
    numbers = {
        "sums": Number(len(own), cells_of(own), formatting.count),
        "alike": Number(len(alike), cells_of(alike), formatting.count),
    }
    return Finding(
        "do sums agree", "{alike} of {sums} published sums of many small numbers come out the same.", numbers
    )
